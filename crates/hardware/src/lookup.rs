//! Finding a GPU or a node type by what people type: exact, with suggestions, never a guess between variants.

use crate::gpu::Gpu;
use crate::node::NodeType;

/// Why a name led nowhere, with what to type instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// No GPU of that name.
    #[error("no catalog GPU is called `{text}`")]
    UnknownGpu {
        /// What was typed, cut to 60 characters.
        text: String,
        /// Near names, best first.
        suggestions: Vec<String>,
    },
    /// Several GPUs share that short name; they differ in memory, speed and links.
    #[error("`{text}` can be several GPUs: {}", variants.join(", "))]
    AmbiguousGpu {
        /// What was typed, cut to 60 characters.
        text: String,
        /// All that it can be, in catalog order.
        variants: Vec<String>,
    },
    /// No node type of that name.
    #[error("no catalog node type is called `{text}`")]
    UnknownNode {
        /// What was typed, cut to 60 characters.
        text: String,
        /// Near names, best first.
        suggestions: Vec<String>,
    },
}

impl LookupError {
    /// What could have been meant, best first.
    pub fn suggestions(&self) -> &[String] {
        match self {
            Self::UnknownGpu { suggestions, .. } | Self::UnknownNode { suggestions, .. } => suggestions,
            Self::AmbiguousGpu { variants, .. } => variants,
        }
    }

    /// What to type instead, for a `hint:` line.
    pub fn hint(&self) -> String {
        let quoted: Vec<String> = self.suggestions().iter().map(|s| format!("`{s}`")).collect();
        let list = match quoted.as_slice() {
            [] => return "list them with `nodewise gpus` and `nodewise nodes`".into(),
            [one] => one.clone(),
            [head @ .., last] => format!("{} or {last}", head.join(", ")),
        };
        match self {
            Self::AmbiguousGpu { .. } => format!("type the one you mean: {list}"),
            _ => format!("did you mean {list}?"),
        }
    }
}

fn cut(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Lower case, separators as `-`, outer ones removed.
fn normal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.trim().chars().take(120) {
        let c = c.to_ascii_lowercase();
        match c {
            ' ' | '_' | '-' | '\t' => {
                if !out.is_empty() && !out.ends_with('-') {
                    out.push('-');
                }
            }
            c => out.push(c),
        }
    }
    out.trim_end_matches('-').to_owned()
}

fn squash(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
}

/// Edit distance with insertion, deletion, substitution; inputs are short.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut current = Vec::with_capacity(b.len() + 1);
        current.push(i + 1);
        for (j, cb) in b.iter().enumerate() {
            let substituted = previous[j] + usize::from(ca != *cb);
            current.push(substituted.min(previous[j + 1] + 1).min(current[j] + 1));
        }
        previous = current;
    }
    previous[b.len()]
}

/// The GPU that `text` names exactly (any case, any separators, vendor prefix optional).
pub(crate) fn find_gpu<'c>(gpus: &'c [Gpu], text: &str) -> Result<&'c Gpu, LookupError> {
    let wanted = normal(text);
    if let Some(gpu) = gpus.iter().find(|g| g.id == wanted || g.short_id() == wanted) {
        return Ok(gpu);
    }
    let plain = squash(&wanted);
    if !plain.is_empty() {
        let mut same = gpus.iter().filter(|g| squash(&g.id) == plain || squash(g.short_id()) == plain);
        if let (Some(gpu), None) = (same.next(), same.next()) {
            return Ok(gpu);
        }
    }
    let bare = match wanted.split_once('-') {
        Some(("nvidia" | "amd" | "intel" | "apple", rest)) => rest,
        _ => wanted.as_str(),
    };
    // `h100`, `a100-80gb`: every word stands in the id, so all those are variants of it
    let words: Vec<&str> = bare.split('-').filter(|w| !w.is_empty()).collect();
    let variants: Vec<String> = gpus
        .iter()
        .filter(|g| !words.is_empty() && words.iter().all(|w| g.short_id().split('-').any(|part| part == *w)))
        .map(|g| g.short_id().to_owned())
        .collect();
    if variants.len() > 1 {
        return Err(LookupError::AmbiguousGpu { text: cut(text), variants });
    }
    if variants.len() == 1 {
        return Err(LookupError::UnknownGpu { text: cut(text), suggestions: variants });
    }
    let suggestions = suggest(bare, gpus.iter().map(Gpu::short_id), 3);
    Err(LookupError::UnknownGpu { text: cut(text), suggestions })
}

/// Near names: those that begin with the text first, then those within an edit distance of a third of it.
fn suggest<'n>(wanted: &str, names: impl Iterator<Item = &'n str>, most: usize) -> Vec<String> {
    if wanted.is_empty() {
        return Vec::new();
    }
    let plain = squash(wanted);
    let mut scored: Vec<(usize, usize, usize, &str)> = Vec::new();
    for (order, name) in names.enumerate() {
        let lower = squash(name);
        let words = name.split('-').count();
        let score = if !plain.is_empty() && lower.starts_with(&plain) {
            0
        } else {
            // `h100sxm5` is near `h100-sxm`, `h1000` near `h100-*` by its first word
            let first = name.split('-').next().unwrap_or(name);
            let near = distance(&plain, &lower).min(distance(&plain, &squash(first)) + 1);
            if near * 3 > plain.len().max(3) + 2 {
                continue;
            }
            near
        };
        scored.push((score, words, order, name));
    }
    scored.sort();
    scored.into_iter().take(most).map(|(.., name)| name.to_owned()).collect()
}

/// The node type that `text` names: its id, or `provider/instance`, in any case.
pub(crate) fn find_node<'c>(nodes: &'c [NodeType], text: &str) -> Result<&'c NodeType, LookupError> {
    let wanted = text.trim();
    let exact = |n: &&NodeType| {
        n.id.eq_ignore_ascii_case(wanted)
            || wanted.split_once('/').is_some_and(|(provider, name)| {
                n.provider.eq_ignore_ascii_case(provider)
                    && (n.name.eq_ignore_ascii_case(name) || n.id.eq_ignore_ascii_case(name))
            })
    };
    if let Some(node) = nodes.iter().find(exact) {
        return Ok(node);
    }
    // the instance name alone is enough where it is one provider's only
    let mut named = nodes.iter().filter(|n| n.name.eq_ignore_ascii_case(wanted));
    if let (Some(node), None) = (named.next(), named.next()) {
        return Ok(node);
    }
    let dashed = normal(&wanted.replace('/', "-"));
    let suggestions = suggest(&dashed, nodes.iter().map(|n| n.id.as_str()), 3);
    Err(LookupError::UnknownNode { text: cut(text), suggestions })
}
