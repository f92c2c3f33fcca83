//! Encoder-decoders: T5, mT5, Flan-T5, T5Gemma and Whisper. The encoder is a tower; the decoder's layers hold a second,
//! cross-attention block that caches keys of the source. Follows `modeling_t5.py`, `modeling_t5gemma.py` and
//! `modeling_whisper.py` of
//! transformers.

use super::{How::Code, Types};
use crate::blocks::{Gqa, Layer, matrix, mlp, push};
use crate::config::{MAX_LAYERS, Reader};
use crate::decoder::{Dims, Windows, attend, skeleton};
use crate::error::ModelError;
use crate::spec::{Attention, LayerRun, Matrix, ModelSpec, Role, Shard, Tower, Window};

pub(crate) const TYPES: Types = &[
    ("t5", Code(t5)),
    ("mt5", Code(t5)),
    ("umt5", Code(umt5)),
    ("t5gemma", Code(t5gemma)),
    ("whisper", Code(whisper)),
];

fn umt5(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    Err(r.unknown("uMT5, which has position biases in every layer"))
}

/// Adds a cross-attention block beside the self-attention of a layer.
fn cross(layer: &mut Layer, a: Gqa, source_tokens: u64) {
    let mut second = Layer::new(0);
    a.add(&mut second);
    for m in second.matrices {
        let name = match m.name {
            "q_proj" => "cross_q_proj",
            "k_proj" => "cross_k_proj",
            "v_proj" => "cross_v_proj",
            _ => "cross_o_proj",
        };
        layer.matrices.push(Matrix { name, ..m });
    }
    let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    layer.cross = Some(Attention::Cross {
        heads: narrow(a.heads),
        kv_heads: narrow(a.kv_heads),
        dim: narrow(a.k_dim),
        source_tokens,
    });
}

/// Layers as a tower of `count` copies.
fn tower(run: LayerRun, more: Vec<Matrix>, small: u64) -> Tower {
    let count = u64::from(run.count);
    let layers = run.matrices.into_iter().map(|m| Matrix {
        role: Role::Tower,
        shard: Shard::Replicated,
        copies: m.copies.saturating_mul(count),
        ..m
    });
    Tower {
        name: "encoder",
        matrices: layers.chain(more).collect(),
        small: run.small.saturating_mul(count).saturating_add(small),
    }
}

fn square(hidden: u64, heads: u64, dim: u64, qkv_bias: bool, o_bias: bool) -> Gqa {
    Gqa {
        hidden,
        heads,
        kv_heads: heads,
        k_dim: dim,
        v_dim: dim,
        qkv_bias,
        o_bias,
        gate: false,
        k_is_v: false,
        own_cache: true,
        window: Window::Full,
    }
}

fn t5(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("t5");
    let (h, vocab) = (r.dim(&["d_model"])?, r.dim(&["vocab_size"])?);
    let (heads, dim, width) = (r.dim(&["num_heads"])?, r.dim(&["d_kv"])?, r.dim(&["d_ff"])?);
    let encoder = r.layers()?;
    let decoder = r.count(&["num_decoder_layers"], encoder, MAX_LAYERS)?;
    let gated = match r.text(&["feed_forward_proj"])?.unwrap_or("relu") {
        kind if kind.starts_with("gated") => true,
        "relu" | "gelu" | "silu" => false,
        other => return Err(r.unknown(format!("`feed_forward_proj` `{}`", other.chars().take(40).collect::<String>()))),
    };
    let buckets = r.count(&["relative_attention_num_buckets"], 32, 1 << 20)?;
    r.ignore(&["relative_attention_max_distance", "dense_act_fn", "is_gated_act"]);
    let mut spec = skeleton(r, "t5", h, vocab, true)?;
    let attention = square(h, heads, dim, false, false);
    // position biases of the first layer of each half, and a final norm each
    let outer = buckets.saturating_mul(heads).saturating_add(h);
    let mut layer = Layer::new(2 * h);
    attention.add(&mut layer);
    mlp(&mut layer, Role::Mlp, h, width, 1, gated, false);
    spec.towers.push(tower(layer.run(u32::try_from(encoder).unwrap_or(u32::MAX)), Vec::new(), outer));
    for _ in 0..decoder {
        let mut layer = Layer::new(3 * h);
        attention.add(&mut layer);
        cross(&mut layer, attention, 0);
        mlp(&mut layer, Role::Mlp, h, width, 1, gated, false);
        push(&mut spec.layers, layer);
    }
    spec.small = outer;
    Ok(spec)
}

