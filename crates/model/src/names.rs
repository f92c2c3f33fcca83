//! Model names as people write them, taken apart into words that can be compared.

use crate::format::WeightFormat;

/// A name in comparable parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// Organisation under its current name, in lower case.
    pub(crate) org: Option<String>,
    /// Words that identify the model.
    words: Vec<String>,
    /// Words that tell tunings of one model apart: `instruct`, a release date, `v0.1`.
    soft: Vec<String>,
    /// The quantised format's words, joined; none for the original.
    pub(crate) format: Option<String>,
}

/// The current name of an organisation, in lower case.
pub(crate) fn canonical_org(org: &str) -> String {
    let org = org.to_ascii_lowercase();
    match org.as_str() {
        "zhipuai" | "thudm" | "z-ai" | "zai" => "zai-org".into(),
        "cohereforai" | "cohere" => "coherelabs".into(),
        "meta" | "facebook-llama" | "metaai" => "meta-llama".into(),
        "moonshot" | "moonshot-ai" => "moonshotai".into(),
        "deepseek" => "deepseek-ai".into(),
        "mistral" | "mistral-ai" => "mistralai".into(),
        "alibaba" | "qwenlm" => "qwen".into(),
        "gpt2" => "openai-community".into(),
        "bert" => "google-bert".into(),
        "minimax" | "minimax-ai" => "minimaxai".into(),
        "ibm" => "ibm-granite".into(),
        "xai" => "xai-org".into(),
        _ => org,
    }
}

/// From this cost on the catalog's entry is not the repository that was asked for.
pub(crate) const OTHER: u32 = 4;

const SOFT: &[&str] = &["instruct", "it", "chat", "base", "hf", "pt", "thinking", "latest", "preview", "text"];
const FORMAT: &[&str] = &[
    "fp8",
    "nvfp4",
    "mxfp4",
    "fp4",
    "awq",
    "gptq",
    "int4",
    "int8",
    "w4a16",
    "w8a8",
    "w8a16",
    "dynamic",
    "static",
    "bnb",
    "4bit",
    "8bit",
    "gguf",
    "kv",
    "quantized",
    "pertensor",
    "block",
];
/// Publishers that begin their models' names with their own.
const PUBLISHERS: &[&str] = &["nvidia", "c4ai"];
/// The original precision, said in the name: no derivative.
const PLAIN: &[&str] = &["bf16", "fp16"];

impl Name {
    pub(crate) fn parse(text: &str) -> Self {
        let (org, model) = match text.rsplit_once('/') {
            Some((org, model)) => (Some(canonical_org(org.rsplit('/').next().unwrap_or(org))), model),
            None => (None, text),
        };
        let mut words = Vec::new();
        let mut soft = Vec::new();
        let mut format = String::new();
        let lower = model.to_ascii_lowercase();
        // `…-Q4_K_M`, and `…:q8_0` as Ollama writes it
        let mut lower = lower.as_str();
        for name in WeightFormat::names().iter().filter(|n| n.contains('_')) {
            if let Some(rest) = lower.strip_suffix(name)
                && let Some(rest) = rest.strip_suffix(['-', ':', '.', '_', ' '])
            {
                format.push_str(name);
                lower = rest;
                break;
            }
        }
        for (at, piece) in pieces(lower).iter().map(String::as_str).enumerate() {
            // `Meta-Llama-3.1` was renamed to `Llama-3.1`; publishers put their own name before others
            let publisher = at == 0 && ((piece == "meta" && lower.contains("llama")) || PUBLISHERS.contains(&piece));
            if publisher || PLAIN.contains(&piece) {
                continue;
            }
            let recipe = !format.is_empty() && piece.starts_with('v') && piece.len() == 2;
            if FORMAT.contains(&piece) {
                format.push_str(piece);
            } else if recipe || SOFT.contains(&piece) || is_date(piece) || is_revision(piece) {
                soft.push(piece.to_owned());
            } else {
                words.push(piece.to_owned());
            }
        }
        Self { org, words, soft, format: (!format.is_empty()).then_some(format) }
    }

    /// The identifying words without separators.
    pub(crate) fn joined(&self) -> String {
        self.words.concat()
    }

    /// How far a catalog name is from what was asked; `None` where it is another model.
    ///
    /// 0 the same words; up to 3 an active size more (`qwen3-235b`) or tuning words that were not asked for; from
    /// [`OTHER`] on tuning words asked for that the catalog lacks, or another format.
    pub(crate) fn cost(&self, catalog: &Self) -> Option<u32> {
        if self.words.is_empty() {
            return None;
        }
        let (a, b) = (self.joined(), catalog.joined());
        let mut cost = 0;
        if a != b {
            // only the active size of a mixture of experts may be left out
            let rest = b.strip_prefix(&a)?;
            let active = rest.strip_prefix('a')?.strip_suffix('b')?;
            if active.is_empty() || !active.chars().all(|c| c.is_ascii_digit() || c == '.') {
                return None;
            }
            cost += 1;
        }
        if self.soft != catalog.soft {
            let asked_more = self.soft.iter().any(|w| !catalog.soft.contains(w));
            let unasked = catalog.soft.iter().filter(|w| !self.soft.contains(w)).count();
            // the unnamed variant is the base model first, then the fewest further words
            cost += if asked_more { 2 * OTHER } else { 0 };
            cost += u32::try_from(unasked.min(2)).unwrap_or(2);
        }
        if self.format != catalog.format {
            // a quantised catalog entry never stands for another format of the model
            if catalog.format.is_some() {
                return None;
            }
            cost += 4 * OTHER;
        }
        Some(cost)
    }
}

/// Splits at everything but letters, digits, and dots between digits; an underscore between single
/// digits is such a dot.
fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let digit = |i: Option<usize>| i.and_then(|i| chars.get(i)).is_some_and(char::is_ascii_digit);
    // `3_3` is a version, `3.1_405b` is not
    let alone = |i: usize| {
        let at =
            |i: Option<usize>| i.and_then(|i| chars.get(i)).is_some_and(|c| c.is_ascii_alphanumeric() || *c == '.');
        !at(i.checked_sub(2)) && !at(Some(i + 2))
    };
    let mut out = Vec::new();
    let mut piece = String::new();
    for (i, c) in chars.iter().enumerate() {
        if c.is_ascii_alphanumeric() {
            piece.push(*c);
        } else if digit(i.checked_sub(1)) && digit(Some(i + 1)) && (*c == '.' || (*c == '_' && alone(i))) {
            piece.push('.');
        } else if !piece.is_empty() {
            out.push(std::mem::take(&mut piece));
        }
    }
    if !piece.is_empty() {
        out.push(piece);
    }
    out
}

/// `2407`, `0528`, `2512`: a release date.
fn is_date(piece: &str) -> bool {
    piece.len() == 4 && piece.chars().all(|c| c.is_ascii_digit()) && !piece.ends_with("00")
}

/// `v0.1`.
fn is_revision(piece: &str) -> bool {
    piece.strip_prefix("v0.").is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
}
