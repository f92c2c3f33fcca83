//! A config as it lies on disk, read with care: every key is looked up through one reader that bounds what it
//! returns, falls back from the inner (`text_config`) to the outer object, and remembers what was looked at.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::error::ModelError;
use crate::spec::Problem;

/// Largest config that is read; the largest real one is under 1 MB.
pub const MAX_FILE_BYTES: usize = 16 << 20;
/// Most layers that a config may claim.
pub(crate) const MAX_LAYERS: u64 = 10_000;
/// Most experts of one layer.
pub(crate) const MAX_EXPERTS: u64 = 100_000;
/// Largest single dimension: rows of a vocabulary, width of a layer.
pub(crate) const MAX_DIMENSION: u64 = 1 << 26;
/// Most JSON values in one config.
const MAX_VALUES: usize = 1_000_000;

/// Parses the bytes of a config into its object.
pub(crate) fn parse(name: &str, bytes: &[u8]) -> Result<Map<String, Value>, ModelError> {
    if bytes.len() > MAX_FILE_BYTES {
        return Err(ModelError::TooLarge { name: name.into(), size: bytes.len() });
    }
    if bytes.iter().filter(|b| matches!(b, b',' | b'[' | b'{')).count() > MAX_VALUES {
        return Err(ModelError::BadValue {
            key: "config".into(),
            value: name.chars().take(60).collect(),
            wanted: format!("at most {MAX_VALUES} values"),
        });
    }
    let first: Result<Value, _> = serde_json::from_slice(bytes);
    let parsed = first.or_else(|e| finite(bytes).map_or(Err(e), |bytes| serde_json::from_slice(&bytes)));
    let value: Value = parsed.map_err(|e| ModelError::NotJson {
        name: name.into(),
        reason: match e.classify() {
            serde_json::error::Category::Eof => "it ends too early".into(),
            _ => {
                let text = e.to_string();
                text.split(" at line ").next().unwrap_or(&text).to_owned()
            }
        },
        line: e.line(),
        column: e.column(),
        truncated: e.is_eof(),
    })?;
    match value {
        Value::Object(map) => Ok(map),
        other => Err(ModelError::NotAnObject { name: name.into(), found: kind(&other) }),
    }
}

/// Python writes `Infinity` and `NaN`, which JSON does not have (Nemotron's `time_step_limit`). Outside texts they become
/// `null` or 0, padded so that positions in messages stay right; `None` where there are none.
fn finite(bytes: &[u8]) -> Option<Vec<u8>> {
    const WORDS: [(&[u8], &[u8]); 3] = [(b"-Infinity", b"null     "), (b"Infinity", b"null    "), (b"NaN", b"0  ")];
    let mut out = Vec::with_capacity(bytes.len());
    let (mut rest, mut quoted, mut changed) = (bytes, false, false);
    while let Some((&byte, tail)) = rest.split_first() {
        let word = WORDS.iter().find(|(word, _)| !quoted && rest.starts_with(word));
        if let Some((word, plain)) = word {
            out.extend_from_slice(plain);
            rest = rest.get(word.len()..).unwrap_or_default();
            changed = true;
            continue;
        }
        out.push(byte);
        rest = tail;
        if byte == b'\\' && quoted {
            out.extend(rest.first());
            rest = rest.get(1..).unwrap_or_default();
        } else if byte == b'"' {
            quoted = !quoted;
        }
    }
    changed.then_some(out)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(_) => "an object".into(),
        other => other.to_string().chars().take(60).collect(),
    }
}

#[derive(Default)]
struct Notes {
    used: BTreeSet<String>,
    problems: Vec<Problem>,
}

/// A bounded view of one config object and the objects around it.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    /// Model name, for messages.
    pub(crate) name: &'a str,
    /// Family, for messages.
    pub(crate) family: &'static str,
    map: &'a Map<String, Value>,
    outer: Option<&'a Map<String, Value>>,
    path: String,
    notes: Rc<RefCell<Notes>>,
}

type Read<T> = Result<T, ModelError>;

impl<'a> Reader<'a> {
    pub(crate) fn new(name: &'a str, map: &'a Map<String, Value>) -> Self {
        Self { name, family: "config", map, outer: None, path: String::new(), notes: Rc::default() }
    }

