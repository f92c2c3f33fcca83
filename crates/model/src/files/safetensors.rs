//! Safetensors: 8 bytes of length, a JSON header, the data.

use std::fmt;
use std::io::{self, Read};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::spans::Spans;
use super::{Builder, FileError, MAX_HEADER_BYTES, MAX_NAME_BYTES, MAX_RANK, cut};

/// Longest text in a header; a longer one would be held whole by the parser.
const MAX_TEXT: u64 = 8 << 20;
/// Bytes of the shortest entry: `"a":{"dtype":"F8","shape":[],"data_offsets":[0,0]},`.
const SHORTEST_ENTRY: u64 = 50;
const HEADER: &str = "safetensors";

/// Passes bytes on and stops at a text that is too long to hold, without reading on.
pub(crate) struct Bounded<R> {
    inner: R,
    quoted: bool,
    escaped: bool,
    run: u64,
}

/// What the reader above says when it stops.
const LONG: &str = "a text of more than 8 MiB";

impl<R: Read> Bounded<R> {
    pub(crate) fn new(inner: R) -> io::BufReader<Self> {
        io::BufReader::with_capacity(1 << 16, Self { inner, quoted: false, escaped: false, run: 0 })
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        for &byte in buffer.get(..n).unwrap_or_default() {
            self.run += 1;
            if self.quoted && self.escaped {
                self.escaped = false;
            } else if self.quoted && byte == b'\\' {
                self.escaped = true;
            } else if byte == b'"' {
                self.quoted = !self.quoted;
                self.run = 0;
            }
            // numbers are held whole as well
            if self.run > MAX_TEXT && (self.quoted || !byte.is_ascii_whitespace()) {
                return Err(io::Error::other(LONG));
            }
        }
        Ok(n)
    }
}

/// The error that a visitor left, else what the parser says.
pub(crate) fn typed(left: Option<FileError>, e: &serde_json::Error, size: u64) -> FileError {
    if let Some(error) = left {
        return error;
    }
    if e.is_eof() {
        return FileError::NotJson { reason: format!("it ends too early, after {size} bytes") };
    }
    if e.is_io() {
        let reason = e.to_string();
        return if reason.contains(LONG) {
            FileError::NotJson { reason: LONG.into() }
        } else {
            FileError::Read { reason: cut(&reason) }
        };
    }
    FileError::NotJson { reason: e.to_string().chars().take(160).collect() }
}

fn kind(dtype: &str) -> Option<(&'static str, u64)> {
    // name and bits of an element
    Some(match dtype {
        "F64" => ("F64", 64),
        "F32" => ("F32", 32),
        "F16" => ("F16", 16),
        "BF16" => ("BF16", 16),
        "F8_E4M3" => ("F8_E4M3", 8),
        "F8_E5M2" => ("F8_E5M2", 8),
        "F8_E8M0" => ("F8_E8M0", 8),
        "F8_E4M3FNUZ" => ("F8_E4M3FNUZ", 8),
        "F8_E5M2FNUZ" => ("F8_E5M2FNUZ", 8),
        "F6_E2M3" => ("F6_E2M3", 6),
        "F6_E3M2" => ("F6_E3M2", 6),
        "F4" => ("F4", 4),
        "C64" => ("C64", 64),
        "I64" => ("I64", 64),
        "U64" => ("U64", 64),
        "I32" => ("I32", 32),
        "U32" => ("U32", 32),
        "I16" => ("I16", 16),
        "U16" => ("U16", 16),
        "I8" => ("I8", 8),
        "U8" => ("U8", 8),
        "BOOL" => ("BOOL", 8),
        _ => return None,
    })
}

/// Reads the header of a safetensors file of `file_size` bytes from its start and sums its tensors into `into`. Reads
/// 8 bytes and the header, nothing of the data.
pub fn read_safetensors(mut source: impl Read, file_size: u64, into: &mut Builder) -> Result<(), FileError> {
    let mut first = [0; 8];
    if file_size < 8 {
        return Err(FileError::Truncated { need: 8, have: file_size });
    }
    source.read_exact(&mut first).map_err(|e| FileError::Read { reason: e.to_string() })?;
    let length = u64::from_le_bytes(first);
    // what begins like another format is said so, not called a giant header
    if first.starts_with(b"GGUF") {
        return Err(FileError::WrongKind { wanted: HEADER, found: "it starts as a GGUF file does".into() });
    }
    if first.starts_with(b"version ") {
        return Err(FileError::WrongKind { wanted: HEADER, found: "it is a Git LFS pointer, not the file".into() });
    }
    if first.starts_with(b"PK\x03\x04") {
        return Err(FileError::WrongKind { wanted: HEADER, found: "it is a zip archive (a PyTorch file?)".into() });
    }
    if length > MAX_HEADER_BYTES {
        return Err(FileError::TooMuch { what: "bytes of the header", count: length, limit: MAX_HEADER_BYTES });
    }
    if length > file_size - 8 {
        return Err(FileError::Truncated { need: length.saturating_add(8), have: file_size });
    }
    let data = file_size - 8 - length;
    let mut error = None;
    let mut spans = Spans::new(length, SHORTEST_ENTRY);
    let mut json = serde_json::Deserializer::from_reader(Bounded::new(source.take(length)));
    let top = Top { data, into, spans: &mut spans, error: &mut error };
    let done = top.deserialize(&mut json).and_then(|()| json.end());
    done.map_err(|e| typed(error, &e, length))?;
    let gap = spans.finish(data)?;
    if gap > 0 {
        into.problem(format!("{gap} bytes of the data belong to no tensor"));
    }
    Ok(())
}

