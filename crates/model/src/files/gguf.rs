//! GGUF: metadata, a table of tensors, the data. Versions 2 and 3, little-endian.

use std::collections::BTreeMap;
use std::io::{self, Read};

use super::ggml::ggml_type;
use super::spans::Spans;
use super::{Builder, FileError, MAX_NAME_BYTES, MAX_TENSORS, cut};

/// Most metadata entries.
const MAX_ENTRIES: u64 = 65_536;
/// Most elements of one metadata array; vocabularies have some 300,000.
const MAX_ARRAY: u64 = 16 << 20;
/// Longest text that is kept; longer ones are passed over.
const MAX_KEPT_TEXT: u64 = 4096;
/// Elements of numeric arrays that are kept (one per layer).
const MAX_KEPT_ARRAY: u64 = 10_000;
/// Bytes of metadata values that are kept in all.
const MAX_KEPT: u64 = 8 << 20;
/// Most bytes before the data.
const MAX_HEADER: u64 = 512 << 20;
/// Bytes of the shortest tensor entry: an empty name, no dimensions, a type, an offset.
const SHORTEST_ENTRY: u64 = 24;

/// A metadata value, as far as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub enum MetaValue {
    /// A number that is not negative, or a truth value.
    Number(u64),
    /// Another number.
    Float(f64),
    /// A text of at most 4,096 bytes.
    Text(String),
    /// Whole numbers.
    Numbers(Vec<u64>),
    /// A text or a list that is not kept: its length.
    Length(u64),
}

/// The place of a file in a split checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Which file, from 0.
    pub index: u64,
    /// How many there are.
    pub count: u64,
    /// Tensors of all files, 0 if it says nothing.
    pub tensors: u64,
}

/// What tensor names and shapes say about the architecture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Rows of the embedding.
    pub vocab: Option<u64>,
    /// Whether there is a head of its own.
    pub head: bool,
    /// Whether queries have a bias.
    pub q_bias: bool,
    /// Whether the attention's output has a bias.
    pub o_bias: bool,
    /// Whether experts are there.
    pub experts: bool,
    /// Output width of the shared experts' up projection.
    pub shared_width: Option<u64>,
    /// Whether queries are normed.
    pub q_norm: bool,
}

/// A GGUF header, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gguf {
    /// Format version.
    pub version: u32,
    /// Tensors of this file.
    pub tensors: u64,
    /// Metadata by key.
    pub meta: BTreeMap<String, MetaValue>,
    /// What the tensors say.
    pub facts: Facts,
}

impl Gguf {
    /// A text of the metadata.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.meta.get(key) {
            Some(MetaValue::Text(t)) => Some(t),
            _ => None,
        }
    }

    /// A whole number of the metadata.
    pub fn number(&self, key: &str) -> Option<u64> {
        match self.meta.get(key) {
            Some(MetaValue::Number(n)) => Some(*n),
            _ => None,
        }
    }

    /// `general.architecture`.
    pub fn architecture(&self) -> Option<&str> {
        self.text("general.architecture")
    }

    /// A whole number under the architecture's own prefix: `context_length`.
    pub fn own(&self, key: &str) -> Option<u64> {
        self.number(&format!("{}.{key}", self.architecture()?))
    }

    /// Whether it carries a chat template.
    pub fn chat_template(&self) -> bool {
        self.meta.contains_key("tokenizer.chat_template")
    }

    /// Tokens of its vocabulary.
    pub fn vocabulary(&self) -> Option<u64> {
        match self.meta.get("tokenizer.ggml.tokens") {
            Some(MetaValue::Length(n)) => Some(*n),
            _ => None,
        }
    }

    /// Adds what another file of the same split checkpoint says about the architecture.
    pub fn add_facts(&mut self, other: &Self) {
        let (a, b) = (&mut self.facts, other.facts);
        a.vocab = a.vocab.or(b.vocab);
        a.shared_width = a.shared_width.or(b.shared_width);
        a.head |= b.head;
        a.q_bias |= b.q_bias;
        a.o_bias |= b.o_bias;
        a.experts |= b.experts;
        a.q_norm |= b.q_norm;
    }

    /// Its place in a split checkpoint.
    pub fn split(&self) -> Option<Split> {
        let count = self.number("split.count").filter(|c| *c > 1)?;
        Some(Split {
            index: self.number("split.no").unwrap_or(0),
            count,
            tensors: self.number("split.tensors.count").unwrap_or(0),
        })
    }
}

