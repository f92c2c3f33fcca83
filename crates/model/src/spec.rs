//! The resolved anatomy of a model. Nothing here is optional because a config left it out: a family's reader has
//! resolved every default and noted it as a [`Problem`].
//!
//! A layer is a list of [`Matrix`] plus a count of small parameters. Everything else follows from that list:
//! parameters are its sum, weight bytes apply a format to its quantisable entries, a rank's share applies the
//! sharding rule of each entry, and the step model times the same entries as matrix products.

use units::Params;

use crate::format::WeightFormat;

/// What a matrix does; decides which formats quantise it and which efficiency curve times it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Projections of attention (q, k, v, o, and MLA's low-rank ones).
    Attention,
    /// Projections of the sparse-attention indexer.
    Indexer,
    /// Projections of linear attention, state-space and convolution mixers.
    Mixer,
    /// The dense feed-forward network.
    Mlp,
    /// Routed experts; `copies` is the number of experts.
    Expert,
    /// Shared experts, always active.
    SharedExpert,
    /// The router (gate) of a mixture of experts.
    Router,
    /// Input embedding, one row per vocabulary entry.
    Embedding,
    /// Output head.
    Head,
    /// Vision and audio towers, projectors.
    Tower,
    /// Anything else of matrix shape (position tables, `eh_proj` of an MTP block).
    Other,
}

/// How tensor (and expert) parallelism cuts a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shard {
    /// Every rank holds it whole.
    Replicated,
    /// Cut along the output (column parallel): query heads, gate and up projections, vocabulary.
    Output,
    /// Cut along the input (row parallel): output projection, down projection.
    Input,
    /// Cut by key-value heads: `groups` of them; a rank holds at least one, so more ranks than groups replicate.
    KvHeads {
        /// Key-value heads.
        groups: u32,
    },
    /// Whole experts per rank under expert parallelism, cut along the expert's width under tensor parallelism.
    Experts,
}

/// `copies` equal matrices of `output` × `input` elements, with an optional bias each.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// The name the reference implementation uses: `q_proj`, `kv_a_proj`, `gate_up`.
    pub name: &'static str,
    /// What it does.
    pub role: Role,
    /// Output features (rows as stored).
    pub output: u64,
    /// Input features (columns as stored).
    pub input: u64,
    /// How many equal ones the layer has (experts); 1 otherwise.
    pub copies: u64,
    /// Whether each has a bias of `output` elements (kept in 16 bit by every format).
    pub bias: bool,
    /// How it is cut.
    pub shard: Shard,
}

impl Matrix {
    /// Elements without biases.
    pub fn elements(&self) -> u64 {
        self.output.saturating_mul(self.input).saturating_mul(self.copies)
    }

    /// Bias elements.
    pub fn bias_elements(&self) -> u64 {
        if self.bias { self.output.saturating_mul(self.copies) } else { 0 }
    }

    /// All parameters.
    pub fn params(&self) -> Params {
        Params(self.elements().saturating_add(self.bias_elements()))
    }
}

/// Which past tokens a layer sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Window {
    /// All of them.
    Full,
    /// The last `n`.
    Sliding(u64),
    /// Those in the current chunk of `n` (Llama 4).
    Chunked(u64),
}

impl Window {
    /// Tokens the cache of this layer must keep for a context of `tokens`.
    pub fn kept(self, tokens: u64) -> u64 {
        match self {
            Self::Full => tokens,
            Self::Sliding(n) | Self::Chunked(n) => tokens.min(n),
        }
    }
}

/// The lightning indexer of sparse attention (DeepSeek-V3.2, GLM-5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Indexer {
    /// Index heads.
    pub heads: u32,
    /// Width of an index head; one key of this width is cached per token.
    pub dim: u32,
    /// Tokens that attention then looks at.
    pub top_k: u64,
    /// Whether this layer owns the indexer (and its key cache) or reuses another layer's choice.
    pub owns: bool,
}

/// A fixed state per sequence, whatever the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateSpec {
    /// Elements of the recurrent part.
    pub recurrent_elements: u64,
    /// Bytes per element of the recurrent part as the reference keeps it: 4 (float32) or 2.
    pub recurrent_bytes: u8,
    /// Elements of the convolution part, kept in the model's dtype.
    pub conv_elements: u64,
    /// Width that the state update multiplies, for FLOPs: operations per token are about `6 × recurrent_elements`.
    pub heads: u32,
}

