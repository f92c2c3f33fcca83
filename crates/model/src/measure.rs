//! What follows from an anatomy: parameters, weight bytes, cache bytes. Every figure is a sum over its matrices.

use units::{Bytes, Params};

use crate::blocks::{Layer, push};
use crate::format::{KvFormat, WeightFormat};
use crate::spec::{Attention, FeedForward, LayerRun, Matrix, ModelSpec, Problem, Role, Shard, Window};

/// The family of a model of which only the size is known.
const BARE: &str = "bare";

/// Tables beside the embedding of which a token reads one row.
const LOOKUPS: &[&str] = &["positions", "token_types", "segments", "embed_tokens_per_layer"];

impl Attention {
    /// Cached elements per token and layer below every window, the indexer's key not included.
    pub fn kv_elements_per_token(&self) -> u64 {
        match *self {
            Self::Gqa { kv_heads, k_dim, v_dim, own_cache: true, .. } => {
                u64::from(kv_heads).saturating_mul(u64::from(k_dim) + u64::from(v_dim))
            }
            // one vector shared by all heads, no separate value
            Self::Mla { kv_lora_rank, rope_dim, .. } => u64::from(kv_lora_rank) + u64::from(rope_dim),
            _ => 0,
        }
    }

    /// Elements of the indexer's key per token and layer, kept in 16 bit.
    pub fn indexer_elements_per_token(&self) -> u64 {
        match self {
            Self::Mla { indexer: Some(i), .. } if i.owns => u64::from(i.dim),
            _ => 0,
        }
    }

    /// Tokens that the cache of this layer keeps of a context.
    pub fn kept_tokens(&self, tokens: u64) -> u64 {
        match self {
            Self::Gqa { window, .. } | Self::Mla { window, .. } => window.kept(tokens),
            _ => 0,
        }
    }

    /// What this layer sees; `Full` where it has no window.
    pub fn window(&self) -> Window {
        match self {
            Self::Gqa { window, .. } | Self::Mla { window, .. } => *window,
            _ => Window::Full,
        }
    }

    /// Query and key-value heads; zero where there is no attention. MLA caches one latent for all heads.
    pub fn head_counts(&self) -> (u32, u32) {
        match *self {
            Self::Gqa { heads, kv_heads, .. } | Self::Cross { heads, kv_heads, .. } => (heads, kv_heads),
            Self::Mla { heads, .. } => (heads, 1),
            _ => (0, 0),
        }
    }
}

impl LayerRun {
    /// Parameters of one layer that a token reads: experts count top-k of E.
    pub fn active_per_layer(&self) -> Params {
        let idle = match self.feed_forward {
            FeedForward::Moe { experts, top_k } => {
                let one: u64 = self
                    .matrices
                    .iter()
                    .filter(|m| m.role == Role::Expert)
                    .map(|m| m.params().0.checked_div(m.copies).unwrap_or(0))
                    .fold(0, u64::saturating_add);
                u64::from(experts.saturating_sub(top_k)).saturating_mul(one)
            }
            _ => 0,
        };
        self.params_per_layer().saturating_sub(Params(idle))
    }

    /// Bytes of one layer's weights in a format.
    pub fn weights_bytes_per_layer(&self, format: WeightFormat, unquantised: &[Role], dtype_bytes: u8) -> Bytes {
        let matrices: Bytes = self.matrices.iter().map(|m| format.matrix_bytes(m, unquantised, dtype_bytes)).sum();
        matrices + Bytes(self.small) * format.plain_element_bytes(dtype_bytes)
    }
}

impl ModelSpec {
    fn runs(&self) -> impl Iterator<Item = (u64, &LayerRun)> {
        self.layers.iter().map(|run| (u64::from(run.count), run))
    }

    fn outside(&self) -> Params {
        let embedding: Params = self.embedding.iter().map(Matrix::params).sum();
        let head = self.head.as_ref().map(Matrix::params).unwrap_or_default();
        let towers: Params = self.towers.iter().map(|t| t.params()).sum();
        embedding + head + towers + Params(self.small)
    }

