//! What one rank holds: its cut of every matrix, its stage of the layers, its share of cache and state.

use model::{Attention, FeedForward, KvFormat, LayerRun, Matrix, ModelSpec, Role, Shard, Tower, WeightFormat};
use units::Bytes;

use crate::engine::WindowPolicy;
use crate::layout::Layout;

/// The part of a matrix that one rank holds under tensor parallelism. Experts keep their width here: see
/// [`matrix_bytes`].
pub(crate) fn cut(m: &Matrix, layout: &Layout) -> Matrix {
    let tp = u64::from(layout.tp.max(1));
    let mut part = m.clone();
    match m.shard {
        Shard::Replicated => {}
        Shard::Output => part.output = m.output.div_ceil(tp),
        Shard::Input => part.input = m.input.div_ceil(tp),
        Shard::KvHeads { groups } => {
            let groups = u64::from(groups.max(1));
            part.output = (m.output / groups).max(1).saturating_mul(groups.div_ceil(tp)).min(m.output);
        }
        Shard::Experts => part.copies = m.copies.div_ceil(u64::from(layout.ep.max(1))),
    }
    part
}

/// Bytes of a rank's part of a matrix.
pub(crate) fn matrix_bytes(m: &Matrix, layout: &Layout, spec: &ModelSpec, format: WeightFormat) -> u64 {
    let bytes = format.matrix_bytes(&cut(m, layout), spec.unquantised_in(format), spec.dtype_bytes).0;
    match m.shard {
        Shard::Experts => bytes.div_ceil(u64::from((layout.stage_gpus() / layout.ep.max(1)).max(1))),
        _ => bytes,
    }
}

/// Layers of each pipeline stage: even, the remainder on the later stages but the last, which holds the head (vLLM
/// `get_pp_indices`).
pub(crate) fn stage_layers(layers: u32, pp: u32) -> Vec<u32> {
    let pp = pp.max(1);
    let mut stages = vec![layers / pp; pp as usize];
    let mut rest = layers % pp;
    for stage in stages.iter_mut().rev().skip(usize::from(pp > 1)) {
        if rest == 0 {
            break;
        }
        *stage += 1;
        rest -= 1;
    }
    stages
}

/// Weight bytes of one rank by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WeightParts {
    /// Attention, indexer and mixer projections.
    pub attention: u64,
    /// Dense feed-forward networks, shared experts, routers.
    pub dense: u64,
    /// Routed experts.
    pub experts: u64,
    /// Embedding and head.
    pub vocabulary: u64,
    /// Towers, norms and the rest.
    pub other: u64,
}

impl WeightParts {
    /// All of them.
    pub fn total(&self) -> Bytes {
        [self.attention, self.dense, self.experts, self.vocabulary, self.other].into_iter().map(Bytes).sum()
    }

    fn add(&mut self, role: Role, bytes: u64) {
        let slot = match role {
            Role::Attention | Role::Indexer | Role::Mixer => &mut self.attention,
            Role::Mlp | Role::SharedExpert | Role::Router => &mut self.dense,
            Role::Expert => &mut self.experts,
            Role::Embedding | Role::Head => &mut self.vocabulary,
            Role::Tower | Role::Other => &mut self.other,
        };
        *slot = slot.saturating_add(bytes);
    }

    fn add_times(&mut self, other: &Self, times: u64) {
        for (mine, theirs) in [
            (&mut self.attention, other.attention),
            (&mut self.dense, other.dense),
            (&mut self.experts, other.experts),
            (&mut self.vocabulary, other.vocabulary),
            (&mut self.other, other.other),
        ] {
            *mine = mine.saturating_add(theirs.saturating_mul(times));
        }
    }
}

/// One pipeline stage of one rank.
#[derive(Clone, Debug, PartialEq)]
pub struct StageWeights {
    /// Bytes by kind.
    pub parts: WeightParts,
    /// Layers in the stage.
    pub layers: u32,
    /// Which runs of the model's layers it holds, and how many layers of each.
    pub runs: Vec<(usize, u32)>,
    /// Whether it holds the head.
    pub has_head: bool,
}

/// The weights of the ranks of a layout in a format: one entry per pipeline stage (ranks of a stage are equal).
///
/// Computed once per layout and format; [`memory_with`](crate::memory_with) reuses it for every node type.
#[derive(Clone, Debug, PartialEq)]
pub struct RankWeights {
    /// Stages in order.
    pub stages: Vec<StageWeights>,
    /// The layout.
    pub layout: Layout,
    /// The format.
    pub format: WeightFormat,
    /// Peak bytes of activations per token of the largest layer of a rank, in 16 bit.
    pub activation_bytes_per_token: u64,
    /// Peak bytes of dispatched copies per token in the widest mixture of experts.
    pub dispatch_bytes_per_token: u64,
}

