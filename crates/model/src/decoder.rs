//! The decoder that most families are: embedding, equal layers of attention and feed-forward, norm, head. A family is
//! a [`Style`], a short table of how it differs.

use crate::blocks::{Gqa, Layer, Moe, matrix, mlp, push};
use crate::config::{MAX_EXPERTS, Reader};
use crate::error::ModelError;
use crate::quant;
use crate::spec::{FeedForward, Matrix, ModelSpec, Role, Shard, Window};

/// A property that is fixed in a family or follows a key of the config.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Flag {
    No,
    Yes,
    /// The key, and what holds where it is missing.
    Key(&'static str, bool),
    /// The key says the opposite (`no_bias`), and what holds where it is missing.
    Not(&'static str, bool),
}

impl Flag {
    pub(crate) fn read(self, r: &Reader<'_>) -> Result<bool, ModelError> {
        match self {
            Self::No => Ok(false),
            Self::Yes => Ok(true),
            Self::Key(key, default) => r.flag(key, default),
            Self::Not(key, default) => r.flag(key, !default).map(|b| !b),
        }
    }
}

/// Parameters of a norm as multiples of its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Norm {
    /// A scale (RMSNorm, or LayerNorm without bias).
    Scale,
    /// Scale and bias.
    ScaleAndBias,
    /// Neither.
    Bare,
}

impl Norm {
    pub(crate) fn params(self, width: u64) -> u64 {
        match self {
            Self::Scale => width,
            Self::ScaleAndBias => width.saturating_mul(2),
            Self::Bare => 0,
        }
    }
}

/// Norms of queries and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QkNorm {
    /// None, or without weights.
    None,
    /// One of head width for queries, one for keys.
    Head,
    /// One over all query heads, one over all key heads.
    Full,
}

/// Which layers see only a window.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Windows {
    /// None, whatever the config says.
    Never,
    /// All, where `sliding_window` is set.
    All,
    /// Those that `layer_types` names; without it, all but every n-th (0: none).
    Every(u64),
    /// Qwen: only with `use_sliding_window`, and from `max_window_layers` on.
    Qwen,
}

/// How a family routes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Experts {
    /// Keys of the expert's width.
    pub(crate) width: &'static [&'static str],
    /// Shared experts.
    pub(crate) shared: Shared,
    /// A scalar gate on the shared expert.
    pub(crate) shared_gate: bool,
    pub(crate) bias: bool,
    pub(crate) router_bias: bool,
    /// A correction bias per expert that counts as parameter.
    pub(crate) correction: bool,
    /// A correction bias per expert that checkpoints store as buffer.
    pub(crate) buffer: bool,
}

/// Width of the shared experts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shared {
    /// None.
    No,
    /// A key with the number of experts of the routed width.
    Count(&'static [&'static str]),
    /// A key with their whole width.
    Width(&'static [&'static str]),
}

/// Which layers route.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MoeLayers {
    All,
    /// From `first_k_dense_replace` (or another key) on, every `moe_layer_freq`-th; `mlp_layer_types` wins.
    DeepSeek(u64),
    /// Not in `mlp_only_layers`, every `decoder_sparse_step`-th.
    Qwen,
    /// ERNIE: between start and end, every interval-th.
    Ernie,
    /// From `num_dense_layers` on.
    Lfm,
}

/// How a family differs from Llama.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) family: &'static str,
    /// Whether the head is tied where the config does not say.
    pub(crate) tied: bool,
    pub(crate) norm: Norm,
    pub(crate) norms_per_layer: u64,
    pub(crate) final_norm: bool,
    /// A norm after the embedding.
    pub(crate) embedding_norm: bool,
    pub(crate) qkv_bias: Flag,
    pub(crate) o_bias: Flag,
    pub(crate) mlp_bias: Flag,
    pub(crate) head_bias: Flag,
    pub(crate) gated: bool,
    pub(crate) qk_norm: QkNorm,
    /// A key that switches the norm of queries and keys, and what holds without it.
    pub(crate) qk_norm_if: Option<(&'static str, bool)>,
    /// Query projection doubled for an output gate.
    pub(crate) gate: bool,
    /// One sink scalar per head.
    pub(crate) sinks: bool,
    pub(crate) windows: Windows,
    /// Learned positions: keys of their number, and rows more than that.
    pub(crate) positions: Option<(&'static [&'static str], u64)>,
    pub(crate) experts: Option<Experts>,
    pub(crate) moe_layers: MoeLayers,
    /// Width of the network where the config leaves it out, as a multiple of the hidden width (0: must be there).
    pub(crate) width_ratio: u64,
}

