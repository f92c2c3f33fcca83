//! The step model: walk the layers once, then time a batch from a table.

mod attention;
mod compile;
pub use compile::product_time;
mod links;

use hardware::NodeShape;
use model::ModelSpec;
use units::{Basis, Seconds, Term};

use crate::curves::{Band, Curves};
use crate::engine::{Engine, EngineProfile, Formats};
use crate::layout::{Layout, LayoutError};

use attention::AttentionGroup;

/// A part of one prompt that a step processes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chunk {
    /// Tokens of the prompt in this step.
    pub q: f64,
    /// Tokens of the sequence that are in the cache already.
    pub kv: f64,
}

/// What one step of a replica processes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Batch<'a> {
    /// Prompt chunks.
    pub prefill: &'a [Chunk],
    /// Sequences that decode one token each.
    pub decodes: f64,
    /// Cached tokens of all decoding sequences together.
    pub decode_kv_total: f64,
}

impl<'a> Batch<'a> {
    /// `sequences` that decode with `context` cached tokens each.
    pub fn decode(sequences: f64, context: f64) -> Self {
        Self { prefill: &[], decodes: sequences, decode_kv_total: sequences * context }
    }

    /// Prompt chunks alone.
    pub fn prefill(chunks: &'a [Chunk]) -> Self {
        Self { prefill: chunks, decodes: 0.0, decode_kv_total: 0.0 }
    }

    /// Tokens that the step processes.
    pub fn tokens(&self) -> f64 {
        self.prefill.iter().map(|c| c.q.max(0.0)).sum::<f64>() + self.decodes.max(0.0)
    }
}

/// The parts of a step that depend on the number of tokens alone, in table order.
pub(crate) const PARTS: [&str; 7] = [
    "attention_projections",
    "feed_forward",
    "experts",
    "collectives",
    "expert_exchange",
    "pipeline_transfers",
    "elementwise",
];
pub(crate) const N: usize = PARTS.len();

/// Times of the token-dependent parts at one number of tokens, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Column {
    pub(crate) parts: [f64; N],
    /// Of the matrix products, the share of time spent reading weights rather than multiplying.
    pub(crate) weight_bound: f64,
}

/// One model on one layout on one kind of node, ready to time batches.
///
/// The token-dependent parts (matrix products, collectives) are tabulated over the tokens of one attention rank and
/// micro-batch and interpolated; attention and overheads are closed forms of the batch. With pipeline stages a
/// step is a round in which every running sequence gets one token: `pp` micro-batches pass all stages.
#[derive(Clone, Debug)]
pub struct StepModel {
    pub(crate) columns: Vec<Column>,
    pub(crate) totals: Vec<f64>,
    /// Head (logits and their gathering) over the same grid, by sequences of a rank.
    pub(crate) head: Vec<f64>,
    pub(crate) attention: Vec<AttentionGroup>,
    pub(crate) step_overhead: f64,
    pub(crate) kernel_overhead: f64,
    pub(crate) sequence_overhead: f64,
    pub(crate) layout: Layout,
    pub(crate) profile: EngineProfile,
    /// False where no layer's cache is known (a bare size) or none is kept (an encoder).
    pub(crate) keeps_cache: bool,
    pub(crate) bases: Bases,
    pub(crate) notes: Vec<String>,
    pub(crate) tpot_band: Band,
    pub(crate) ttft_band: Band,
}

/// How the parts of a step are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bases {
    pub(crate) products: Basis,
    pub(crate) experts: Basis,
    pub(crate) attention: Basis,
    pub(crate) links: Basis,
    pub(crate) engine: Basis,
}

impl Bases {
    pub(crate) fn weakest(&self) -> Basis {
        [self.experts, self.attention, self.links, self.engine].into_iter().fold(self.products, Basis::weakest)
    }

    /// Of a token-dependent part, by its place in [`PARTS`].
    fn of(&self, part: usize) -> Basis {
        match part {
            2 => self.experts,
            3..=5 => self.links,
            _ => self.products,
        }
    }
}

/// Why a model cannot be timed on a node.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CompileError {
    /// The layout does not fit the model.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The GPU has no peak for 16-bit or 32-bit matrix products.
    #[error("no peak FLOP/s is known for `{gpu}`")]
    NoPeak {
        /// GPU id.
        gpu: String,
    },
    /// The GPU has no memory bandwidth.
    #[error("no memory bandwidth is known for `{gpu}`")]
    NoBandwidth {
        /// GPU id.
        gpu: String,
    },
    /// Only the size of the model is known.
    #[error("`{model}` has no known layers, so its speed cannot be estimated")]
    NoLayers {
        /// Model name.
        model: String,
    },
    /// The replica does not fit the nodes.
    #[error("{layout} takes {gpus} GPUs, more than {nodes} nodes of {per_node}")]
    TooFewGpus {
        /// The layout.
        layout: Layout,
        /// GPUs that it takes.
        gpus: u32,
        /// Nodes of the replica.
        nodes: u32,
        /// GPUs of a node.
        per_node: u32,
    },
}

