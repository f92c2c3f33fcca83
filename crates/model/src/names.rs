//! Model names as people write them, taken apart into words that can be compared.

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
        let mut pieces = lower.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).filter(|p| !p.is_empty());
        let mut first = true;
        for piece in &mut pieces {
            let piece = piece.trim_matches('.');
            // `Meta-Llama-3.1` was renamed to `Llama-3.1`
            let meta = first && piece == "meta" && lower.contains("llama");
            first = false;
            if piece.is_empty() || meta || PLAIN.contains(&piece) {
                continue;
            }
            if FORMAT.contains(&piece) {
                format.push_str(piece);
            } else if SOFT.contains(&piece) || is_date(piece) || is_revision(piece) {
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

/// `2407`, `0528`, `2512`: a release date.
fn is_date(piece: &str) -> bool {
    piece.len() == 4 && piece.chars().all(|c| c.is_ascii_digit()) && !piece.ends_with("00")
}

/// `v0.1`.
fn is_revision(piece: &str) -> bool {
    piece.strip_prefix("v0.").is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
}