/// Llama: RMSNorm twice per layer, gated network, no biases unless asked for.
pub(crate) const LLAMA: Style = Style {
    family: "llama",
    tied: false,
    norm: Norm::Scale,
    norms_per_layer: 2,
    final_norm: true,
    embedding_norm: false,
    qkv_bias: Flag::Key("attention_bias", false),
    o_bias: Flag::Key("attention_bias", false),
    mlp_bias: Flag::Key("mlp_bias", false),
    head_bias: Flag::No,
    gated: true,
    qk_norm: QkNorm::None,
    qk_norm_if: None,
    gate: false,
    sinks: false,
    windows: Windows::Never,
    positions: None,
    experts: None,
    moe_layers: MoeLayers::All,
    width_ratio: 0,
};

/// Experts without any extras.
pub(crate) const PLAIN_EXPERTS: Experts = Experts {
    width: &["moe_intermediate_size", "intermediate_size"],
    shared: Shared::No,
    shared_gate: false,
    bias: false,
    router_bias: false,
    correction: false,
    buffer: false,
};

/// The dimensions that nearly every decoder has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dims {
    pub(crate) hidden: u64,
    pub(crate) layers: u64,
    pub(crate) vocab: u64,
    pub(crate) heads: u64,
    pub(crate) kv_heads: u64,
    pub(crate) head_dim: u64,
}

/// Full attention of these dimensions without extras; families name what differs: `Gqa { gate: true, ..attend(d, false) }`.
pub(crate) fn attend(d: Dims, bias: bool) -> Gqa {
    Gqa {
        hidden: d.hidden,
        heads: d.heads,
        kv_heads: d.kv_heads,
        k_dim: d.head_dim,
        v_dim: d.head_dim,
        qkv_bias: bias,
        o_bias: bias,
        gate: false,
        k_is_v: false,
        own_cache: true,
        window: Window::Full,
    }
}

/// Keys of the hidden width.
pub(crate) const HIDDEN: &[&str] = &["hidden_size", "n_embd", "d_model", "embed_dim"];
/// Keys of the feed-forward width.
pub(crate) const WIDTH: &[&str] = &["intermediate_size", "n_inner", "ffn_hidden_size", "d_ff", "ffn_dim"];
/// Keys of the number of experts.
pub(crate) const EXPERTS: &[&str] = &["num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"];
/// Keys of the experts per token.
pub(crate) const TOP_K: &[&str] = &[
    "num_experts_per_tok",
    "num_experts_per_token",
    "experts_per_token",
    "moe_topk",
    "moe_k",
    "moe_top_k",
    "top_k_experts",
];

impl Dims {
    pub(crate) fn read(r: &Reader<'_>) -> Result<Self, ModelError> {
        r.dim(HIDDEN)?;
        Self::read_with(r, r.layers()?)
    }

    /// The same where the number of layers follows from something else.
    pub(crate) fn read_with(r: &Reader<'_>, layers: u64) -> Result<Self, ModelError> {
        let hidden = r.dim(HIDDEN)?;
        let vocab = r.dim(&["vocab_size", "padded_vocab_size"])?;
        let heads = r.dim(&["num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"])?;
        let kv_heads = match r.dim_opt(&["num_key_value_heads", "num_kv_heads", "multi_query_group_num"])? {
            Some(kv) => kv,
            None => {
                r.problem("num_key_value_heads", format!("not given, taken as the {heads} attention heads"));
                heads
            }
        };
        if kv_heads > heads || heads % kv_heads != 0 {
            let value = serde_json::Value::from(kv_heads);
            return Err(r.bad("num_key_value_heads", &value, &format!("a divisor of the {heads} attention heads")));
        }
        let explicit = match r.raw(&["head_dim", "attention_head_dim", "kv_channels", "d_kv"]) {
            Some((_, v)) if v.as_u64() == Some(0) => None,
            Some((k, _)) => r.dim_opt(&[k])?,
            None => None,
        };
        let head_dim = match explicit {
            Some(dim) => dim,
            None if hidden % heads == 0 => hidden / heads,
            None => {
                let value = serde_json::Value::from(heads);
                let wanted = format!("a divisor of the hidden width {hidden}, since there is no `head_dim`");
                return Err(r.bad("num_attention_heads", &value, &wanted));
            }
        };
        Ok(Self { hidden, layers, vocab, heads, kv_heads, head_dim })
    }
}