fn whisper(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("whisper");
    let (h, vocab) = (r.dim(&["d_model"])?, r.dim(&["vocab_size"])?);
    let layers = |key: &'static str| r.dim(&[key]).map(|n| n.min(MAX_LAYERS));
    let (encoder, decoder) = (layers("encoder_layers")?, layers("decoder_layers")?);
    let source = r.dim(&["max_source_positions"])?;
    let target = r.dim(&["max_target_positions"])?;
    let mel = r.dim(&["num_mel_bins"])?;
    r.ignore(&["num_hidden_layers"]);
    let mut spec = skeleton(r, "whisper", h, vocab, true)?;
    spec.max_context = target;
    let attention = |key| {
        let heads = r.dim(&[key])?;
        Ok::<_, ModelError>(square(h, heads, h / heads, true, true))
    };
    let no_key_bias = |layer: &mut Layer| {
        for m in &mut layer.matrices {
            if m.name.ends_with("k_proj") {
                m.bias = false;
            }
        }
    };
    let mut layer = Layer::new(4 * h);
    attention("encoder_attention_heads")?.add(&mut layer);
    no_key_bias(&mut layer);
    mlp(&mut layer, Role::Mlp, h, r.dim(&["encoder_ffn_dim"])?, 1, false, true);
    let t = |name, o, i| matrix(name, Role::Tower, o, i, Shard::Replicated);
    let more = vec![
        t("conv1", h, mel.saturating_mul(3)).with_bias(true),
        t("conv2", h, h.saturating_mul(3)).with_bias(true),
        t("positions", source, h),
    ];
    spec.towers.push(tower(layer.run(u32::try_from(encoder).unwrap_or(u32::MAX)), more, 2 * h));
    spec.embedding.push(matrix("positions", Role::Other, target, h, Shard::Replicated));
    let own = attention("decoder_attention_heads")?;
    for _ in 0..decoder {
        let mut layer = Layer::new(6 * h);
        own.add(&mut layer);
        cross(&mut layer, own, source);
        no_key_bias(&mut layer);
        mlp(&mut layer, Role::Mlp, h, r.dim(&["decoder_ffn_dim"])?, 1, false, true);
        push(&mut spec.layers, layer);
    }
    spec.small = 2 * h;
    Ok(spec)
}

/// T5Gemma: two Gemma 2 stacks, the second with cross-attention and a tied head.
fn t5gemma(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let encoder = r.nested("encoder", false)?.ok_or_else(|| r.missing(&["encoder"]))?.of("gemma");
    let decoder = r.nested("decoder", true)?.ok_or_else(|| r.missing(&["decoder"]))?.of("gemma");
    let stack = |s: &Reader<'_>| {
        let d = Dims::read(s)?;
        let windows = Windows::Every(2).read(s, d.layers)?;
        let width = s.dim(&["intermediate_size"])?;
        if s.flag("attention_bias", false)? {
            return Err(s.unknown("`attention_bias` of T5Gemma"));
        }
        Ok((d, windows, width))
    };
    let (e, _, width) = stack(&encoder)?;
    let mut layer = Layer::new(4 * e.hidden);
    attend(e, false).add(&mut layer);
    mlp(&mut layer, Role::Mlp, e.hidden, width, 1, true, false);
    let words = matrix("embed_tokens", Role::Tower, e.vocab, e.hidden, Shard::Replicated);
    let first = tower(layer.run(u32::try_from(e.layers).unwrap_or(u32::MAX)), vec![words], e.hidden);
    encoder.ignore(&["tie_word_embeddings"]);
    encoder.finish()?;
    let (d, windows, width) = stack(&decoder)?;
    let mut spec = skeleton(&decoder, "gemma", d.hidden, d.vocab, true)?;
    spec.towers.push(first);
    for window in windows {
        let mut layer = Layer::new(6 * d.hidden);
        Gqa { window, ..attend(d, false) }.add(&mut layer);
        cross(&mut layer, attend(d, false), 0);
        mlp(&mut layer, Role::Mlp, d.hidden, width, 1, true, false);
        push(&mut spec.layers, layer);
    }
    spec.small = d.hidden;
    decoder.finish()?;
    Ok(spec)
}
