//! What can go wrong with a file.

use std::io;
use std::path::PathBuf;

/// A file that could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused.
    #[error("cannot read `{path}`")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Larger than the cap; nothing was read.
    #[error("`{path}` has {size} bytes; the limit is {limit}")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        size: u64,
        /// The cap.
        limit: u64,
    },
    /// A device, a pipe, a socket or a folder where a file is wanted.
    #[error("`{path}` is not a regular file")]
    NotAFile {
        /// What was named.
        path: PathBuf,
    },
    /// Not text.
    #[error("`{path}` is not UTF-8 text")]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// A model folder without a configuration.
    #[error("`{path}` holds no `config.json`")]
    NoConfig {
        /// The folder.
        path: PathBuf,
    },
    /// A weight file whose header cannot be believed.
    #[error("`{path}`")]
    Weights {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: model::files::FileError,
    },
    /// A folder with several GGUF checkpoints.
    #[error("`{path}` holds several models: {}", .files.join(", "))]
    SeveralModels {
        /// The folder.
        path: PathBuf,
        /// Their first files, at most 12.
        files: Vec<String>,
    },
    /// A catalog folder that does not exist although it was named.
    #[error("`{path}` is not a folder")]
    NotAFolder {
        /// What was named.
        path: PathBuf,
    },
}

impl StoreError {
    /// What to do instead, where something helps.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("check the path; relative paths start from the current folder".into())
            }
            Self::Io { .. } | Self::NotText { .. } => None,
            Self::TooLarge { .. } => Some("name the `config.json`, not the weights".into()),
            Self::NotAFile { .. } => Some("name a file, or a folder that holds `config.json`".into()),
            Self::NoConfig { .. } => Some("name the folder that a model was downloaded into".into()),
            Self::Weights { source, .. } => Some(source.hint()),
            Self::SeveralModels { path, files } => {
                files.first().map(|first| format!("name one, for example `{}`", path.join(first).display()))
            }
            Self::NotAFolder { .. } => {
                Some("name a folder with `gpus.csv`, `nodes.csv`, `providers.csv` or `offers.csv`".into())
            }
        }
    }
}