/// The spec of a decoder without its layers: embedding, head, formats.
pub(crate) fn skeleton(
    r: &Reader<'_>,
    family: &'static str,
    hidden: u64,
    vocab: u64,
    tied_default: bool,
) -> Result<ModelSpec, ModelError> {
    let stored = quant::stored(r)?;
    let tied = match r.flag_opt(&["tie_word_embeddings", "tie_embedding"])? {
        Some(tied) => tied,
        None => {
            let word = if tied_default { "tied" } else { "not tied" };
            r.problem("tie_word_embeddings", format!("not given, taken as {word} (the family's default)"));
            tied_default
        }
    };
    let context = r.count(
        &["max_position_embeddings", "model_max_length", "n_positions", "max_seq_len", "seq_length", "n_ctx"],
        0,
        1 << 40,
    )?;
    Ok(ModelSpec {
        name: r.name.into(),
        family,
        architecture: r.text(&["model_type"])?.unwrap_or(family).chars().take(80).collect(),
        hidden,
        vocab,
        max_context: context,
        layers: Vec::new(),
        embedding: vec![matrix("embed_tokens", Role::Embedding, vocab, hidden, Shard::Output)],
        head: (!tied).then(|| matrix("lm_head", Role::Head, vocab, hidden, Shard::Output)),
        tied,
        small: 0,
        towers: Vec::new(),
        mtp: None,
        weights: stored.weights,
        unquantised: stored.unquantised,
        dtype_bytes: stored.dtype_bytes,
        stored_extra: Vec::new(),
        measured: None,
        problems: Vec::new(),
    })
}

impl Windows {
    /// What each layer sees.
    pub(crate) fn read(self, r: &Reader<'_>, layers: u64) -> Result<Vec<Window>, ModelError> {
        r.ignore(&[
            "sliding_window",
            "use_sliding_window",
            "max_window_layers",
            "sliding_window_pattern",
            "layer_types",
            "attention_chunk_size",
            "sliding_window_size",
        ]);
        let size = r.count(&["sliding_window"], 0, 1 << 40)?;
        let local = if size > 0 { Window::Sliding(size) } else { Window::Full };
        let types = r.per_layer(&["layer_types"], layers)?;
        let named = |kind: &str| match kind {
            "full_attention" => Ok(Window::Full),
            "sliding_attention" if size > 0 => Ok(local),
            "sliding_attention" => Err(r.missing(&["sliding_window"])),
            "chunked_attention" => r.dim(&["attention_chunk_size"]).map(Window::Chunked),
            other => Err(r.unknown(format!("the layer type `{}`", other.chars().take(40).collect::<String>()))),
        };
        if let (Some(types), false) = (&types, matches!(self, Self::Never)) {
            return types.iter().map(|t| named(t)).collect();
        }
        if let Some(types) = types
            && let Some(other) = types.iter().find(|t| **t != "full_attention")
        {
            return Err(r.unknown(format!("the layer type `{}`", other.chars().take(40).collect::<String>())));
        }
        let uses = r.flag("use_sliding_window", false)?;
        let from = r.count(&["max_window_layers"], layers, u64::MAX)?;
        let step = match (self, r.raw(&["sliding_window_pattern"])) {
            (Self::Every(_), Some((_, v))) if v.as_u64().is_some_and(|n| n > 0) => v.as_u64().unwrap_or(0),
            (Self::Every(n), _) => n,
            _ => 0,
        };
        Ok((0..layers)
            .map(|i| match self {
                Self::Never => Window::Full,
                Self::All => local,
                Self::Qwen if uses && i >= from => local,
                Self::Qwen => Window::Full,
                Self::Every(_) if step > 0 && (i + 1) % step != 0 => local,
                Self::Every(_) => Window::Full,
            })
            .collect())
    }
}