    /// Unique parameters of the served model, MTP not included.
    pub fn params_total(&self) -> Params {
        self.runs().map(|(n, run)| run.params_per_layer() * n).sum::<Params>() + self.outside()
    }

    /// Parameters used per token: all but the experts that a token is not routed to.
    pub fn params_active(&self) -> Params {
        self.runs().map(|(n, run)| run.active_per_layer() * n).sum::<Params>() + self.outside()
    }

    /// Parameters that a token reads: [`Self::params_active`] without the tables of which it reads one row (input
    /// embedding, positions, per-layer embeddings). A tied embedding stays in, since the head reads all of it.
    pub fn params_active_without_embedding(&self) -> Params {
        let read_whole = self.tied || self.head.is_none();
        let tables = self.embedding.iter().filter(|m| match m.role {
            Role::Embedding => !read_whole,
            _ => LOOKUPS.contains(&m.name),
        });
        self.params_active().saturating_sub(tables.map(Matrix::params).sum())
    }

    /// Parameters of the MTP block, its own copies of embedding and head not included.
    pub fn params_mtp(&self) -> Params {
        self.mtp.as_ref().map(|m| m.params).unwrap_or_default()
    }

    /// Elements that the checkpoint stores: total, MTP, and what else lies in its files.
    pub fn params_stored(&self) -> Params {
        let copies = self.mtp.as_ref().map_or(0, |m| m.stored_copies);
        let base = (self.params_total() + self.params_mtp() + Params(copies)).0;
        Params(self.stored_extra.iter().fold(base, |sum, (_, n)| sum.saturating_add_signed(*n)))
    }

    /// Roles that stay in 16 bit in `format` beyond what it always leaves: the checkpoint's own list where it is the
    /// checkpoint's format, none where the model is quantised anew.
    pub fn unquantised_in(&self, format: WeightFormat) -> &[Role] {
        if format == self.weights { &self.unquantised } else { &[] }
    }

    /// Bytes that a server loads in a format, without MTP; a tied head is loaded once.
    pub fn weights_bytes(&self, format: WeightFormat) -> Bytes {
        let unquantised = self.unquantised_in(format);
        let of = |m: &Matrix| format.matrix_bytes(m, unquantised, self.dtype_bytes);
        let plain = format.plain_element_bytes(self.dtype_bytes);
        let layers: Bytes =
            self.runs().map(|(n, run)| run.weights_bytes_per_layer(format, unquantised, self.dtype_bytes) * n).sum();
        let embedding: Bytes = self
            .embedding
            .iter()
            .map(|m| match m.role {
                // a tied embedding is stored as the head that it also is
                Role::Embedding if self.tied => of(&Matrix { role: Role::Head, ..m.clone() }),
                _ => of(m),
            })
            .sum();
        let head = self.head.as_ref().map(of).unwrap_or_default();
        let towers: Bytes =
            self.towers.iter().map(|t| t.matrices.iter().map(of).sum::<Bytes>() + Bytes(t.small) * plain).sum();
        layers + embedding + head + towers + Bytes(self.small) * plain
    }

    /// Bytes that a server loads in the checkpoint's own format, without MTP.
    ///
    /// Where its files were read, the sum of their tensors.
    pub fn weights_bytes_checkpoint(&self) -> Bytes {
        self.measured.map_or_else(|| self.weights_bytes(self.weights), |m| m.weights_bytes)
    }

