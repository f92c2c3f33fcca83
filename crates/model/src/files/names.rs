//! What a tensor is, by its name.

/// What a stored tensor holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Parameters, one an element.
    Plain,
    /// Parameters packed several to an element: weights per element follow from its type and the bits.
    Packed,
    /// Scales, zero points, group indices and other helpers of a quantised matrix.
    Helper,
}

/// Which part of the model a tensor belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Attention and other token mixers.
    Mixing,
    /// Dense feed-forward networks and shared experts.
    FeedForward,
    /// Routed experts.
    Experts,
    /// Input embedding.
    Embedding,
    /// Output head.
    Head,
    /// Vision and audio towers.
    Tower,
    /// Blocks for multi-token prediction.
    Mtp,
    /// Norms and the rest.
    Other,
}

impl Part {
    /// Its name on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mixing => "attention",
            Self::FeedForward => "feed-forward",
            Self::Experts => "experts",
            Self::Embedding => "embedding",
            Self::Head => "head",
            Self::Tower => "towers",
            Self::Mtp => "MTP",
            Self::Other => "other",
        }
    }

    /// The part by the tensor's name, in the names of Hugging Face and of GGUF; layers from `layers` on are MTP blocks.
    pub fn of(name: &str, layers: Option<u64>) -> Self {
        let has = |words: &[&str]| words.iter().any(|w| name.contains(w));
        let beyond = layer_of(name).zip(layers).is_some_and(|(at, layers)| at >= layers);
        if beyond || name.starts_with("mtp") || has(&[".mtp", "nextn"]) {
            Self::Mtp
        } else if has(&["vision", "visual", "audio_tower", "multi_modal", "mm_projector"])
            || name.starts_with("v.")
            || name.starts_with("mm.")
        {
            Self::Tower
        } else if has(&["embed_tokens", "token_embd", "wte.", "word_embeddings", "tok_embeddings"]) {
            Self::Embedding
        } else if has(&["lm_head", "embed_out"]) || name.starts_with("output.") {
            Self::Head
        } else if has(&["norm"]) {
            Self::Other
        } else if has(&["shared_expert", "_shexp"]) {
            Self::FeedForward
        } else if has(&[".experts.", "_exps."]) {
            Self::Experts
        } else if has(&["attn", "attention", "mixer", "mamba", "ssm_", "_conv"]) {
            Self::Mixing
        } else if has(&["mlp", "ffn", "feed_forward", "fc1", "fc2"]) {
            Self::FeedForward
        } else {
            Self::Other
        }
    }
}

/// The number after `layers.`, `blk.` or `h.`, of the decoder only.
fn layer_of(name: &str) -> Option<u64> {
    let rest = ["model.layers.", "model.language_model.layers.", "language_model.model.layers.", "layers.", "blk."]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))?;
    rest.split('.').next()?.parse().ok()
}

impl Kind {
    /// By name and element type (`I32`, `U8`, …).
    pub(crate) fn of(name: &str, dtype: &str) -> Self {
        const HELPERS: &[&str] = &[
            ".scales",
            ".qzeros",
            ".g_idx",
            ".biases",
            "_scale",
            "_scale_inv",
            "_scale_2",
            "_scales",
            "_zero_point",
            "_global_scale",
            "_shape",
            ".absmax",
            ".quant_map",
            ".nested_absmax",
            ".nested_quant_map",
            ".SCB",
            "weight_g_idx",
        ];
        if name.contains(".quant_state.") || HELPERS.iter().any(|h| name.ends_with(h)) {
            return Self::Helper;
        }
        let packed = match dtype {
            "I32" => name.ends_with(".qweight") || name.ends_with("weight_packed") || name.ends_with(".weight"),
            "U32" => name.ends_with(".weight"),
            "U8" => {
                ["_blocks", "weight_packed", ".weight"].iter().any(|e| name.ends_with(e)) || name.ends_with("_proj")
            }
            _ => false,
        };
        if packed { Self::Packed } else { Self::Plain }
    }
}
