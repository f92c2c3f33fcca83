//! Why a model's files cannot be turned into an anatomy.

use crate::config::MAX_FILE_BYTES;

/// Why a config cannot be read, with what to type or look at instead in [`ModelError::hint`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The file is larger than any config.
    #[error("`{name}` has {size} bytes, the limit for a config is {MAX_FILE_BYTES}")]
    TooLarge {
        /// The model or file.
        name: String,
        /// Its bytes.
        size: usize,
    },
    /// The file is no JSON, or ends in the middle of it.
    #[error("`{name}` is not JSON: {reason} at line {line} column {column}")]
    NotJson {
        /// The model or file.
        name: String,
        /// What the parser met.
        reason: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// Whether it ends too early.
        truncated: bool,
    },
    /// It is JSON but no object.
    #[error("`{name}` is a JSON {found}, not an object")]
    NotAnObject {
        /// The model or file.
        name: String,
        /// What it is.
        found: &'static str,
    },
    /// A key that the size depends on is missing.
    #[error("the config has no `{key}`, which the {family} reader needs")]
    Missing {
        /// The key, with synonyms.
        key: String,
        /// The reader that needs it.
        family: String,
    },
    /// A value is of the wrong type or out of range.
    #[error("`{key}` is `{value}`, but must be {wanted}")]
    BadValue {
        /// The key, with its path.
        key: String,
        /// The value, cut to 60 characters.
        value: String,
        /// What it must be.
        wanted: String,
    },
    /// An architecture, layer kind or part that no reader understands.
    #[error("`{name}`: {what} is not understood")]
    UnknownArchitecture {
        /// The model or file.
        name: String,
        /// What was not understood: `` `model_type` `foo` ``.
        what: String,
        /// Known names that are close.
        suggestions: Vec<String>,
    },
}

impl ModelError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::TooLarge { .. } => "give the `config.json`, not the weights".into(),
            Self::NotJson { truncated: true, .. } => "the file ends too early: download it again".into(),
            Self::NotJson { .. } => "give the `config.json` of a Hugging Face model".into(),
            Self::NotAnObject { .. } => "give the `config.json` of a Hugging Face model".into(),
            Self::Missing { .. } => "is this the `config.json` of the model itself?".into(),
            Self::BadValue { key, .. } => format!("correct `{key}` in the config"),
            Self::UnknownArchitecture { suggestions, .. } if !suggestions.is_empty() => {
                format!("did you mean {}?", suggestions.join(" or "))
            }
            Self::UnknownArchitecture { .. } => {
                "give the size by hand, for example `--params 70B` (and `--active 3B` for a mixture of experts)".into()
            }
        }
    }
}
