//! The `--on` grammar: `[NODES x] COUNT x GPU | [NODES x] node type | provider/instance`.

use std::fmt;
use std::str::FromStr;

use crate::catalog::Hardware;
use crate::lookup::LookupError;
use crate::node::NodeShape;

/// Most GPUs that one node may be asked to have (a rack of 576).
pub const MAX_GPUS_PER_NODE: u32 = 576;
/// Most nodes that may be asked for.
pub const MAX_NODES: u32 = 4096;

/// What `--on` said, before the catalog was asked: counts and a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnSpec {
    counts: Vec<u32>,
    target: String,
}

/// Why an `--on` text means nothing, with what to type instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OnError {
    /// Nothing was typed, or only counts.
    #[error("`{text}` names no GPU and no node type")]
    NoTarget {
        /// What was typed.
        text: String,
    },
    /// A count of zero, a negative or a broken one.
    #[error("`{count}` in `{text}` is not a count of at least 1")]
    BadCount {
        /// What was typed.
        text: String,
        /// The count in it.
        count: String,
    },
    /// More than the cap.
    #[error("{count} {what} in `{text}`; the limit is {limit}")]
    TooMany {
        /// What was typed.
        text: String,
        /// `nodes` or `GPUs per node`.
        what: &'static str,
        /// How many.
        count: u64,
        /// The cap.
        limit: u32,
    },
    /// Two counts before a node type, or three counts.
    #[error("`{text}` has one count too many")]
    TooManyCounts {
        /// What was typed.
        text: String,
    },
    /// The node type is a part of a GPU.
    #[error("`{node}` is a part of a GPU, and a model is laid out on whole ones")]
    Partitioned {
        /// The node type's id.
        node: String,
    },
    /// The name is in no catalog.
    #[error(transparent)]
    Lookup(#[from] LookupError),
}

impl OnError {
    /// What to type instead.
    pub fn hint(&self) -> String {
        match self {
            Self::Lookup(e) => e.hint(),
            Self::TooManyCounts { .. } => "type `2xdgx-b200` for nodes, `2x8xh100-sxm` for nodes and GPUs".into(),
            _ => "type for example `8xh100-sxm`, `2x8xh200-sxm`, `dgx-b200` or `aws/p5.48xlarge`".into(),
        }
    }
}

/// Splits a leading `COUNT x` off, if there is one.
fn split_count(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let signed = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = signed.bytes().take_while(u8::is_ascii_digit).count();
    // `0.5xh100-sxm` and `1_000x…` are counts that went wrong, not names
    let tail = signed[digits..].bytes().take_while(|b| matches!(b, b'0'..=b'9' | b'.' | b',' | b'_')).count();
    if digits == 0 && tail == 0 {
        return None;
    }
    let rest = signed[digits + tail..].trim_start();
    let count = text[..text.len() - signed.len() + digits + tail].trim();
    let after = rest.strip_prefix(['x', 'X', '×', '*'])?;
    Some((count, after))
}

impl FromStr for OnSpec {
    type Err = OnError;

    fn from_str(text: &str) -> Result<Self, OnError> {
        let shown: String = text.chars().take(80).collect();
        let mut counts = Vec::new();
        let mut rest = text.trim();
        rest = rest.strip_prefix("generic/").unwrap_or(rest);
        while let Some((count, after)) = split_count(rest) {
            let Ok(value) = count.parse::<u64>() else {
                return Err(OnError::BadCount { text: shown, count: count.chars().take(40).collect() });
            };
            if value == 0 || count.starts_with('+') {
                return Err(OnError::BadCount { text: shown, count: count.into() });
            }
            if value > u64::from(MAX_NODES) {
                let (what, limit) = ("nodes or GPUs", MAX_NODES);
                return Err(OnError::TooMany { text: shown, what, count: value, limit });
            }
            if counts.len() == 2 {
                return Err(OnError::TooManyCounts { text: shown });
            }
            counts.push(value as u32);
            rest = after.trim_start();
            // the id that plans print: `2xgeneric/8xh100-sxm`
            rest = rest.strip_prefix("generic/").unwrap_or(rest);
        }
        let target = rest.trim();
        if target.is_empty() || target.len() > 200 || target.chars().any(char::is_control) {
            return Err(OnError::NoTarget { text: shown });
        }
        Ok(Self { counts, target: target.to_owned() })
    }
}

impl fmt::Display for OnSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for count in &self.counts {
            text.push_str(&format!("{count}x"));
        }
        text.push_str(&self.target);
        f.pad(&text)
    }
}

impl OnSpec {
    /// `nodes` times a node type by id.
    pub fn of_node(nodes: u32, id: &str) -> Self {
        Self { counts: if nodes == 1 { vec![] } else { vec![nodes] }, target: id.to_owned() }
    }

    /// `nodes` times `gpus` of a GPU by id.
    pub fn of_gpus(nodes: u32, gpus: u32, id: &str) -> Self {
        Self { counts: if nodes == 1 { vec![gpus] } else { vec![nodes, gpus] }, target: id.to_owned() }
    }

    /// The name in it: a GPU, a node type or `provider/instance`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The counts in it, in order.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// The node count where the name is a node type: the only count, or 1.
    pub fn nodes_of_type(&self) -> Result<u32, OnError> {
        match self.counts.as_slice() {
            [] => Ok(1),
            [nodes] => Ok(*nodes),
            _ => Err(OnError::TooManyCounts { text: self.to_string() }),
        }
    }

    /// Nodes and GPUs per node where the name is a GPU.
    pub fn nodes_and_gpus(&self) -> Result<(u32, u32), OnError> {
        let (nodes, gpus) = match self.counts.as_slice() {
            [] => (1, 1),
            [gpus] => (1, *gpus),
            [nodes, gpus, ..] => (*nodes, *gpus),
        };
        if gpus > MAX_GPUS_PER_NODE {
            let (text, count) = (self.to_string(), u64::from(gpus));
            return Err(OnError::TooMany { text, what: "GPUs per node", count, limit: MAX_GPUS_PER_NODE });
        }
        Ok((nodes, gpus))
    }

    /// The node and how many of it: GPU names give a generic node, node types their own.
    pub fn resolve(&self, hardware: &Hardware) -> Result<(NodeShape, u32), OnError> {
        let gpu_error = match hardware.find_gpu(&self.target) {
            Ok(gpu) => {
                let (nodes, gpus) = self.nodes_and_gpus()?;
                return Ok((NodeShape::generic(gpu, gpus), nodes));
            }
            Err(e) => e,
        };
        match hardware.find_node(&self.target) {
            Ok(node) => {
                let shape = hardware.shape(node).ok_or_else(|| OnError::Partitioned { node: node.id.clone() })?;
                Ok((shape, self.nodes_of_type()?))
            }
            // two counts can only mean a GPU; a slash can only mean a provider's instance
            Err(node_error) => Err(match &gpu_error {
                _ if self.target.contains('/') => node_error.into(),
                LookupError::AmbiguousGpu { .. } => gpu_error.into(),
                _ if self.counts.len() == 2 || node_error.suggestions().is_empty() => gpu_error.into(),
                _ if gpu_error.suggestions().is_empty() => node_error.into(),
                _ => gpu_error.into(),
            }),
        }
    }
}