/// `model-00001-of-00003.gguf` taken apart: stem, number from 1, count.
pub fn split_name(name: &str) -> Option<(&str, u64, u64)> {
    let stem = name.strip_suffix(".gguf")?;
    let (stem, count) = stem.rsplit_once("-of-")?;
    let (stem, number) = stem.rsplit_once('-')?;
    let five = |t: &str| (t.len() == 5 && t.bytes().all(|b| b.is_ascii_digit())).then(|| t.parse().ok()).flatten();
    let (number, count): (u64, u64) = (five(number)?, five(count)?);
    (1..=count).contains(&number).then_some((stem, number, count))
}

/// Bytes in order, never past the file's end.
struct Cursor<R> {
    inner: R,
    at: u64,
    size: u64,
    kept: u64,
}

impl<R: Read> Cursor<R> {
    fn need(&self, bytes: u64) -> Result<(), FileError> {
        let end = self.at.saturating_add(bytes);
        if end > self.size {
            return Err(FileError::Truncated { need: end, have: self.size });
        }
        if end > MAX_HEADER {
            return Err(FileError::TooMuch { what: "bytes of the header", count: end, limit: MAX_HEADER });
        }
        Ok(())
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], FileError> {
        self.need(N as u64)?;
        let mut out = [0; N];
        self.inner.read_exact(&mut out).map_err(refused)?;
        self.at += N as u64;
        Ok(out)
    }

    fn u32(&mut self) -> Result<u32, FileError> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, FileError> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn skip(&mut self, bytes: u64) -> Result<(), FileError> {
        self.need(bytes)?;
        let passed = io::copy(&mut self.inner.by_ref().take(bytes), &mut io::sink()).map_err(refused)?;
        self.at += passed;
        if passed < bytes {
            return Err(FileError::Truncated { need: self.at + bytes - passed, have: self.at });
        }
        Ok(())
    }

    /// A text of at most `most` bytes; `None` where it is longer, and then it is passed over.
    fn text(&mut self, most: u64) -> Result<Result<String, u64>, FileError> {
        let length = self.u64()?;
        self.need(length)?;
        if length > most || self.kept.saturating_add(length) > MAX_KEPT {
            self.skip(length)?;
            return Ok(Err(length));
        }
        let mut out = vec![0; usize::try_from(length).unwrap_or(0)];
        self.inner.read_exact(&mut out).map_err(refused)?;
        self.at += length;
        Ok(Ok(String::from_utf8_lossy(&out).into_owned()))
    }

    fn name(&mut self, what: &'static str) -> Result<String, FileError> {
        match self.text(MAX_NAME_BYTES as u64)? {
            Ok(text) => Ok(text),
            Err(count) => Err(FileError::TooMuch { what, count, limit: MAX_NAME_BYTES as u64 }),
        }
    }

    /// One scalar of that type.
    fn scalar(&mut self, kind: u32) -> Result<MetaValue, FileError> {
        let signed = |n: i64| u64::try_from(n).map_or(MetaValue::Float(n as f64), MetaValue::Number);
        Ok(match kind {
            0 | 7 => MetaValue::Number(self.bytes::<1>()?.map(u64::from)[0]),
            1 => signed(i64::from(i8::from_le_bytes(self.bytes()?))),
            2 => MetaValue::Number(u64::from(u16::from_le_bytes(self.bytes()?))),
            3 => signed(i64::from(i16::from_le_bytes(self.bytes()?))),
            4 => MetaValue::Number(u64::from(self.u32()?)),
            5 => signed(i64::from(i32::from_le_bytes(self.bytes()?))),
            6 => MetaValue::Float(f64::from(f32::from_le_bytes(self.bytes()?))),
            10 => MetaValue::Number(self.u64()?),
            11 => signed(i64::from_le_bytes(self.bytes()?)),
            12 => MetaValue::Float(f64::from_le_bytes(self.bytes()?)),
            other => return Err(unknown_kind(other)),
        })
    }

