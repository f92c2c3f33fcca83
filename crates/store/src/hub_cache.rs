//! The local Hugging Face cache: `models--org--name/snapshots/<revision>`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::model_files::read_text;

/// The cache's folder from the values of `HF_HUB_CACHE` and `HF_HOME`, and the home folder; empty values count as none.
pub fn hub_cache(hub: Option<&OsStr>, hf_home: Option<&OsStr>, home: Option<&Path>) -> Option<PathBuf> {
    let set = |v: Option<&OsStr>| v.filter(|v| !v.is_empty()).map(PathBuf::from);
    set(hub).or_else(|| set(hf_home).map(|h| h.join("hub"))).or_else(|| home.map(|h| h.join(".cache/huggingface/hub")))
}

fn plain(part: &str) -> bool {
    !part.is_empty()
        && part.len() <= 96
        && !part.starts_with('.')
        && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// The snapshot of `org/name` that `refs/main` points to, else the newest one.
pub fn cached_snapshot(cache: &Path, name: &str) -> Option<PathBuf> {
    if !name.split('/').all(plain) || name.split('/').count() > 2 {
        return None;
    }
    let folder = cache.join(format!("models--{}", name.replace('/', "--")));
    let snapshots = folder.join("snapshots");
    let main = read_text(&folder.join("refs/main"), 200).ok();
    if let Some(revision) = main.as_deref().map(str::trim).filter(|r| plain(r)) {
        let snapshot = snapshots.join(revision);
        if snapshot.is_dir() {
            return Some(snapshot);
        }
    }
    let entries = std::fs::read_dir(&snapshots).ok()?.take(1000).filter_map(Result::ok);
    let dated =
        entries.filter(|e| e.path().is_dir()).filter_map(|e| Some((e.metadata().ok()?.modified().ok()?, e.path())));
    dated.max().map(|(_, path)| path)
}