    /// Bytes of the checkpoint's tensors: [`Self::weights_bytes_checkpoint`], the MTP block and what else is stored.
    /// Extra elements count at the checkpoint's dtype, block scales (already in the weights) not at all.
    pub fn stored_bytes(&self) -> Bytes {
        if let Some(measured) = self.measured {
            return measured.stored_bytes;
        }
        let plain = self.weights.plain_element_bytes(self.dtype_bytes);
        let mut bytes = self.weights_bytes_checkpoint();
        if let Some(mtp) = &self.mtp {
            bytes += match &mtp.layer {
                Some(layer) => {
                    let of = layer.weights_bytes_per_layer(self.weights, &self.unquantised, self.dtype_bytes);
                    let rest = mtp.params.saturating_sub(layer.params_per_layer() * u64::from(layer.count)).0;
                    of * u64::from(layer.count) + Bytes(rest) * plain
                }
                None => Bytes(mtp.params.0) * plain,
            };
            bytes += Bytes(mtp.stored_copies) * plain;
        }
        for (reason, elements) in &self.stored_extra {
            if !reason.contains("scales") {
                bytes = Bytes(bytes.0.saturating_add_signed(elements.saturating_mul(plain as i64)));
            }
        }
        bytes
    }

    /// Cache bytes per token of one sequence and one copy, below every window; the indexer's keys stay in 16 bit.
    pub fn kv_bytes_per_token(&self, format: KvFormat) -> Bytes {
        self.runs()
            .map(|(n, run)| {
                let indexer = Bytes(run.attention.indexer_elements_per_token()) * 2;
                (format.bytes(run.attention.kv_elements_per_token()) + indexer) * n
            })
            .sum()
    }

    /// Cache bytes of one sequence of that length, windows applied; cross-attention to a source of fixed length
    /// included, recurrent state not ([`Self::state_bytes_per_sequence`]).
    pub fn kv_bytes(&self, tokens: u64, format: KvFormat) -> Bytes {
        self.runs()
            .map(|(n, run)| {
                let a = &run.attention;
                let kept = a.kept_tokens(tokens);
                let own = format.bytes(a.kv_elements_per_token().saturating_mul(kept))
                    + Bytes(a.indexer_elements_per_token().saturating_mul(tokens)) * 2;
                let cross = [Some(a), run.cross.as_ref()].into_iter().flatten().map(|c| match *c {
                    Attention::Cross { kv_heads, dim, source_tokens, .. } => {
                        let per = 2 * u64::from(kv_heads).saturating_mul(u64::from(dim));
                        format.bytes(per.saturating_mul(source_tokens))
                    }
                    _ => Bytes::ZERO,
                });
                (own + cross.sum()) * n
            })
            .sum()
    }

    /// Recurrent and convolution state of one sequence, whatever its length.
    pub fn state_bytes_per_sequence(&self) -> Bytes {
        let conv_bytes = u64::from(self.dtype_bytes.clamp(1, 2));
        self.runs()
            .map(|(n, run)| match run.attention {
                Attention::Linear(s) => {
                    (Bytes(s.recurrent_elements) * u64::from(s.recurrent_bytes) + Bytes(s.conv_elements) * conv_bytes)
                        * n
                }
                _ => Bytes::ZERO,
            })
            .sum()
    }

    /// Query heads of the widest attention; 0 without attention.
    pub fn heads(&self) -> u32 {
        self.layers.iter().map(|run| run.attention.head_counts().0).max().unwrap_or(0)
    }

    /// Key-value heads of the widest attention (1 for a latent); 0 without attention.
    pub fn kv_heads(&self) -> u32 {
        self.layers.iter().map(|run| run.attention.head_counts()).max().map_or(0, |(_, kv)| kv)
    }

    /// Whether any layer routes tokens to experts.
    pub fn is_moe(&self) -> bool {
        self.experts() > 0
    }

    /// Routed experts of a layer that has them; 0 in a dense model.
    pub fn experts(&self) -> u32 {
        self.moe().0
    }

    /// Routed experts per token; 0 in a dense model.
    pub fn top_k(&self) -> u32 {
        self.moe().1
    }

    fn moe(&self) -> (u32, u32) {
        let routed = self.layers.iter().map(|run| match run.feed_forward {
            FeedForward::Moe { experts, top_k } => (experts, top_k),
            _ => (0, 0),
        });
        routed.max().unwrap_or((0, 0))
    }

