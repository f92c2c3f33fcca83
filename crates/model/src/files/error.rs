//! What is wrong with a weight file.

/// Why a header cannot be believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The file ends inside its header.
    #[error("the file ends inside its header: {need} bytes are needed, it has {have}")]
    Truncated {
        /// Bytes that the header asks for.
        need: u64,
        /// Bytes that there are.
        have: u64,
    },
    /// It does not start as such a file does.
    #[error("the file is no {wanted}: {found}")]
    WrongKind {
        /// What it should be.
        wanted: &'static str,
        /// What was met.
        found: String,
    },
    /// A count or length over its cap; nothing was allocated for it.
    #[error("{what}: {count}, the limit is {limit}")]
    TooMuch {
        /// What is counted.
        what: &'static str,
        /// What the file says.
        count: u64,
        /// The cap.
        limit: u64,
    },
    /// The header is no JSON of the expected shape.
    #[error("the header is not valid JSON: {reason}")]
    NotJson {
        /// What the parser met.
        reason: String,
    },
    /// A name stands twice.
    #[error("`{name}` stands twice in the header")]
    Duplicate {
        /// The name, cut to 80 characters.
        name: String,
    },
    /// A tensor's bytes are not inside the file.
    #[error("tensor `{name}` ends at byte {end} of the data, the file holds {have}")]
    Outside {
        /// The tensor.
        name: String,
        /// Where it ends.
        end: u64,
        /// Bytes of data that there are.
        have: u64,
    },
    /// Two tensors share bytes.
    #[error("two tensors overlap at byte {at} of the data")]
    Overlap {
        /// First shared byte.
        at: u64,
    },
    /// A value is impossible.
    #[error("`{key}` is `{value}`, but must be {wanted}")]
    BadValue {
        /// The tensor or key.
        key: String,
        /// What it says.
        value: String,
        /// What would be right.
        wanted: String,
    },
    /// A shard's name that leads out of the folder.
    #[error("the index names the file `{name}`, which is not a plain file name")]
    Path {
        /// The name as it stands, cut to 80 characters.
        name: String,
    },
    /// The system refused while reading.
    #[error("reading stopped: {reason}")]
    Read {
        /// What it said.
        reason: String,
    },
}

impl FileError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Truncated { .. } | Self::Outside { .. } => "the file is incomplete: download it again".into(),
            Self::WrongKind { wanted, .. } => format!("name a {wanted} file"),
            Self::TooMuch { .. } => "no real checkpoint has so much: the file is damaged or not what it claims".into(),
            Self::Path { .. } => "shards lie beside their index: do not use this repository".into(),
            Self::NotJson { .. } | Self::Duplicate { .. } | Self::Overlap { .. } | Self::BadValue { .. } => {
                "the file is damaged: download it again from its source".into()
            }
            Self::Read { .. } => "check the disk and the file's rights".into(),
        }
    }
}