impl RankWeights {
    /// Cuts every matrix of the model.
    pub fn compute(spec: &ModelSpec, layout: &Layout, format: WeightFormat) -> Self {
        let small_bytes = format.plain_element_bytes(spec.dtype_bytes);
        let per_layer: Vec<WeightParts> =
            spec.layers.iter().map(|run| layer_parts(run, layout, spec, format)).collect();
        let total: u32 = spec.layers.iter().map(|run| run.count).fold(0, u32::saturating_add);
        let counts = stage_layers(total, layout.pp.clamp(1, 4096));
        let last = counts.len().saturating_sub(1);
        let mut stages = Vec::with_capacity(counts.len());
        let (mut run, mut used) = (0, 0);
        for (index, &count) in counts.iter().enumerate() {
            let mut parts = WeightParts::default();
            let mut runs = Vec::new();
            let mut left = count;
            while left > 0 && run < spec.layers.len() {
                let take = left.min(spec.layers[run].count - used);
                if take > 0 {
                    parts.add_times(&per_layer[run], u64::from(take));
                    runs.push((run, take));
                }
                left -= take;
                used += take;
                if used >= spec.layers[run].count {
                    run += 1;
                    used = 0;
                }
            }
            if index == 0 {
                for m in &spec.embedding {
                    // a tied embedding is stored as the head that it also is
                    let stored = if spec.tied && m.role == Role::Embedding { as_head(m) } else { m.clone() };
                    parts.add(m.role, matrix_bytes(&stored, layout, spec, format));
                }
                parts.other = parts.other.saturating_add(tower_bytes(&spec.towers, spec, format));
            }
            if index == last {
                match &spec.head {
                    Some(head) => parts.add(Role::Head, matrix_bytes(head, layout, spec, format)),
                    // a tied head reads the embedding, which another stage holds
                    None if spec.tied && last > 0 => {
                        for m in spec.embedding.iter().filter(|m| m.role == Role::Embedding) {
                            parts.add(Role::Head, matrix_bytes(&as_head(m), layout, spec, format));
                        }
                    }
                    None => {}
                }
                parts.other = parts.other.saturating_add(spec.small.saturating_mul(small_bytes));
            }
            stages.push(StageWeights { parts, layers: count, runs, has_head: index == last });
        }
        if spec.layers.is_empty() {
            spread_evenly(&mut stages, spec, layout, format);
        }
        let widths = activation_widths(spec, layout);
        Self {
            stages,
            layout: *layout,
            format,
            activation_bytes_per_token: widths.0,
            dispatch_bytes_per_token: widths.1,
        }
    }

    /// Bytes of the heaviest rank.
    pub fn heaviest(&self) -> Bytes {
        self.stages.iter().map(|s| s.parts.total()).max().unwrap_or(Bytes::ZERO)
    }

    /// Bytes of all ranks of a replica.
    pub fn all_ranks(&self) -> Bytes {
        self.stages.iter().map(|s| s.parts.total() * u64::from(self.layout.stage_gpus())).sum()
    }
}

fn as_head(m: &Matrix) -> Matrix {
    Matrix { role: Role::Head, ..m.clone() }
}

/// A model of which only the size is known is cut evenly over all GPUs.
fn spread_evenly(stages: &mut [StageWeights], spec: &ModelSpec, layout: &Layout, format: WeightFormat) {
    let mut whole = WeightParts::default();
    for m in spec.embedding.iter().chain(&spec.head) {
        whole.add(m.role, format.matrix_bytes(m, spec.unquantised_in(format), spec.dtype_bytes).0);
    }
    whole.other = whole
        .other
        .saturating_add(tower_bytes(&spec.towers, spec, format))
        .saturating_add(spec.small.saturating_mul(format.plain_element_bytes(spec.dtype_bytes)));
    let share = whole.total().0.div_ceil(u64::from(layout.gpus().max(1)));
    for stage in stages {
        stage.parts = WeightParts { other: share, ..WeightParts::default() };
    }
}

fn layer_parts(run: &LayerRun, layout: &Layout, spec: &ModelSpec, format: WeightFormat) -> WeightParts {
    let mut parts = WeightParts::default();
    for m in &run.matrices {
        parts.add(m.role, matrix_bytes(m, layout, spec, format));
    }
    parts.other = parts.other.saturating_add(run.small.saturating_mul(format.plain_element_bytes(spec.dtype_bytes)));
    parts
}