    /// Whether any layer caches a latent.
    pub fn has_mla(&self) -> bool {
        self.layers.iter().any(|run| matches!(run.attention, Attention::Mla { .. }))
    }

    /// Decoder layers.
    pub fn layer_count(&self) -> u64 {
        self.runs().map(|(n, _)| n).sum()
    }

    /// True where no layer keeps anything of past tokens: the model reads a text at once and makes no tokens.
    pub fn is_encoder(&self) -> bool {
        let remembers = |a: &Attention| match a {
            Attention::None => false,
            Attention::Linear(_) => true,
            other => other.kv_elements_per_token() > 0,
        };
        self.kv_known() && !self.layers.iter().any(|l| remembers(&l.attention))
    }

    /// False for a bare size, whose cache nobody knows.
    pub fn kv_known(&self) -> bool {
        self.family != BARE
    }

    /// A model of which only the size is known: `total` parameters, `active` of them per token, all quantisable.
    ///
    /// Weights are exact (parameters × bytes of the format). The cache is unknown ([`Self::kv_known`]). For cutting, the
    /// parameters are spread over 96 equal layers; where `active` is less than `total` the difference is laid into 256
    /// experts of which 6 work (250 idle ones), as far as the numbers allow.
    pub fn bare(name: &str, total: Params, active: Option<Params>, weights: WeightFormat) -> Self {
        const LAYERS: u64 = 96;
        let active = active.unwrap_or(total).0.min(total.0);
        let idle = total.0 - active;
        let mut problems = vec![Problem {
            key: "kv".into(),
            message: "only the size is known: cache, width and vocabulary are not, and count as nothing".into(),
        }];
        // `idle_experts` experts of one size hold the idle parameters, `top_k` more of the same size are active
        let mut idle_experts = 250u64;
        let mut top_k = 6u64;
        while idle > 0 && idle.div_ceil(idle_experts).saturating_mul(top_k) > active {
            if top_k > 1 {
                top_k = 1
            } else if idle_experts < 25_000 {
                idle_experts *= 10
            } else {
                break;
            }
        }
        let one = idle / idle_experts;
        let dense = total.0.saturating_sub(one.saturating_mul(idle_experts + top_k));
        if idle > 0 {
            problems.push(Problem {
                key: "experts".into(),
                message: format!("taken as {} experts per layer with {top_k} per token", idle_experts + top_k),
            });
        }
        let share = |all: u64, i: u64| all / LAYERS + u64::from(i < all % LAYERS);
        let flat = |role, output, copies, shard| Matrix {
            name: "weights",
            role,
            output,
            input: 1,
            copies,
            bias: false,
            shard,
        };
        let mut layers = Vec::new();
        for i in 0..LAYERS {
            let mut layer = Layer::new(0);
            layer.feed_forward = FeedForward::Dense;
            if share(dense, i) > 0 {
                layer.matrices.push(flat(Role::Mlp, share(dense, i), 1, Shard::Output));
            }
            if share(one, i) > 0 {
                layer.matrices.push(flat(Role::Expert, share(one, i), idle_experts + top_k, Shard::Experts));
                layer.feed_forward = FeedForward::Moe {
                    experts: u32::try_from(idle_experts + top_k).unwrap_or(u32::MAX),
                    top_k: u32::try_from(top_k).unwrap_or(u32::MAX),
                };
            }
            push(&mut layers, layer);
        }
        Self {
            name: name.into(),
            family: BARE,
            architecture: "bare size".into(),
            hidden: 0,
            vocab: 0,
            max_context: 0,
            layers,
            embedding: Vec::new(),
            head: None,
            tied: false,
            small: 0,
            towers: Vec::new(),
            mtp: None,
            weights,
            unquantised: Vec::new(),
            dtype_bytes: if weights == WeightFormat::Fp32 { 4 } else { 2 },
            stored_extra: Vec::new(),
            measured: None,
            problems,
        }
    }
}
