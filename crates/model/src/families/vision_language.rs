//! Decoders with towers of their own kind: ERNIE 4.5 VL, GOT-OCR 2, Muse Glimmer, Kosmos 2.5. Follows
//! `modeling_ernie4_5_vl_moe.py`, `modeling_got_ocr2.py`, `modeling_muse_glimmer.py` and
//! `modeling_kosmos2_5.py` of transformers.

use super::qwen::QWEN2;
use super::{How::Code, Types};
use crate::blocks::{Layer, matrix, mlp, push};
use crate::config::{MAX_EXPERTS, Reader};
use crate::decoder::{
    Dims, Experts, LLAMA, MoeLayers, PLAIN_EXPERTS, Shared, Style, Windows, attend, decoder, skeleton,
};
use crate::error::ModelError;
use crate::spec::{ModelSpec, Role, Shard};
use crate::towers;

/// Muse's decoder: an output gate, norms before and after both halves, windows in three of four layers.
const MUSE: Style = Style { family: "muse", gate: true, norms_per_layer: 4, windows: Windows::Every(4), ..LLAMA };

pub(crate) const TYPES: Types = &[
    ("ernie4_5_vl_moe", Code(ernie)),
    ("got_ocr2", Code(got_ocr)),
    ("muse_glimmer", Code(muse)),
    ("kosmos-2.5", Code(kosmos)),
];

fn inner<'a>(r: &Reader<'a>, family: &'static str) -> Result<Reader<'a>, ModelError> {
    Ok(r.nested("text_config", true)?.ok_or_else(|| r.missing(&["text_config"]))?.of(family))
}

fn muse(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let text = inner(r, "muse")?;
    text.ignore(&["qk_scale_factor", "output_multiplier"]);
    let mut spec = decoder(&text, &MUSE)?;
    towers::muse(r, spec.hidden, &mut spec.towers)?;
    text.finish()?;
    Ok(spec)
}

fn got_ocr(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let text = inner(r, "qwen2")?;
    let mut spec = decoder(&text, &QWEN2)?;
    towers::got_ocr(r, spec.hidden, &mut spec.towers)?;
    text.finish()?;
    Ok(spec)
}

/// Kosmos 2.5: fixed positions, LayerNorm also inside the network, two segment embeddings.
fn kosmos(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let text = &inner(r, "kosmos")?;
    let mut d = Dims::read(text)?;
    d.kv_heads = d.heads;
    let width = text.dim(&["ffn_dim"])?;
    text.ignore(&["scale_embedding"]);
    let mut spec = skeleton(text, "kosmos", d.hidden, d.vocab, true)?;
    spec.embedding.push(matrix("segments", Role::Other, 2, d.hidden, Shard::Replicated));
    for _ in 0..d.layers {
        let mut layer = Layer::new(4 * d.hidden + 2 * width);
        attend(d, true).add(&mut layer);
        mlp(&mut layer, Role::Mlp, d.hidden, width, 1, false, true);
        push(&mut spec.layers, layer);
    }
    spec.small = 2 * d.hidden;
    towers::kosmos(r, d.hidden, &mut spec.towers)?;
    text.finish()?;
    Ok(spec)
}

/// Text and image tokens have experts of their own width, 64 each.
fn ernie(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let text = &inner(r, "ernie")?;
    let d = Dims::read(text)?;
    if text.flag("use_bias", false)? {
        return Err(text.unknown("`use_bias` of ERNIE 4.5 VL"));
    }
    let widths = text.counts(&["moe_intermediate_size"])?.unwrap_or_default();
    let [wide, narrow] = widths[..] else {
        return Err(text.unknown("`moe_intermediate_size` that is not a pair"));
    };
    let experts = Experts { width: &["intermediate_size"], shared: Shared::No, ..PLAIN_EXPERTS };
    let moe = experts.read(text, d.hidden, true)?.ok_or_else(|| text.missing(&["moe_num_experts"]))?;
    let shared = text.count(&["moe_num_shared_experts"], 0, MAX_EXPERTS)?;
    let moe = crate::blocks::Moe { width: wide, shared: shared.saturating_mul(wide), ..moe };
    let routed = MoeLayers::DeepSeek(1).read(text, d.layers)?;
    let width = text.dim(&["intermediate_size"])?;
    text.ignore(&["moe_norm_min"]);
    let mut spec = skeleton(text, "ernie", d.hidden, d.vocab, true)?;
    for routed in routed {
        let mut layer = Layer::new(2 * d.hidden);
        attend(d, false).add(&mut layer);
        if routed {
            moe.add(&mut layer);
            // the experts of image tokens, their router, and two correction biases
            mlp(&mut layer, Role::Expert, d.hidden, narrow, moe.experts, true, false);
            let second = layer.matrices.iter().find(|m| m.role == Role::Router).cloned();
            layer.matrices.extend(second);
            layer.small = layer.small.saturating_add(2 * moe.experts);
        } else {
            mlp(&mut layer, Role::Mlp, d.hidden, width, 1, true, false);
        }
        push(&mut spec.layers, layer);
    }
    spec.small = d.hidden;
    text.problem("moe_num_experts", "text and image tokens have experts of their own; active counts both kinds");
    towers::ernie(r, d.hidden, &mut spec.towers)?;
    text.finish()?;
    Ok(spec)
}