impl CompileError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Layout(e) => e.hint(),
            Self::NoPeak { .. } | Self::NoBandwidth { .. } => "add the figure to the GPU's catalog row".into(),
            Self::NoLayers { .. } => "give the model's `config.json` instead of its size".into(),
            Self::TooFewGpus { per_node, gpus, .. } => {
                format!("use {} nodes, or a smaller layout", gpus.div_ceil((*per_node).max(1)))
            }
        }
    }
}

impl StepModel {
    /// Walks the layers once and tabulates what depends on the number of tokens.
    ///
    /// `nodes_per_replica` nodes of this shape hold one replica; GPUs are numbered tensor-parallel ranks first, then
    /// attention data ranks, then pipeline stages.
    pub fn compile(
        spec: &ModelSpec,
        layout: &Layout,
        node: &NodeShape,
        nodes_per_replica: u32,
        engine: Engine,
        formats: &Formats,
        curves: &'static Curves,
    ) -> Result<Self, CompileError> {
        compile::compile(spec, layout, node, nodes_per_replica, engine, formats, curves)
    }

    /// Time of a step.
    pub fn time(&self, batch: &Batch<'_>) -> Seconds {
        let tokens = batch.tokens();
        if tokens <= 0.0 {
            return Seconds::ZERO;
        }
        let lanes = self.lanes();
        let sequences = batch.decodes.max(0.0) + batch.prefill.len() as f64;
        let total = interpolate(&self.totals, tokens / lanes)
            + interpolate(&self.head, sequences / lanes)
            + self.attention_time(batch)
            + self.step_overhead
            + self.kernel_overhead
            + self.sequence_overhead * sequences;
        Seconds(total)
    }

    /// The same sum with its parts named.
    pub fn explain(&self, batch: &Batch<'_>) -> Term {
        let tokens = batch.tokens();
        let lanes = self.lanes();
        let sequences = batch.decodes.max(0.0) + batch.prefill.len() as f64;
        let mut parts = Vec::with_capacity(N + 6);
        if tokens > 0.0 {
            let leaf = |name: &str, seconds: f64, formula: String, basis: Basis| {
                Term::time(name, Seconds(seconds)).formula(formula).basis(basis)
            };
            let (index, fraction) = place(self.totals.len(), tokens / lanes);
            for (part, name) in PARTS.iter().enumerate() {
                let at = |i: usize| self.columns.get(i).map_or(0.0, |c| c.parts[part]);
                let seconds = at(index) + (at(index + 1) - at(index)) * fraction;
                if seconds > 0.0 {
                    let formula = match part {
                        0 | 1 => "sum over matrices of (FLOP time^4 + weight time^4)^(1/4)",
                        2 => "(FLOP time^3 + time to read the distinct experts^3)^(1/3)",
                        3 => "layers x (latency + bytes / link)",
                        4 => "mixture layers x the cheaper of gather + scatter and dispatch + combine",
                        6 => "bytes that norms, activations, rotary and quantisation move / bandwidth",
                        _ => "stages x (latency + bytes / link)",
                    };
                    let formula = format!("{formula}, {} tokens a rank", units::sig3((tokens / lanes).max(1.0)));
                    parts.push(leaf(name, seconds, formula, self.bases.of(part)));
                }
            }
            let head = interpolate(&self.head, sequences / lanes);
            parts.push(leaf("head", head, "logits of each sequence, gathered".into(), self.bases.products));
            let (decode, prefill) = self.attention_parts(batch);
            if decode > 0.0 {
                parts.push(leaf("attention_decode", decode, "cache bytes / bandwidth".into(), self.bases.attention));
            }
            if prefill > 0.0 {
                parts.push(leaf(
                    "attention_prefill",
                    prefill,
                    "score and value FLOP / peak".into(),
                    self.bases.attention,
                ));
            }
            let engine = self.profile.engine;
            let basis = self.bases.engine;
            parts.push(leaf("engine_step", self.step_overhead, format!("{engine}: fixed time per step"), basis));
            parts.push(leaf("small_kernels", self.kernel_overhead, format!("{engine}: per layer x kernels"), basis));
            let formula = format!("{engine}: per sequence x {}", units::sig3(sequences));
            parts.push(leaf("engine_sequences", self.sequence_overhead * sequences, formula, basis));
        }
        Term::time("step", self.time(batch)).formula("sum of the parts").basis(Basis::Measured).parts(parts)
    }

    /// Attention ranks × micro-batches: a step's tokens are spread over them.
    pub(crate) fn lanes(&self) -> f64 {
        f64::from(self.layout.dp.max(1)) * f64::from(self.layout.pp.max(1))
    }