struct Top<'a> {
    data: u64,
    into: &'a mut Builder,
    spans: &'a mut Spans,
    error: &'a mut Option<FileError>,
}

impl<'de> DeserializeSeed<'de> for Top<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Top<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut metadata = false;
        while let Some(name) = map.next_key::<String>()? {
            if name == "__metadata__" {
                if metadata {
                    *self.error = Some(FileError::Duplicate { name });
                    return Err(A::Error::custom("duplicate"));
                }
                metadata = true;
                map.next_value::<Metadata>()?;
                continue;
            }
            if name.len() > MAX_NAME_BYTES {
                let (count, limit) = (name.len() as u64, MAX_NAME_BYTES as u64);
                *self.error = Some(FileError::TooMuch { what: "bytes of a tensor's name", count, limit });
                return Err(A::Error::custom("name"));
            }
            let entry: Entry = map.next_value()?;
            if let Err(e) = entry.check(&name, self.data).and_then(|(dtype, elements, start, end)| {
                self.spans.add(&name, start, end)?;
                self.into.tensor(&name, dtype, entry.shape.dims(), elements, end - start)
            }) {
                *self.error = Some(e);
                return Err(A::Error::custom("tensor"));
            }
        }
        Ok(())
    }
}

/// The free text beside the tensors: an object, read past without keeping it.
struct Metadata;

impl<'de> serde::Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_map(Self)
    }
}

impl<'de> Visitor<'de> for Metadata {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts as metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(self)
    }
}

#[derive(serde::Deserialize)]
struct Entry {
    dtype: String,
    shape: Dims,
    data_offsets: Dims,
}

/// Up to [`MAX_RANK`] numbers; more are counted, not kept.
struct Dims {
    values: [u64; MAX_RANK],
    count: usize,
}

impl Dims {
    fn dims(&self) -> &[u64] {
        self.values.get(..self.count).unwrap_or_default()
    }
}

impl<'de> serde::Deserialize<'de> for Dims {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Dims;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of at most {MAX_RANK} whole numbers")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Dims, A::Error> {
                let mut dims = Dims { values: [0; MAX_RANK], count: 0 };
                while let Some(n) = seq.next_element()? {
                    let Some(slot) = dims.values.get_mut(dims.count) else {
                        return Err(A::Error::custom(format!("more than {MAX_RANK} dimensions")));
                    };
                    *slot = n;
                    dims.count += 1;
                }
                Ok(dims)
            }
        }
        d.deserialize_seq(List)
    }
}

impl Entry {
    fn check(&self, name: &str, data: u64) -> Result<(&'static str, u64, u64, u64), FileError> {
        let bad = |value: String, wanted: String| FileError::BadValue { key: cut(name), value, wanted };
        let Some((dtype, bits)) = kind(&self.dtype) else {
            return Err(bad(cut(&self.dtype), "a known element type".into()));
        };
        let &[start, end] = self.data_offsets.dims() else {
            return Err(bad(format!("{} offsets", self.data_offsets.count), "two offsets, start and end".into()));
        };
        if start > end {
            return Err(bad(format!("{start}..{end}"), "a range that does not end before it starts".into()));
        }
        if end > data {
            return Err(FileError::Outside { name: cut(name), end, have: data });
        }
        let shape = self.shape.dims();
        let elements = shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d));
        let bytes = elements.and_then(|n| n.checked_mul(bits)).map(|b| b.div_ceil(8));
        match (elements, bytes) {
            (Some(elements), Some(bytes)) if bytes == end - start => Ok((dtype, elements, start, end)),
            _ => Err(bad(
                format!("{} bytes", end - start),
                format!("{dtype} of shape {shape:?}, which takes other bytes"),
            )),
        }
    }
}
