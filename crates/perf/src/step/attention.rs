//! The attention core: what reads the cache and multiplies scores and values.

use model::{Attention, KvFormat, Window};

use crate::engine::WindowPolicy;
use crate::rank::layer_cache;

/// What attention kernels reach on a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AttentionRates {
    /// Bytes per second read from the cache.
    pub(crate) bandwidth: f64,
    /// FLOP/s of scores and values.
    pub(crate) compute: f64,
}

/// Equal attention layers of one rank, as figures.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AttentionGroup {
    layers: f64,
    /// Cache bytes that one query reads per visible token.
    read_per_token: f64,
    /// The same for the indexer, over the whole context.
    index_read_per_token: f64,
    /// Bytes per sequence that a step reads and writes (recurrent state, cross-attention cache).
    per_sequence: f64,
    /// FLOP per query and visible token in decoding.
    decode_flop: f64,
    /// FLOP per query and visible token in prefill.
    prefill_flop: f64,
    /// FLOP per query and context token of the indexer.
    index_flop: f64,
    /// FLOP per token of a recurrent update.
    token_flop: f64,
    /// Tokens that a query sees at most.
    visible: f64,
    rates: AttentionRates,
}

impl AttentionGroup {
    /// Figures of `layers` equal layers on one rank. Scores and values take 2 FLOP per multiply-add each; MLA decodes
    /// over the latent (`2 r + rope` wide per head) and prefills over expanded heads.
    pub(crate) fn new(
        attention: &Attention,
        layers: f64,
        dtype_bytes: u8,
        tp: u32,
        kv: KvFormat,
        rates: AttentionRates,
    ) -> Self {
        let cache = layer_cache(attention, tp, kv, dtype_bytes, WindowPolicy::Full);
        let rank_heads = |heads: u32| f64::from(heads.div_ceil(tp.max(1)));
        let mut group = Self {
            layers,
            read_per_token: cache.per_token as f64,
            index_read_per_token: 0.0,
            per_sequence: cache.per_sequence as f64,
            decode_flop: 0.0,
            prefill_flop: 0.0,
            index_flop: 0.0,
            token_flop: 0.0,
            visible: f64::INFINITY,
            rates,
        };
        match attention {
            Attention::Gqa { heads, kv_heads, k_dim, v_dim, window, .. } => {
                let width = f64::from(*k_dim) + f64::from(*v_dim);
                group.decode_flop = 2.0 * rank_heads(*heads) * width;
                group.prefill_flop = group.decode_flop;
                if let Window::Sliding(n) | Window::Chunked(n) = window {
                    group.visible = *n as f64;
                }
                if group.read_per_token == 0.0 {
                    // a layer that reuses another's cache still reads it
                    let heads = u64::from(kv_heads.div_ceil(tp.max(1)).max(1));
                    group.read_per_token = kv.bytes(heads * (u64::from(*k_dim) + u64::from(*v_dim))).as_f64();
                }
            }
            Attention::Mla { heads, kv_lora_rank, rope_dim, nope_dim, v_dim, indexer, .. } => {
                let heads = rank_heads(*heads);
                let (rank, rope) = (f64::from(*kv_lora_rank), f64::from(*rope_dim));
                group.decode_flop = 2.0 * heads * (2.0 * rank + rope);
                group.prefill_flop = 2.0 * heads * (f64::from(*nope_dim) + rope + f64::from(*v_dim));
                if let Some(index) = indexer {
                    group.visible = index.top_k as f64;
                    // the top-k form attends over the latent in prefill as well
                    group.prefill_flop = group.decode_flop;
                    if index.owns {
                        group.index_read_per_token = f64::from(index.dim) + 4.0;
                        group.read_per_token -= group.index_read_per_token;
                        group.index_flop = 2.0 * f64::from(index.heads) * f64::from(index.dim);
                    }
                }
            }
            Attention::Cross { heads, dim, source_tokens, .. } => {
                group.token_flop = 4.0 * rank_heads(*heads) * f64::from(*dim) * *source_tokens as f64;
            }
            Attention::Linear(state) => {
                // read and written
                group.per_sequence *= 2.0;
                group.token_flop = 6.0 * state.recurrent_elements as f64 / f64::from(tp.max(1));
            }
            Attention::None => {}
        }
        group
    }

    /// Whether a sequence takes memory in these layers.
    pub(crate) fn keeps_cache(&self) -> bool {
        self.read_per_token > 0.0 || self.per_sequence > 0.0
    }

    /// Whether another layer's figures are these.
    pub(crate) fn merge(&mut self, other: &Self) -> bool {
        let same = Self { layers: self.layers, ..other.clone() } == *self;
        if same {
            self.layers += other.layers;
        }
        same
    }

    /// Time of `sequences` that decode with `context` cached tokens each.
    pub(crate) fn decode(&self, sequences: f64, context: f64) -> f64 {
        let seen = context.min(self.visible);
        let bytes = sequences * (self.read_per_token * seen + self.index_read_per_token * context + self.per_sequence);
        let flop = sequences * (self.decode_flop * seen + self.index_flop * context + self.token_flop);
        self.layers * power_mean(bytes / self.rates.bandwidth, flop / self.rates.compute)
    }

    /// Time of a chunk of `q` prompt tokens after `kv` cached ones.
    pub(crate) fn prefill(&self, q: f64, kv: f64) -> f64 {
        let pairs = q * (kv + 0.5 * q);
        let seen = pairs.min(q * self.visible);
        let flop = self.prefill_flop * seen + self.index_flop * pairs + self.token_flop * q;
        let bytes = self.read_per_token * (kv + q) + self.index_read_per_token * (kv + q) + self.per_sequence;
        self.layers * power_mean(bytes / self.rates.bandwidth, flop / self.rates.compute)
    }
}

/// A smooth maximum: `(a^4 + b^4)^(1/4)`.
pub(crate) fn power_mean(a: f64, b: f64) -> f64 {
    let (a, b) = (a * a, b * b);
    (a * a + b * b).sqrt().sqrt()
}