/// Towers are repeated on every rank of the stage that has them.
fn tower_bytes(towers: &[Tower], spec: &ModelSpec, format: WeightFormat) -> u64 {
    let plain = format.plain_element_bytes(spec.dtype_bytes);
    towers
        .iter()
        .map(|tower| {
            let matrices: Bytes = tower
                .matrices
                .iter()
                .map(|m| format.matrix_bytes(m, spec.unquantised_in(format), spec.dtype_bytes))
                .sum();
            matrices.0.saturating_add(tower.small.saturating_mul(plain))
        })
        .fold(0, u64::saturating_add)
}

/// Peak bytes of 16-bit activations per token in the widest layer: the residual stream, its normalised copy, the
/// block's input and output, and the feed-forward's gate, up and product; and for experts the copies per chosen one.
///
/// A model of which only the size is known has no widths: nothing is counted, as its problems say.
fn activation_widths(spec: &ModelSpec, layout: &Layout) -> (u64, u64) {
    if !spec.kv_known() {
        return (0, 0);
    }
    let mut dense = 0u64;
    let mut dispatch = 0u64;
    for run in &spec.layers {
        let widest = run
            .matrices
            .iter()
            .filter(|m| matches!(m.role, Role::Mlp | Role::SharedExpert | Role::Attention | Role::Mixer))
            .map(|m| {
                let part = cut(m, layout);
                // a down projection reads what gate and up wrote: those three are alive together
                match m.shard {
                    Shard::Input => part.input.saturating_mul(3),
                    _ => part.output,
                }
            })
            .max()
            .unwrap_or(0);
        dense = dense.max(spec.hidden.saturating_mul(4).saturating_add(widest).saturating_mul(2));
        if let FeedForward::Moe { top_k, .. } = run.feed_forward {
            let inner = layout.stage_gpus() / layout.ep.max(1);
            let width = run
                .matrices
                .iter()
                .filter(|m| m.role == Role::Expert && m.input == spec.hidden)
                .map(|m| m.output)
                .max()
                .unwrap_or(0)
                .div_ceil(u64::from(inner.max(1)));
            let copy = width.max(spec.hidden).saturating_add(width / 2);
            dispatch = dispatch.max(u64::from(top_k).saturating_mul(copy).saturating_mul(2));
        }
    }
    (dense, dispatch)
}

/// What one layer keeps on one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LayerCache {
    /// Bytes per kept token.
    pub(crate) per_token: u64,
    /// Tokens kept at most; `u64::MAX` where there is no window.
    pub(crate) window: u64,
    /// Bytes per sequence, whatever its length.
    pub(crate) per_sequence: u64,
}

impl LayerCache {
    /// Bytes of one sequence of `tokens`, rounded up to cache blocks.
    pub(crate) fn bytes(&self, tokens: u64, block: u64) -> u64 {
        let kept = tokens.min(self.window);
        let rounded = kept.div_ceil(block.max(1)).saturating_mul(block.max(1));
        self.per_token.saturating_mul(rounded).saturating_add(self.per_sequence)
    }
}

