//! How a replica is cut over GPUs.

use std::fmt;

use model::{Attention, FeedForward, ModelSpec};

/// How a replica is cut: tensor, pipeline, attention-data and expert parallelism.
///
/// A replica takes `tp × dp × pp` GPUs. Attention and dense layers are cut over `tp` and repeated over `dp`; experts
/// live on `ep` groups of the `tp × dp` GPUs of a stage and are cut along their width inside a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Layout {
    /// Tensor parallel ranks.
    pub tp: u32,
    /// Pipeline stages.
    pub pp: u32,
    /// Attention data parallel ranks: each serves its own sequences.
    pub dp: u32,
    /// Expert parallel groups; 1 cuts every expert over all GPUs of the stage.
    pub ep: u32,
}

impl Default for Layout {
    fn default() -> Self {
        Self::tensor(1)
    }
}

impl Layout {
    /// Tensor parallelism alone.
    pub fn tensor(tp: u32) -> Self {
        Self { tp, pp: 1, dp: 1, ep: 1 }
    }

    /// GPUs of one replica.
    pub fn gpus(&self) -> u32 {
        self.stage_gpus().saturating_mul(self.pp)
    }

    /// GPUs of one pipeline stage: `tp × dp`.
    pub fn stage_gpus(&self) -> u32 {
        self.tp.saturating_mul(self.dp)
    }

    /// Whether this model can be cut so, by the rules that engines enforce: heads divide over `tp`, every stage has a
    /// layer, `ep` divides the GPUs of a stage and the experts. Fewer key-value heads than `tp` are repeated.
    ///
    /// A model of which only the size is known (no layers) can be cut any way but over experts.
    pub fn check(&self, spec: &ModelSpec) -> Result<(), LayoutError> {
        for (name, value) in [("tp", self.tp), ("pp", self.pp), ("dp", self.dp), ("ep", self.ep)] {
            if value == 0 {
                return Err(LayoutError::Zero { name });
            }
            if value > MAX_RANKS {
                return Err(LayoutError::TooMany { name, value });
            }
        }
        if !self.stage_gpus().is_multiple_of(self.ep) {
            return Err(LayoutError::ExpertGroups { ep: self.ep, gpus: self.stage_gpus() });
        }
        let layers: u32 = spec.layers.iter().map(|run| run.count).fold(0, u32::saturating_add);
        if layers > 0 && self.pp > layers {
            return Err(LayoutError::Stages { pp: self.pp, layers });
        }
        let mut has_experts = false;
        for run in &spec.layers {
            for attention in [Some(&run.attention), run.cross.as_ref()].into_iter().flatten() {
                let heads = match attention {
                    Attention::Gqa { heads, .. } | Attention::Mla { heads, .. } | Attention::Cross { heads, .. } => {
                        *heads
                    }
                    Attention::Linear(_) | Attention::None => continue,
                };
                if heads > 0 && !heads.is_multiple_of(self.tp) {
                    return Err(LayoutError::Heads { tp: self.tp, heads });
                }
            }
            if let FeedForward::Moe { experts, .. } = run.feed_forward {
                has_experts = true;
                if experts > 0 && !experts.is_multiple_of(self.ep) {
                    return Err(LayoutError::Experts { ep: self.ep, experts });
                }
            }
        }
        if spec.layers.is_empty() || has_experts {
            return Ok(());
        }
        if self.dp > 1 {
            return Err(LayoutError::DenseData { dp: self.dp });
        }
        if self.ep > 1 {
            return Err(LayoutError::NoExperts { ep: self.ep });
        }
        Ok(())
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for (name, value) in [("TP", self.tp), ("PP", self.pp), ("DP", self.dp), ("EP", self.ep)] {
            if value != 1 {
                if !text.is_empty() {
                    text.push(' ');
                }
                text.push_str(&format!("{name}{value}"));
            }
        }
        f.pad(if text.is_empty() { "TP1" } else { &text })
    }
}

/// Ranks of one kind beyond which a layout is taken for a typing mistake.
const MAX_RANKS: u32 = 4096;