    fn value(&mut self, kind: u32) -> Result<MetaValue, FileError> {
        match kind {
            8 => Ok(match self.text(MAX_KEPT_TEXT)? {
                Ok(text) => {
                    self.kept += text.len() as u64;
                    MetaValue::Text(text)
                }
                Err(length) => MetaValue::Length(length),
            }),
            9 => self.array(),
            other => self.scalar(other),
        }
    }

    fn array(&mut self) -> Result<MetaValue, FileError> {
        let (kind, count) = (self.u32()?, self.u64()?);
        if count > MAX_ARRAY {
            return Err(FileError::TooMuch { what: "elements of a metadata list", count, limit: MAX_ARRAY });
        }
        let width = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            8 | 10..=12 => 8,
            9 => {
                return Err(FileError::BadValue {
                    key: "metadata".into(),
                    value: "a list of lists".into(),
                    wanted: "a list of plain values".into(),
                });
            }
            other => return Err(unknown_kind(other)),
        };
        let bytes = count.saturating_mul(width);
        self.need(bytes)?;
        if kind == 8 {
            for _ in 0..count {
                let length = self.u64()?;
                self.skip(length)?;
            }
            return Ok(MetaValue::Length(count));
        }
        let whole = !matches!(kind, 6 | 12);
        if !whole || count > MAX_KEPT_ARRAY || self.kept.saturating_add(count * 8) > MAX_KEPT {
            self.skip(bytes)?;
            return Ok(MetaValue::Length(count));
        }
        self.kept += count * 8;
        let mut out = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
        for _ in 0..count {
            out.push(match self.scalar(kind)? {
                MetaValue::Number(n) => n,
                _ => 0,
            });
        }
        Ok(MetaValue::Numbers(out))
    }
}

fn refused(e: io::Error) -> FileError {
    FileError::Read { reason: e.to_string() }
}

fn unknown_kind(kind: u32) -> FileError {
    let wanted = "one of the 13 value types of GGUF (0 to 12)".into();
    FileError::BadValue { key: "metadata".into(), value: format!("value type {kind}"), wanted }
}