impl MoeLayers {
    /// Which layers route.
    pub(crate) fn read(self, r: &Reader<'_>, layers: u64) -> Result<Vec<bool>, ModelError> {
        if let Some(types) = r.per_layer(&["mlp_layer_types"], layers)? {
            r.ignore(&["first_k_dense_replace", "moe_layer_freq", "mlp_only_layers", "decoder_sparse_step"]);
            return types
                .iter()
                .map(|t| match *t {
                    "dense" => Ok(false),
                    "sparse" | "moe" => Ok(true),
                    other => {
                        let shown: String = other.chars().take(40).collect();
                        Err(r.unknown(format!("the feed-forward type `{shown}`")))
                    }
                })
                .collect();
        }
        let max = crate::config::MAX_LAYERS;
        Ok(match self {
            Self::All => vec![true; layers as usize],
            Self::DeepSeek(default) => {
                let first = r.count(&["first_k_dense_replace"], default, max)?;
                if let Some(list) = r.counts(&["moe_layer_freq"])? {
                    return pad(r, "moe_layer_freq", list.into_iter().map(|n| n > 0).collect(), layers);
                }
                let step = r.count(&["moe_layer_freq", "moe_layer_frequency"], 1, max)?.max(1);
                (0..layers).map(|i| i >= first && i % step == 0).collect()
            }
            Self::Qwen => {
                let only = r.counts(&["mlp_only_layers"])?.unwrap_or_default();
                let step = r.count(&["decoder_sparse_step"], 1, max)?.max(1);
                (0..layers).map(|i| !only.contains(&i) && (i + 1) % step == 0).collect()
            }
            Self::Ernie => {
                let start = r.count(&["moe_layer_start_index"], 0, max)?;
                let end = r.count(&["moe_layer_end_index"], layers, max)?;
                let step = r.count(&["moe_layer_interval"], 1, max)?.max(1);
                (0..layers).map(|i| start <= i && i <= end && (i + 1) % step == 0).collect()
            }
            Self::Lfm => {
                let first = r.count(&["num_dense_layers"], 0, max)?;
                (0..layers).map(|i| i >= first).collect()
            }
        })
    }
}

fn pad(r: &Reader<'_>, key: &str, list: Vec<bool>, layers: u64) -> Result<Vec<bool>, ModelError> {
    if list.len() as u64 == layers {
        return Ok(list);
    }
    let value = serde_json::Value::from(list.len());
    Err(r.bad(key, &value, &format!("a list of {layers}, one per layer")))
}

impl Experts {
    /// The routed network of a layer, or `None` where the config has no experts.
    pub(crate) fn read(&self, r: &Reader<'_>, hidden: u64, gated: bool) -> Result<Option<Moe>, ModelError> {
        let experts = r.count(EXPERTS, 0, MAX_EXPERTS)?;
        if experts == 0 {
            return Ok(None);
        }
        let top_k = match r.raw(TOP_K) {
            Some((_, serde_json::Value::Array(_))) => {
                let list = r.counts(TOP_K)?.unwrap_or_default();
                let first = list.first().copied().unwrap_or(0);
                if list.iter().any(|k| *k != first) {
                    return Err(r.unknown("a number of experts per token that differs between layers"));
                }
                first
            }
            Some(_) => r.count(TOP_K, 0, MAX_EXPERTS)?,
            None => return Err(r.missing(TOP_K)),
        };
        if top_k == 0 || top_k > experts {
            let (key, value) = r.raw(TOP_K).ok_or_else(|| r.missing(TOP_K))?;
            return Err(r.bad(key, value, &format!("from 1 to the {experts} experts")));
        }
        let width = uniform(r, self.width)?;
        let shared = match self.shared {
            Shared::No => 0,
            Shared::Count(keys) => match r.counts(keys)? {
                Some(_) => uniform(r, keys)?.saturating_mul(width),
                None => r.count(keys, 0, MAX_EXPERTS)?.saturating_mul(width),
            },
            Shared::Width(keys) => r.count(keys, 0, crate::config::MAX_DIMENSION)?,
        };
        Ok(Some(Moe {
            hidden,
            experts,
            top_k,
            width,
            shared,
            shared_gate: self.shared_gate && shared > 0,
            gated,
            bias: self.bias,
            router_bias: self.router_bias,
        }))
    }
}

/// A dimension that some configs give per layer; all must agree.
pub(crate) fn uniform(r: &Reader<'_>, keys: &[&'static str]) -> Result<u64, ModelError> {
    match r.counts(keys)? {
        Some(list) => {
            let first = list.first().copied().unwrap_or(0);
            let key = keys.first().copied().unwrap_or_default();
            if first == 0 || list.iter().any(|w| *w != first) {
                return Err(r.unknown(format!("`{key}` that differs between layers")));
            }
            Ok(first)
        }
        None => r.dim(keys),
    }
}

