//! Where the user's own files lie.

use std::path::{Path, PathBuf};

/// The configuration folder: `given` where there is one, else the system's place for it (`~/.config/nodewise` on Linux);
/// `None` where the system has none. It need not exist.
pub fn config_dir(given: Option<&Path>) -> Option<PathBuf> {
    match given {
        Some(folder) => Some(folder.to_owned()),
        None => directories::ProjectDirs::from("", "", "nodewise").map(|dirs| dirs.config_dir().to_owned()),
    }
}