/// Cache of one layer on one rank.
///
/// Key-value heads are repeated where `tp` exceeds them; the latent of MLA is whole on every rank; with a sparse
/// indexer vLLM packs the FP8 latent into 656 bytes (512 values, 16 scale bytes, 64 rotary values in 16 bit) and
/// keeps 132 bytes of index key (128 values and a scale) whatever the format. Recurrent state is cut over `tp`.
pub(crate) fn layer_cache(
    attention: &Attention,
    tp: u32,
    kv: KvFormat,
    dtype_bytes: u8,
    window: WindowPolicy,
) -> LayerCache {
    let tp = tp.max(1);
    let whole = u64::MAX;
    match attention {
        Attention::Gqa { kv_heads, k_dim, v_dim, window: seen, own_cache, .. } => {
            if !own_cache {
                return LayerCache { window: whole, ..LayerCache::default() };
            }
            let heads = u64::from(kv_heads.div_ceil(tp).max(1));
            let elements = heads.saturating_mul(u64::from(*k_dim).saturating_add(u64::from(*v_dim)));
            let window = match window {
                WindowPolicy::Full => whole,
                WindowPolicy::Capped { slack } => match seen.kept(whole) {
                    u64::MAX => whole,
                    n => n.saturating_add(slack),
                },
            };
            LayerCache { per_token: kv.bytes(elements).0, window, per_sequence: 0 }
        }
        Attention::Mla { kv_lora_rank, rope_dim, indexer, .. } => {
            let elements = u64::from(*kv_lora_rank).saturating_add(u64::from(*rope_dim));
            let mut per_token = kv.bytes(elements).0;
            if let Some(index) = indexer {
                if kv == KvFormat::Fp8 {
                    let (rank, rope) = (u64::from(*kv_lora_rank), u64::from(*rope_dim));
                    per_token = rank.saturating_add(rank.div_ceil(128) * 4).saturating_add(rope.saturating_mul(2));
                }
                if index.owns {
                    per_token = per_token.saturating_add(u64::from(index.dim).saturating_add(4));
                }
            }
            LayerCache { per_token, window: whole, per_sequence: 0 }
        }
        Attention::Cross { kv_heads, dim, source_tokens, .. } => {
            let heads = u64::from(kv_heads.div_ceil(tp).max(1));
            let per_source = kv.bytes(heads.saturating_mul(u64::from(*dim)).saturating_mul(2)).0;
            LayerCache { per_token: 0, window: whole, per_sequence: per_source.saturating_mul(*source_tokens) }
        }
        Attention::Linear(state) => {
            let bytes = state
                .recurrent_elements
                .saturating_mul(u64::from(state.recurrent_bytes))
                .saturating_add(state.conv_elements.saturating_mul(u64::from(dtype_bytes.clamp(1, 2))));
            LayerCache { per_token: 0, window: whole, per_sequence: bytes.div_ceil(u64::from(tp)) }
        }
        Attention::None => LayerCache { window: whole, ..LayerCache::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Catalog, Indexer, Window};

    #[test]
    fn layers_are_spread_as_vllm_does() {
        assert_eq!(stage_layers(80, 4), [20, 20, 20, 20]);
        assert_eq!(stage_layers(61, 2), [31, 30]);
        assert_eq!(stage_layers(61, 4), [15, 15, 16, 15]);
        assert_eq!(stage_layers(5, 8), [0, 0, 1, 1, 1, 1, 1, 0]);
        assert_eq!(stage_layers(7, 1), [7]);
    }

    #[test]
    fn one_rank_holds_the_checkpoint() {
        for name in ["meta-llama/Llama-3.1-8B-Instruct", "deepseek-ai/DeepSeek-V3", "openai/gpt-oss-120b"] {
            let spec = Catalog::embedded().find(name).unwrap().spec().unwrap();
            let one = RankWeights::compute(&spec, &Layout::tensor(1), spec.weights);
            assert_eq!(one.heaviest(), spec.weights_bytes(spec.weights), "{name}");
            let eight = RankWeights::compute(&spec, &Layout::tensor(8), spec.weights);
            assert!(eight.heaviest().0 >= one.heaviest().0 / 8, "{name}");
            assert!(eight.heaviest().0 < one.heaviest().0 / 7, "{name}");
        }
    }

    #[test]
    fn cache_of_a_layer() {
        let gqa =
            |kv_heads, window| Attention::Gqa { heads: 64, kv_heads, k_dim: 128, v_dim: 128, window, own_cache: true };
        let capped = WindowPolicy::Capped { slack: 16 };
        let of = |a: &Attention, tp, kv| layer_cache(a, tp, kv, 2, capped).per_token;
        assert_eq!(of(&gqa(8, Window::Full), 1, KvFormat::Bf16), 4096);
        assert_eq!(of(&gqa(8, Window::Full), 4, KvFormat::Bf16), 1024);
        assert_eq!(of(&gqa(4, Window::Full), 8, KvFormat::Bf16), 512);
        let windowed = layer_cache(&gqa(8, Window::Sliding(128)), 1, KvFormat::Bf16, 2, capped);
        assert_eq!(windowed.bytes(100_000, 16), 4096 * 144);
        assert_eq!(
            layer_cache(&gqa(8, Window::Sliding(128)), 1, KvFormat::Bf16, 2, WindowPolicy::Full).window,
            u64::MAX
        );
        // the packed latent and the index key of DeepSeek-V3.2 in vLLM: 656 + 132 and 1152 + 132 bytes
        let index = Indexer { heads: 64, dim: 128, top_k: 2048, owns: true };
        let mla = Attention::Mla {
            heads: 128,
            kv_lora_rank: 512,
            rope_dim: 64,
            nope_dim: 128,
            v_dim: 128,
            indexer: Some(index),
            window: Window::Full,
        };
        assert_eq!(of(&mla, 8, KvFormat::Fp8), 656 + 132);
        assert_eq!(of(&mla, 8, KvFormat::Bf16), 1152 + 132);
    }
}