    fn attention_parts(&self, batch: &Batch<'_>) -> (f64, f64) {
        let lanes = self.lanes();
        let decodes = batch.decodes.max(0.0);
        let mut decode = 0.0;
        if decodes > 0.0 {
            // a lane cannot hold a part of a sequence
            let per_lane = (decodes / lanes).max(1.0);
            let context = batch.decode_kv_total.max(0.0) / decodes;
            for group in &self.attention {
                decode += group.decode(per_lane, context);
            }
        }
        let mut prefill = 0.0;
        for chunk in batch.prefill {
            for group in &self.attention {
                prefill += group.prefill(chunk.q.max(0.0), chunk.kv.max(0.0));
            }
        }
        (decode, prefill / lanes.min(batch.prefill.len().max(1) as f64))
    }

    fn attention_time(&self, batch: &Batch<'_>) -> f64 {
        let (decode, prefill) = self.attention_parts(batch);
        decode + prefill
    }

    /// Time of the parts that read weights, multiply, move data over links and wait for the engine.
    pub(crate) fn shares(&self, batch: &Batch<'_>) -> Shares {
        let lanes = self.lanes();
        let sequences = batch.decodes.max(0.0) + batch.prefill.len() as f64;
        let (index, fraction) = place(self.totals.len(), batch.tokens() / lanes);
        let blend = |f: &dyn Fn(&Column) -> f64| {
            let at = |i: usize| self.columns.get(i).map_or(0.0, f);
            at(index) + (at(index + 1) - at(index)) * fraction
        };
        let products = blend(&|c| c.parts[0] + c.parts[1] + c.parts[2]);
        let weights = blend(&|c| c.weight_bound);
        let (decode, prefill) = self.attention_parts(batch);
        Shares {
            weights: weights + interpolate(&self.head, sequences / lanes),
            cache: decode + blend(&|c| c.parts[6]),
            compute: products - weights + prefill,
            link: blend(&|c| c.parts[3] + c.parts[4] + c.parts[5]),
            overhead: self.step_overhead + self.kernel_overhead + self.sequence_overhead * sequences,
        }
    }

    /// The layout it was compiled for.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The engine it was compiled for.
    pub fn engine(&self) -> &EngineProfile {
        &self.profile
    }

    /// The weakest basis among its curves.
    pub fn basis(&self) -> Basis {
        self.bases.weakest()
    }

    /// What the estimate leans on: curves lent, links assumed.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The error band of its times per output token, as multipliers.
    pub fn tpot_band(&self) -> Band {
        self.tpot_band
    }

    /// The error band of its times to first token, as multipliers.
    pub fn ttft_band(&self) -> Band {
        self.ttft_band
    }
}

/// What a step's time goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Shares {
    pub(crate) weights: f64,
    pub(crate) compute: f64,
    pub(crate) cache: f64,
    pub(crate) link: f64,
    pub(crate) overhead: f64,
}

/// Points per doubling of the token grid.
const PER_OCTAVE: usize = 2;
/// Doublings that the grid covers: up to 131,072 tokens a rank.
const OCTAVES: usize = 17;

/// The token counts of the table.
pub(crate) fn grid() -> impl Iterator<Item = f64> {
    (0..=OCTAVES * PER_OCTAVE).map(|i| {
        let whole = (1u64 << (i / PER_OCTAVE)) as f64;
        if i % PER_OCTAVE == 0 { whole } else { whole * 1.5 }
    })
}

/// The interval of the grid and the place in it; the last interval extends to infinity.
fn place(len: usize, tokens: f64) -> (usize, f64) {
    let tokens = if tokens > 1.0 { tokens } else { 1.0 };
    // the exponent of a float is its doubling; one comparison finds the half
    let bits = tokens.to_bits();
    let octave = ((bits >> 52) & 0x7ff).saturating_sub(1023) as usize;
    let octave = octave.min(OCTAVES - 1);
    let low = (1u64 << octave) as f64;
    let (index, from, width) = if tokens < 1.5 * low {
        (octave * PER_OCTAVE, low, 0.5 * low)
    } else {
        (octave * PER_OCTAVE + 1, 1.5 * low, 0.5 * low)
    };
    let index = index.min(len.saturating_sub(2));
    (index, (tokens - from) / width)
}

fn interpolate(table: &[f64], tokens: f64) -> f64 {
    if tokens <= 0.0 {
        return 0.0;
    }
    let (index, fraction) = place(table.len(), tokens);
    match table.get(index..index + 2) {
        Some([a, b]) => a + (b - a) * fraction,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_is_hit_exactly_and_interpolated_linearly() {
        let points: Vec<f64> = grid().collect();
        assert_eq!(points.len(), 35);
        assert_eq!(&points[..6], &[1.0, 1.5, 2.0, 3.0, 4.0, 6.0]);
        let table: Vec<f64> = points.iter().map(|t| 10.0 + 2.0 * t).collect();
        for tokens in [1.0, 1.2, 1.5, 2.0, 2.9, 3.0, 1000.0, 131_072.0, 400_000.0] {
            assert!((interpolate(&table, tokens) - (10.0 + 2.0 * tokens)).abs() < 1e-6 * tokens, "{tokens}");
        }
        assert_eq!(interpolate(&table, 0.3), 12.0);
        assert_eq!(interpolate(&table, 0.0), 0.0);
    }
}
