//! Names and byte ranges of a file's tensors, kept small: a name is its 64-bit hash.

use std::hash::{BuildHasher, RandomState};

use super::{FileError, MAX_TENSORS};

/// What was seen so far: 24 bytes a tensor.
pub(crate) struct Spans {
    hasher: RandomState,
    names: Vec<u64>,
    ranges: Vec<(u64, u64)>,
}

impl Spans {
    /// For a header of that many bytes, whose shortest entry has `entry` bytes.
    pub(crate) fn new(header: u64, entry: u64) -> Self {
        let most = usize::try_from((header / entry.max(1)).min(MAX_TENSORS)).unwrap_or(0);
        Self { hasher: RandomState::new(), names: Vec::with_capacity(most), ranges: Vec::with_capacity(most) }
    }

    /// Takes one tensor's range.
    pub(crate) fn add(&mut self, name: &str, start: u64, end: u64) -> Result<(), FileError> {
        let count = self.names.len() as u64 + 1;
        if count > MAX_TENSORS {
            return Err(FileError::TooMuch { what: "tensors", count, limit: MAX_TENSORS });
        }
        self.names.push(self.hasher.hash_one(name));
        if end > start {
            self.ranges.push((start, end));
        }
        Ok(())
    }

    /// Whether a name stands twice or ranges overlap; gives the bytes that no tensor covers.
    pub(crate) fn finish(mut self, data: u64) -> Result<u64, FileError> {
        self.names.sort_unstable();
        if self.names.windows(2).any(|w| matches!(w, [a, b] if a == b)) {
            return Err(FileError::Duplicate { name: "a tensor's name".into() });
        }
        self.ranges.sort_unstable();
        let (mut at, mut covered) = (0, 0u64);
        for (start, end) in self.ranges {
            if start < at {
                return Err(FileError::Overlap { at: start });
            }
            at = end;
            covered = covered.saturating_add(end - start);
        }
        Ok(data.saturating_sub(covered))
    }
}
