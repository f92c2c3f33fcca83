//! Model configurations: a `config.json`, or the folder that holds it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::StoreError;

/// Bytes of a model configuration that are read; real ones have some kilobytes.
pub const MAX_MODEL_CONFIG: u64 = 16 << 20;

/// A configuration as read, for the `model` crate to parse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFile {
    /// The file that was read.
    pub path: PathBuf,
    /// A name for the model: the folder's, or the file's where it is not called `config.json`.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Reads a regular file of at most `limit` bytes; the size is asked for before anything is read, and held to while
/// reading, since a file may grow.
pub(crate) fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, StoreError> {
    let io = |source| StoreError::Io { path: path.to_owned(), source };
    // asked before opening: opening a pipe would wait for a writer
    let meta = std::fs::metadata(path).map_err(io)?;
    if !meta.is_file() {
        return Err(StoreError::NotAFile { path: path.to_owned() });
    }
    if meta.len() > limit {
        return Err(StoreError::TooLarge { path: path.to_owned(), size: meta.len(), limit });
    }
    let mut bytes = Vec::with_capacity(meta.len() as usize);
    File::open(path).map_err(io)?.take(limit + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > limit {
        return Err(StoreError::TooLarge { path: path.to_owned(), size: bytes.len() as u64, limit });
    }
    Ok(bytes)
}

/// Reads a regular text file of at most `limit` bytes.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<String, StoreError> {
    String::from_utf8(read_bounded(path, limit)?).map_err(|_| StoreError::NotText { path: path.to_owned() })
}

/// Reads the configuration of a model from a file, or from the `config.json` (or `params.json`) of a folder.
pub fn read_model_path(path: &Path) -> Result<ModelFile, StoreError> {
    let meta = std::fs::metadata(path).map_err(|source| StoreError::Io { path: path.to_owned(), source })?;
    let file = if meta.is_dir() {
        let found = ["config.json", "params.json"].into_iter().map(|n| path.join(n)).find(|p| p.exists());
        found.ok_or_else(|| StoreError::NoConfig { path: path.to_owned() })?
    } else {
        path.to_owned()
    };
    let bytes = read_bounded(&file, MAX_MODEL_CONFIG)?;
    Ok(ModelFile { name: model_name(&file), path: file, bytes })
}

pub(crate) fn model_name(file: &Path) -> String {
    let stem = file.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    if !matches!(stem.as_str(), "config" | "params") {
        return stem;
    }
    // `.` and `..` have no name of their own
    let folder = file.parent().and_then(|p| {
        p.file_name().map(|n| n.to_string_lossy().into_owned()).or_else(|| {
            let real = std::fs::canonicalize(if p.as_os_str().is_empty() { Path::new(".") } else { p }).ok()?;
            real.file_name().map(|n| n.to_string_lossy().into_owned())
        })
    });
    folder.unwrap_or(stem)
}