/// Why a model cannot be cut so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A degree of zero.
    #[error("`{name}` is 0")]
    Zero {
        /// Which degree.
        name: &'static str,
    },
    /// A degree beyond any machine.
    #[error("`{name}` is {value}, more than {MAX_RANKS}")]
    TooMany {
        /// Which degree.
        name: &'static str,
        /// Its value.
        value: u32,
    },
    /// Heads do not divide.
    #[error("tensor parallelism {tp} does not divide {heads} attention heads")]
    Heads {
        /// Asked.
        tp: u32,
        /// Query heads.
        heads: u32,
    },
    /// More stages than layers.
    #[error("{pp} pipeline stages are more than {layers} layers")]
    Stages {
        /// Asked.
        pp: u32,
        /// Layers.
        layers: u32,
    },
    /// Expert groups do not divide the GPUs.
    #[error("expert parallelism {ep} does not divide the {gpus} GPUs of a stage")]
    ExpertGroups {
        /// Asked.
        ep: u32,
        /// `tp × dp`.
        gpus: u32,
    },
    /// Expert groups do not divide the experts.
    #[error("expert parallelism {ep} does not divide {experts} experts")]
    Experts {
        /// Asked.
        ep: u32,
        /// Experts.
        experts: u32,
    },
    /// Expert parallelism without experts.
    #[error("expert parallelism {ep} on a model without experts")]
    NoExperts {
        /// Asked.
        ep: u32,
    },
    /// Attention data parallelism on a dense model.
    #[error("attention data parallelism {dp} on a model without experts")]
    DenseData {
        /// Asked.
        dp: u32,
    },
}

impl LayoutError {
    /// What to ask for instead.
    pub fn hint(&self) -> String {
        match *self {
            Self::Zero { name } | Self::TooMany { name, .. } => format!("type `--{name} 1`, or leave it out"),
            Self::Heads { tp, heads } => nearest_divisors("--tp", tp, heads),
            Self::Stages { layers, .. } => format!("type `--pp {layers}` or less"),
            Self::ExpertGroups { ep, gpus } => nearest_divisors("--ep", ep, gpus),
            Self::Experts { ep, experts } => nearest_divisors("--ep", ep, experts),
            Self::NoExperts { .. } => "leave `--ep` out".into(),
            Self::DenseData { .. } => "leave `--dp` out: replicas of a dense model share nothing".into(),
        }
    }
}

/// Names the divisors of `of` on both sides of `asked`.
fn nearest_divisors(flag: &str, asked: u32, of: u32) -> String {
    let below = (1..=asked.min(of)).rev().find(|d| of.is_multiple_of(*d));
    let above = (asked.saturating_add(1)..=of).find(|d| of.is_multiple_of(*d));
    match (below, above) {
        (Some(b), Some(a)) => format!("type `{flag} {b}` or `{flag} {a}`"),
        (Some(d), None) | (None, Some(d)) => format!("type `{flag} {d}`"),
        (None, None) => format!("leave `{flag}` out"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Catalog;

    fn check(model: &str, layout: Layout, expect: &str) {
        let spec = Catalog::embedded().find(model).unwrap().spec().unwrap();
        let said = match layout.check(&spec) {
            Ok(()) => "ok".to_owned(),
            Err(e) => format!("{e} | {}", e.hint()),
        };
        assert_eq!(said, expect, "{model} {layout}");
    }

    #[test]
    fn what_engines_refuse() {
        let tp = Layout::tensor;
        check("meta-llama/Llama-3.1-70B", tp(8), "ok");
        check("Qwen/Qwen3-235B-A22B", tp(8), "ok");
        check(
            "meta-llama/Llama-3.1-70B",
            tp(6),
            "tensor parallelism 6 does not divide 64 attention heads | type `--tp 4` or `--tp 8`",
        );
        check("meta-llama/Llama-3.1-70B", tp(0), "`tp` is 0 | type `--tp 1`, or leave it out");
        check(
            "meta-llama/Llama-3.1-8B-Instruct",
            Layout { pp: 33, ..tp(1) },
            "33 pipeline stages are more than 32 layers | type `--pp 32` or less",
        );
        check(
            "meta-llama/Llama-3.1-8B-Instruct",
            Layout { dp: 2, ..tp(1) },
            "attention data parallelism 2 on a model without experts | leave `--dp` out: replicas of a dense model share nothing",
        );
        check("deepseek-ai/DeepSeek-V3", Layout { tp: 1, pp: 1, dp: 8, ep: 8 }, "ok");
        check(
            "deepseek-ai/DeepSeek-V3",
            Layout { ep: 3, ..tp(8) },
            "expert parallelism 3 does not divide the 8 GPUs of a stage | type `--ep 2` or `--ep 4`",
        );
    }

    #[test]
    fn names() {
        assert_eq!(Layout::tensor(8).to_string(), "TP8");
        assert_eq!(Layout { pp: 2, ..Layout::tensor(8) }.to_string(), "TP8 PP2");
        assert_eq!(Layout { tp: 1, pp: 1, dp: 8, ep: 8 }.to_string(), "DP8 EP8");
        assert_eq!(Layout { ep: 4, ..Layout::tensor(4) }.to_string(), "TP4 EP4");
        assert_eq!(Layout::default().to_string(), "TP1");
        assert_eq!(Layout { tp: 2, pp: 3, dp: 4, ep: 8 }.gpus(), 24);
    }
}