    /// The reader for a nested object; its missing keys fall back to this one where `inherit`.
    pub(crate) fn nested(&self, key: &str, inherit: bool) -> Read<Option<Self>> {
        self.mark(key);
        match self.map.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Self {
                map,
                outer: if inherit { Some(self.map) } else { None },
                path: format!("{}{key}.", self.path),
                ..self.clone()
            })),
            Some(other) => Err(self.bad(key, other, "an object")),
        }
    }

    /// The same under a family's name, for messages.
    pub(crate) fn of(&self, family: &'static str) -> Self {
        Self { family, ..self.clone() }
    }

    fn mark(&self, key: &str) {
        self.notes.borrow_mut().used.insert(key.to_owned());
    }

    /// Notes something that the result leans on.
    pub(crate) fn problem(&self, key: impl Into<String>, message: impl Into<String>) {
        let problem = Problem { key: key.into(), message: message.into() };
        let mut notes = self.notes.borrow_mut();
        if !notes.problems.contains(&problem) {
            notes.problems.push(problem);
        }
    }

    /// All notes so far, taken out.
    pub(crate) fn take_problems(&self) -> Vec<Problem> {
        std::mem::take(&mut self.notes.borrow_mut().problems)
    }

    pub(crate) fn bad(&self, key: &str, value: &Value, wanted: &str) -> ModelError {
        ModelError::BadValue { key: format!("{}{key}", self.path), value: shown(value), wanted: wanted.into() }
    }

    pub(crate) fn unknown(&self, what: impl Into<String>) -> ModelError {
        ModelError::UnknownArchitecture { name: self.name.into(), what: what.into(), suggestions: Vec::new() }
    }

    pub(crate) fn missing(&self, keys: &[&str]) -> ModelError {
        ModelError::Missing { key: keys.join("` or `"), family: self.family.into() }
    }

    /// The first of `keys` that is present and not null, inner object first.
    pub(crate) fn raw(&self, keys: &[&'static str]) -> Option<(&'static str, &'a Value)> {
        for map in [Some(self.map), self.outer].into_iter().flatten() {
            for &key in keys {
                if let Some(value) = map.get(key) {
                    self.mark(key);
                    if !value.is_null() {
                        // a synonym that says the same is understood too; one that differs stays a problem
                        for &other in keys {
                            if map.get(other) == Some(value) {
                                self.mark(other);
                            }
                        }
                        return Some((key, value));
                    }
                }
            }
        }
        None
    }

    /// Whether a key is there and not null.
    pub(crate) fn has(&self, key: &'static str) -> bool {
        self.raw(&[key]).is_some()
    }

    fn whole(&self, key: &str, value: &Value, least: u64, most: u64) -> Read<u64> {
        let number = value.as_u64().or_else(|| {
            // some exporters write whole numbers as `4096.0`
            value.as_f64().filter(|f| f.fract() == 0.0 && *f >= 0.0 && *f <= most as f64).map(|f| f as u64)
        });
        number
            .filter(|n| (least..=most).contains(n))
            .ok_or_else(|| self.bad(key, value, &format!("a whole number from {least} to {most}")))
    }

    /// A positive dimension, if given.
    pub(crate) fn dim_opt(&self, keys: &[&'static str]) -> Read<Option<u64>> {
        self.raw(keys).map(|(k, v)| self.whole(k, v, 1, MAX_DIMENSION)).transpose()
    }

    /// A positive dimension.
    pub(crate) fn dim(&self, keys: &[&'static str]) -> Read<u64> {
        self.dim_opt(keys)?.ok_or_else(|| self.missing(keys))
    }

    /// A positive dimension with a default that is noted.
    pub(crate) fn dim_or(&self, keys: &[&'static str], default: u64, why: &str) -> Read<u64> {
        match self.dim_opt(keys)? {
            Some(value) => Ok(value),
            None => {
                let key = keys.first().copied().unwrap_or_default();
                self.problem(key, format!("not given, taken as {default} ({why})"));
                Ok(default)
            }
        }
    }

    /// A count that may be zero, with a silent default for "none".
    pub(crate) fn count(&self, keys: &[&'static str], default: u64, most: u64) -> Read<u64> {
        self.raw(keys).map_or(Ok(default), |(k, v)| self.whole(k, v, 0, most))
    }

    /// Number of layers.
    pub(crate) fn layers(&self) -> Read<u64> {
        let keys = &["num_hidden_layers", "n_layer", "num_layers", "n_layers", "layers"];
        let (key, value) = self.raw(keys).ok_or_else(|| self.missing(keys))?;
        self.whole(key, value, 1, MAX_LAYERS)
    }

    /// A factor such as an expansion ratio.
    pub(crate) fn factor(&self, keys: &[&'static str], default: f64) -> Read<f64> {
        match self.raw(keys) {
            None => Ok(default),
            Some((k, v)) => match v.as_f64() {
                Some(f) if f > 0.0 && f <= 1e6 => Ok(f),
                _ => Err(self.bad(k, v, "a positive number")),
            },
        }
    }

    /// A flag, if given.
    pub(crate) fn flag_opt(&self, keys: &[&'static str]) -> Read<Option<bool>> {
        match self.raw(keys) {
            None => Ok(None),
            Some((_, Value::Bool(b))) => Ok(Some(*b)),
            Some((_, Value::Number(n))) if n.as_u64() == Some(0) => Ok(Some(false)),
            Some((_, Value::Number(n))) if n.as_u64() == Some(1) => Ok(Some(true)),
            Some((k, v)) => Err(self.bad(k, v, "true or false")),
        }
    }

    /// A flag with its default.
    pub(crate) fn flag(&self, key: &'static str, default: bool) -> Read<bool> {
        Ok(self.flag_opt(&[key])?.unwrap_or(default))
    }

    /// A text, if given.
    pub(crate) fn text(&self, keys: &[&'static str]) -> Read<Option<&'a str>> {
        match self.raw(keys) {
            None => Ok(None),
            Some((_, Value::String(s))) => Ok(Some(s)),
            Some((k, v)) => Err(self.bad(k, v, "a text")),
        }
    }

    /// A list of texts, if given.
    pub(crate) fn texts(&self, keys: &[&'static str]) -> Read<Option<Vec<&'a str>>> {
        match self.raw(keys) {
            None => Ok(None),
            Some((k, v)) => {
                let list = v.as_array().ok_or_else(|| self.bad(k, v, "a list of texts"))?;
                let texts: Option<Vec<_>> = list.iter().map(Value::as_str).collect();
                texts.map(Some).ok_or_else(|| self.bad(k, v, "a list of texts"))
            }
        }
    }

    /// A list of counts, if given as a list.
    pub(crate) fn counts(&self, keys: &[&'static str]) -> Read<Option<Vec<u64>>> {
        match self.raw(keys) {
            Some((k, Value::Array(list))) => {
                list.iter().map(|v| self.whole(k, v, 0, MAX_DIMENSION)).collect::<Read<Vec<_>>>().map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Layer kinds, one per layer: a shorter or longer list is an error.
    pub(crate) fn per_layer(&self, keys: &[&'static str], layers: u64) -> Read<Option<Vec<&'a str>>> {
        let Some(list) = self.texts(keys)? else { return Ok(None) };
        if list.len() as u64 != layers {
            let (key, value) = self.raw(keys).ok_or_else(|| self.missing(keys))?;
            return Err(self.bad(key, value, &format!("a list of {layers}, one per layer")));
        }
        Ok(Some(list))
    }

    /// Marks keys as understood although nothing of the size follows from them here.
    pub(crate) fn ignore(&self, keys: &[&'static str]) {
        for key in keys {
            self.mark(key);
        }
    }

    /// Turns what nobody looked at into problems; a whole part (`vision_config`) that nobody looked at is an error.
    pub(crate) fn finish(&self) -> Read<()> {
        for map in [Some(self.map), self.outer].into_iter().flatten() {
            for (key, value) in map {
                // what is switched off or empty adds nothing
                let off = match value {
                    Value::Null | Value::Bool(false) => true,
                    Value::Array(list) => list.is_empty(),
                    Value::Object(map) => map.is_empty(),
                    Value::Number(n) => n.as_f64() == Some(0.0),
                    _ => false,
                };
                if off || self.notes.borrow().used.contains(key) || crate::harmless::is(key) {
                    continue;
                }
                let part = key.ends_with("_config") && value.as_object().is_some_and(|o| o.len() > 1);
                if part {
                    return Err(self.unknown(format!("its part `{key}`")));
                }
                let key: String = key.chars().take(60).collect();
                self.problem(key, format!("not understood (`{}`), ignored; it may change the size", shown(value)));
            }
        }
        Ok(())
    }
}
