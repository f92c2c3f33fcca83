//! `model.safetensors.index.json`: which shard holds which tensor.

use std::collections::BTreeSet;
use std::fmt;
use std::io::Read;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};

use super::safetensors::{Bounded, typed};
use super::{FileError, MAX_NAME_BYTES, MAX_TENSORS, cut};

/// Most shards of one checkpoint.
const MAX_SHARDS: u64 = 10_000;

/// An index, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// Tensors that it lists.
    pub tensors: u64,
    /// File names of the shards, plain names without folders.
    pub shards: BTreeSet<String>,
    /// Bytes of all tensors as `metadata.total_size` says.
    pub total_size: Option<u64>,
}

/// Whether a file name leads nowhere but into its own folder.
pub fn plain_file_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 255
        && name != "."
        && name != ".."
        && !name.chars().any(|c| matches!(c, '/' | '\\' | ':') || c.is_control())
}

/// Reads an index of `size` bytes.
pub fn read_index(source: impl Read, size: u64) -> Result<Index, FileError> {
    if size > super::MAX_HEADER_BYTES {
        return Err(FileError::TooMuch { what: "bytes of the index", count: size, limit: super::MAX_HEADER_BYTES });
    }
    let mut index = Index::default();
    let mut error = None;
    let mut json = serde_json::Deserializer::from_reader(Bounded::new(source.take(size)));
    let done = Top { index: &mut index, error: &mut error }.deserialize(&mut json).and_then(|()| json.end());
    done.map_err(|e| typed(error, &e, size))?;
    if index.shards.is_empty() {
        return Err(FileError::WrongKind {
            wanted: "safetensors index",
            found: "its `weight_map` names no file".into(),
        });
    }
    Ok(index)
}

struct Top<'a> {
    index: &'a mut Index,
    error: &'a mut Option<FileError>,
}

impl<'de> DeserializeSeed<'de> for Top<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Top<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `weight_map`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = false;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "weight_map" if seen => {
                    *self.error = Some(FileError::Duplicate { name: key });
                    return Err(A::Error::custom("duplicate"));
                }
                "weight_map" => {
                    seen = true;
                    map.next_value_seed(Weights { index: self.index, error: self.error })?;
                }
                "metadata" => {
                    // some writers give the size as a float
                    let meta: Meta = map.next_value()?;
                    self.index.total_size = meta.total_size.and_then(whole);
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

fn whole(n: f64) -> Option<u64> {
    (n.is_finite() && (0.0..9.0e15).contains(&n)).then_some(n as u64)
}

#[derive(serde::Deserialize)]
struct Meta {
    total_size: Option<f64>,
}

struct Weights<'a> {
    index: &'a mut Index,
    error: &'a mut Option<FileError>,
}

impl<'de> DeserializeSeed<'de> for Weights<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Weights<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensor names and file names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut fail = |e| {
            *self.error = Some(e);
            A::Error::custom("refused")
        };
        let mut spans = super::spans::Spans::new(0, 1);
        while let Some((tensor, file)) = map.next_entry::<String, String>()? {
            self.index.tensors += 1;
            if self.index.tensors > MAX_TENSORS {
                return Err(fail(FileError::TooMuch {
                    what: "tensors",
                    count: self.index.tensors,
                    limit: MAX_TENSORS,
                }));
            }
            if tensor.len() > MAX_NAME_BYTES {
                let (count, limit) = (tensor.len() as u64, MAX_NAME_BYTES as u64);
                return Err(fail(FileError::TooMuch { what: "bytes of a tensor's name", count, limit }));
            }
            if !plain_file_name(&file) {
                return Err(fail(FileError::Path { name: cut(&file) }));
            }
            spans.add(&tensor, 0, 0).map_err(&mut fail)?;
            if !self.index.shards.contains(&file) {
                self.index.shards.insert(file);
                let count = self.index.shards.len() as u64;
                if count > MAX_SHARDS {
                    return Err(fail(FileError::TooMuch { what: "shards", count, limit: MAX_SHARDS }));
                }
            }
        }
        spans.finish(0).map(|_| ()).map_err(fail)
    }
}