/// Reads the header of a GGUF file of `file_size` bytes from its start and sums its tensors into `into`. Reads nothing
/// of the data.
pub fn read_gguf(source: impl Read, file_size: u64, into: &mut Builder) -> Result<Gguf, FileError> {
    let mut c = Cursor { inner: source, at: 0, size: file_size, kept: 0 };
    let magic: [u8; 4] = c.bytes()?;
    if &magic != b"GGUF" {
        return Err(FileError::WrongKind { wanted: "GGUF", found: format!("it starts with {}", magic.escape_ascii()) });
    }
    let version = c.u32()?;
    if !matches!(version, 2 | 3) {
        let found = match version.swap_bytes() {
            2 | 3 => "it is big-endian".to_owned(),
            _ => format!("version {version}, versions 2 and 3 are read"),
        };
        return Err(FileError::WrongKind { wanted: "GGUF", found });
    }
    let (tensors, entries) = (c.u64()?, c.u64()?);
    if tensors > MAX_TENSORS {
        return Err(FileError::TooMuch { what: "tensors", count: tensors, limit: MAX_TENSORS });
    }
    if entries > MAX_ENTRIES {
        return Err(FileError::TooMuch { what: "metadata entries", count: entries, limit: MAX_ENTRIES });
    }
    c.need(tensors.saturating_mul(SHORTEST_ENTRY))?;
    let mut out = Gguf { version, tensors, ..Gguf::default() };
    for _ in 0..entries {
        let key = c.name("bytes of a metadata key")?;
        c.kept += key.len() as u64 + 64;
        if c.kept > 2 * MAX_KEPT {
            return Err(FileError::TooMuch { what: "bytes of metadata", count: c.kept, limit: 2 * MAX_KEPT });
        }
        let kind = c.u32()?;
        let value = c.value(kind)?;
        if out.meta.insert(key.clone(), value).is_some() {
            return Err(FileError::Duplicate { name: cut(&key) });
        }
    }
    let align = out.number("general.alignment").unwrap_or(32);
    if !align.is_power_of_two() || align > 1 << 20 {
        let wanted = "a power of two up to 1,048,576".into();
        return Err(FileError::BadValue { key: "general.alignment".into(), value: align.to_string(), wanted });
    }
    let layers = out.own("block_count").map(|n| n.saturating_sub(out.own("nextn_predict_layers").unwrap_or(0)));
    into.layers(layers.filter(|_| out.own("nextn_predict_layers").is_some()));
    // ranges are held against the data once its start is known
    let mut spans = Spans::new(tensors.saturating_mul(SHORTEST_ENTRY), SHORTEST_ENTRY);
    let mut last: (u64, String) = (0, String::new());
    for _ in 0..tensors {
        let (name, start, end) = tensor(&mut c, align, &mut out.facts, into)?;
        spans.add(&name, start, end)?;
        if end > last.0 {
            last = (end, name);
        }
    }
    let data = file_size.saturating_sub(c.at.next_multiple_of(align));
    if last.0 > data {
        return Err(FileError::Outside { name: cut(&last.1), end: last.0, have: data });
    }
    spans.finish(data)?;
    Ok(out)
}

fn tensor<R: Read>(
    c: &mut Cursor<R>,
    align: u64,
    facts: &mut Facts,
    into: &mut Builder,
) -> Result<(String, u64, u64), FileError> {
    let name = c.name("bytes of a tensor's name")?;
    let bad = |value: String, wanted: String| FileError::BadValue { key: cut(&name), value, wanted };
    let rank = c.u32()?;
    // ggml itself knows four
    if rank > 4 {
        return Err(bad(format!("{rank} dimensions"), "at most 4 dimensions".into()));
    }
    let mut dims = [1u64; 4];
    for slot in dims.iter_mut().take(rank as usize) {
        *slot = c.u64()?;
    }
    let (id, offset) = (c.u32()?, c.u64()?);
    let Some(kind) = ggml_type(id) else {
        return Err(bad(format!("type {id}"), "a known ggml type".into()));
    };
    let [row, rows, ..] = dims;
    if row % kind.block != 0 {
        return Err(bad(format!("{row} per row"), format!("a multiple of {} in {}", kind.block, kind.name)));
    }
    let elements = dims.iter().try_fold(1u64, |n, &d| n.checked_mul(d));
    let size = elements.and_then(|n| (n / kind.block).checked_mul(kind.bytes));
    let (Some(elements), Some(size)) = (elements, size) else {
        return Err(bad(format!("{dims:?}"), "a size below 2^64".into()));
    };
    if offset % align != 0 {
        return Err(bad(format!("offset {offset}"), format!("a multiple of the alignment {align}")));
    }
    let end =
        offset.checked_add(size).ok_or_else(|| bad(format!("offset {offset}"), "an offset in the file".into()))?;
    match name.as_str() {
        "token_embd.weight" => facts.vocab = Some(rows),
        "output.weight" => facts.head = true,
        n if n.ends_with("attn_q.bias") || n.ends_with("attn_qkv.bias") => facts.q_bias = true,
        n if n.ends_with("attn_output.bias") => facts.o_bias = true,
        n if n.ends_with("_exps.weight") => facts.experts = true,
        n if n.ends_with("ffn_up_shexp.weight") => facts.shared_width = Some(rows),
        n if n.ends_with("attn_q_norm.weight") => facts.q_norm = true,
        _ => {}
    }
    into.ggml(&name, kind.name, elements, size);
    Ok((name, offset, end))
}