/// How a layer mixes tokens.
#[derive(Clone, Debug, PartialEq)]
pub enum Attention {
    /// Multi-head, grouped-query or multi-query attention.
    Gqa {
        /// Query heads.
        heads: u32,
        /// Key-value heads.
        kv_heads: u32,
        /// Width of a key (and query) head.
        k_dim: u32,
        /// Width of a value head.
        v_dim: u32,
        /// What it sees.
        window: Window,
        /// False where the layer reuses an earlier layer's cache (Gemma 3n/4 shared KV, Hunyuan CLA).
        own_cache: bool,
    },
    /// Multi-head latent attention: one latent vector and one rotary key per token, shared by all heads.
    Mla {
        /// Query heads.
        heads: u32,
        /// Rank of the latent that is cached.
        kv_lora_rank: u32,
        /// Rotary width that is cached beside it.
        rope_dim: u32,
        /// Width of the non-rotary part of a head.
        nope_dim: u32,
        /// Width of a value head.
        v_dim: u32,
        /// Sparse attention on top, if any.
        indexer: Option<Indexer>,
        /// What it sees.
        window: Window,
    },
    /// Attention to another sequence (encoder output, image tokens): cached once per source token.
    Cross {
        /// Query heads.
        heads: u32,
        /// Key-value heads.
        kv_heads: u32,
        /// Head width.
        dim: u32,
        /// Source tokens per sequence where fixed (whisper 1,500), else 0.
        source_tokens: u64,
    },
    /// Linear attention, state space or convolution: a fixed state per sequence.
    Linear(StateSpec),
    /// No token mixing (a layer that is only a feed-forward network).
    None,
}

/// The feed-forward part of a layer, for active-parameter and dispatch arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FeedForward {
    /// One network for every token.
    Dense,
    /// Routed experts.
    Moe {
        /// Experts.
        experts: u32,
        /// Experts per token.
        top_k: u32,
    },
    /// None in this layer.
    None,
}

/// `count` equal consecutive layers.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerRun {
    /// Number of layers.
    pub count: u32,
    /// Token mixing; cross-attention that sits beside self-attention stands in `cross`.
    pub attention: Attention,
    /// A second, cross-attention block in the same layer (encoder-decoder decoders).
    pub cross: Option<Attention>,
    /// Feed-forward kind.
    pub feed_forward: FeedForward,
    /// All matrices of one layer.
    pub matrices: Vec<Matrix>,
    /// Small parameters of one layer that every rank keeps and no format quantises: norms, sinks, gates, conv taps.
    pub small: u64,
}

impl LayerRun {
    /// Parameters of one layer.
    pub fn params_per_layer(&self) -> Params {
        self.matrices.iter().map(Matrix::params).sum::<Params>() + Params(self.small)
    }
}

/// A multi-token-prediction block that a checkpoint stores and most servers leave out.
#[derive(Clone, Debug, PartialEq)]
pub struct Mtp {
    /// Blocks.
    pub blocks: u32,
    /// Its parameters, own embedding and head not included.
    pub params: Params,
    /// One block's layer (attention and feed-forward), for speculative decoding.
    pub layer: Option<LayerRun>,
    /// Elements of its own embedding and head copies stored in the checkpoint.
    pub stored_copies: u64,
}

/// A vision or audio tower, or an encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct Tower {
    /// `vision`, `audio`, `encoder`, `projector`.
    pub name: &'static str,
    /// Its matrices; the tower is replicated on every tensor-parallel rank by most engines.
    pub matrices: Vec<Matrix>,
    /// Small parameters.
    pub small: u64,
}

impl Tower {
    /// All parameters of the tower.
    pub fn params(&self) -> Params {
        self.matrices.iter().map(Matrix::params).sum::<Params>() + Params(self.small)
    }
}

/// Something about the files that the result leans on: a default taken, a key not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The config key or file it concerns.
    pub key: String,
    /// What was found and what was done about it.
    pub message: String,
}

/// The resolved anatomy of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSpec {
    /// Name as the user or the catalog gave it: `meta-llama/Llama-3.1-70B`.
    pub name: String,
    /// Architecture family, one per reader file: `llama`, `deepseek`.
    pub family: &'static str,
    /// `model_type` or architecture string of the config.
    pub architecture: String,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Rows of the embedding matrix.
    pub vocab: u64,
    /// Longest context that the config claims, 0 if it says nothing.
    pub max_context: u64,
    /// Decoder layers in order.
    pub layers: Vec<LayerRun>,
    /// Input embedding and position tables.
    pub embedding: Vec<Matrix>,
    /// Output head; `None` where tied to the embedding (or where there is none).
    pub head: Option<Matrix>,
    /// True where the head reads the embedding matrix.
    pub tied: bool,
    /// Parameters outside layers, embedding and head: final norm and the like.
    pub small: u64,
    /// Towers.
    pub towers: Vec<Tower>,
    /// MTP block.
    pub mtp: Option<Mtp>,
    /// What the checkpoint stores each quantisable matrix in.
    pub weights: WeightFormat,
    /// Roles (and name prefixes) that the checkpoint's own quantisation leaves in 16 bit, beyond what the format always leaves.
    pub unquantised: Vec<Role>,
    /// Bytes per element of everything not quantised: 2 for bf16 and fp16, 4 for fp32.
    pub dtype_bytes: u8,
    /// Elements in the checkpoint that are no parameters of the served model nor MTP (buffers, tied copies), with the reason.
    pub stored_extra: Vec<(String, i64)>,
    /// What the checkpoint's files weigh, where they were read; it beats the config.
    pub measured: Option<crate::files::Measured>,
    /// What the result leans on.
    pub problems: Vec<Problem>,
}