/// Reads a decoder of a style.
pub(crate) fn decoder(r: &Reader<'_>, style: &Style) -> Result<ModelSpec, ModelError> {
    let d = Dims::read(r)?;
    let mut spec = skeleton(r, style.family, d.hidden, d.vocab, style.tied)?;
    decoder_parts(r, style, d, &mut spec)?;
    Ok(spec)
}

/// The pieces of a decoder of a style, for families that add to it.
pub(crate) fn decoder_parts(r: &Reader<'_>, style: &Style, d: Dims, spec: &mut ModelSpec) -> Result<(), ModelError> {
    let windows = style.windows.read(r, d.layers)?;
    let moe = match &style.experts {
        Some(experts) => experts.read(r, d.hidden, style.gated)?,
        None => {
            if r.count(EXPERTS, 0, MAX_EXPERTS)? > 1 {
                return Err(r.unknown("experts in a family that has none"));
            }
            None
        }
    };
    let routed = match moe {
        Some(_) => style.moe_layers.read(r, d.layers)?,
        None => vec![false; d.layers as usize],
    };
    let dense_width = if routed.iter().all(|m| *m) {
        r.ignore(WIDTH);
        0
    } else {
        match r.dim_opt(WIDTH)? {
            Some(width) => width,
            None if style.width_ratio > 0 => d.hidden.saturating_mul(style.width_ratio),
            None => return Err(r.missing(WIDTH)),
        }
    };
    let qkv_bias = style.qkv_bias.read(r)?;
    let o_bias = style.o_bias.read(r)?;
    let mlp_bias = style.mlp_bias.read(r)?;
    let qk_norm = match style.qk_norm_if {
        Some((key, default)) if !r.flag(key, default)? => QkNorm::None,
        _ => style.qk_norm,
    };
    let mut small = style.norm.params(d.hidden).saturating_mul(style.norms_per_layer);
    small = small.saturating_add(match qk_norm {
        QkNorm::None => 0,
        QkNorm::Head => 2 * d.head_dim,
        QkNorm::Full => d.heads.saturating_add(d.kv_heads).saturating_mul(d.head_dim),
    });
    if style.sinks {
        small = small.saturating_add(d.heads);
    }
    let mut buffers = 0u64;
    for (window, routed) in windows.into_iter().zip(routed) {
        let mut layer = Layer::new(small);
        Gqa { qkv_bias, o_bias, gate: style.gate, window, ..attend(d, false) }.add(&mut layer);
        match (moe, routed) {
            (Some(moe), true) => {
                moe.add(&mut layer);
                if let Some(e) = &style.experts {
                    layer.small = layer.small.saturating_add(if e.correction { moe.experts } else { 0 });
                    buffers = buffers.saturating_add(if e.buffer { moe.experts } else { 0 });
                }
            }
            _ => mlp(&mut layer, Role::Mlp, d.hidden, dense_width, 1, style.gated, mlp_bias),
        }
        push(&mut spec.layers, layer);
    }
    if buffers > 0 {
        spec.stored_extra.push(("router bias buffers".into(), i64::try_from(buffers).unwrap_or(i64::MAX)));
    }
    let outer_norms = u64::from(style.final_norm) + u64::from(style.embedding_norm);
    spec.small = spec.small.saturating_add(style.norm.params(d.hidden).saturating_mul(outer_norms));
    if let Some((keys, more)) = style.positions {
        let rows = r.dim(keys)?.saturating_add(more);
        spec.embedding.push(matrix("positions", Role::Other, rows, d.hidden, Shard::Replicated));
    }
    if style.head_bias.read(r)? {
        match &mut spec.head {
            Some(head) => head.bias = true,
            None => spec.small = spec.small.saturating_add(d.vocab),
        }
    }
    Ok(())
}

/// The last layer of a spec as a layer of an MTP block.
pub(crate) fn last_layer(spec: &ModelSpec) -> Option<crate::spec::LayerRun> {
    spec.layers.last().map(|run| crate::spec::LayerRun { count: 1, ..run.clone() })
}

/// Elements of one expert's router bias in a routed layer.
pub(crate) fn router_width(run: &crate::spec::LayerRun) -> u64 {
    match run.feed_forward {
        FeedForward::Moe { experts, .. } => u64::from(experts),
        _ => 0,
    }
}

/// A matrix of `2h × h` that joins the last hidden state and the next token's embedding in an MTP block.
pub(crate) fn eh_proj(hidden: u64) -> Matrix {
    matrix("eh_proj", Role::Other, hidden, hidden.saturating_mul(2), Shard::Replicated)
}
