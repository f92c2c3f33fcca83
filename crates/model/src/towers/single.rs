//! Towers that one model has: ERNIE 4.5 VL, GOT-OCR 2, Muse Glimmer, Kosmos 2.5.

use super::{Build, kernel, part, vit_layers};
use crate::config::{MAX_LAYERS, Reader};
use crate::error::ModelError;
use crate::spec::Tower;

/// ERNIE 4.5 VL: a plain transformer, then a resampler that joins patches in space and frames in time.
pub(crate) fn ernie(r: &Reader<'_>, hidden: u64, towers: &mut Vec<Tower>) -> Result<(), ModelError> {
    let Some(v) = part(r, "vision_config")? else { return Ok(()) };
    let (h, n) = (v.dim(&["hidden_size"])?, v.dim(&["depth"])?.min(MAX_LAYERS));
    let f = v.dim(&["intermediate_size"])?;
    let mut t = Build::new();
    t.add("patch_linear", h, kernel(&v, v.dim(&["patch_size"])?)?, false, 1);
    t.add("qkv", 3 * h, h, true, n);
    t.add("o_proj", h, h, true, n);
    t.add("fc1", f, h, true, n);
    t.add("fc2", h, f, true, n);
    t.layer_norms(h, 2 * n + 1);
    let space = v.dim_or(&["spatial_merge_size"], 2, "as in ERNIE 4.5 VL")?;
    let time = v.dim_or(&["temporal_merge_size"], 2, "as in ERNIE 4.5 VL")?;
    v.ignore(&["num_heads"]);
    v.finish()?;
    towers.push(t.done("vision"));
    let wide = h.saturating_mul(space).saturating_mul(space);
    let mut p = Build::new();
    p.add("spatial_linear", wide, wide, true, 2);
    p.add("temporal_linear_0", wide, wide.saturating_mul(time), true, 1);
    p.add("temporal_linear_2", wide, wide, true, 1);
    p.layer_norms(wide, 2);
    p.add("mlp", hidden, wide, true, 1);
    p.scales(hidden, 1);
    towers.push(p.done("projector"));
    Ok(())
}

/// GOT-OCR 2: SAM's encoder with relative positions, a convolutional neck, two more convolutions and a projector.
pub(crate) fn got_ocr(r: &Reader<'_>, hidden: u64, towers: &mut Vec<Tower>) -> Result<(), ModelError> {
    let Some(v) = part(r, "vision_config")? else { return Ok(()) };
    let (h, n) = (v.dim(&["hidden_size"])?, v.layers()?);
    let (f, heads) = (v.dim(&["mlp_dim"])?, v.dim(&["num_attention_heads"])?);
    let patch = v.dim(&["patch_size"])?;
    let side = v.dim(&["image_size"])? / patch;
    let out = v.dim(&["output_channels"])?;
    let global = v.counts(&["global_attn_indexes"])?.unwrap_or_default();
    let window = v.dim(&["window_size"])?;
    let bias = v.flag("qkv_bias", true)?;
    if !v.flag("use_abs_pos", true)? || !v.flag("use_rel_pos", true)? {
        return Err(r.unknown("a SAM tower without its positions"));
    }
    let mut t = Build::new();
    t.add("patch_conv", h, kernel(&v, patch)?, true, 1);
    t.add("positions", side.saturating_mul(side), h, false, 1);
    t.add("qkv", 3 * h, h, bias, n);
    t.add("o_proj", h, h, true, n);
    t.add("fc1", f, h, true, n);
    t.add("fc2", h, f, true, n);
    t.layer_norms(h, 2 * n);
    let all = global.iter().filter(|i| **i < n).count() as u64;
    let rows = |side: u64| side.saturating_mul(2).saturating_sub(1).saturating_mul(2);
    t.scales(rows(side).saturating_mul(h / heads), all);
    t.scales(rows(window).saturating_mul(h / heads), n.saturating_sub(all));
    t.add("neck_conv1", out, h, false, 1);
    t.add("neck_conv2", out, out.saturating_mul(9), false, 1);
    t.layer_norms(out, 2);
    v.finish()?;
    towers.push(t.done("vision"));
    let mut p = Build::new();
    let (twice, four) = (out.saturating_mul(2), out.saturating_mul(4));
    p.add("conv_upsampler1", twice, out.saturating_mul(9), false, 1);
    p.add("conv_upsampler2", four, twice.saturating_mul(9), false, 1);
    p.add("multimodal_projector", hidden, four, true, 1);
    towers.push(p.done("projector"));
    Ok(())
}

/// Muse Glimmer: a plain transformer on pairs of frames, a projector of three matrices.
pub(crate) fn muse(r: &Reader<'_>, hidden: u64, towers: &mut Vec<Tower>) -> Result<(), ModelError> {
    let Some(v) = part(r, "vision_config")? else { return Ok(()) };
    let h = v.dim(&["hidden_size"])?;
    let frames = v.dim(&["patch_temporal"])?;
    let rows = v.dim(&["pos_emb_height"])?.saturating_mul(v.dim(&["pos_emb_width"])?);
    let mut t = Build::new();
    vit_layers(&v, &mut t)?;
    // another norm before the layers
    t.layer_norms(h, 1);
    t.add("patch_conv", h, kernel(&v, v.dim(&["patch_size"])?)?.saturating_mul(frames), false, 1);
    t.add("positions", rows, h, false, 1);
    v.ignore(&["merge_size", "layer_types"]);
    v.finish()?;
    towers.push(t.done("vision"));
    let (input, inner) = (r.dim(&["out_hidden_size"])?, r.dim(&["projector_hidden_size"])?);
    r.ignore(&["projector_hidden_act"]);
    let mut p = Build::new();
    p.add("linear_1", inner, input, false, 1);
    p.add("linear_2", inner, inner, false, 1);
    p.add("linear_3", hidden, inner, false, 1);
    towers.push(p.done("projector"));
    Ok(())
}

/// Kosmos 2.5: Pix2Struct's encoder with row and column tables, then a resampler of latent queries.
pub(crate) fn kosmos(r: &Reader<'_>, hidden: u64, towers: &mut Vec<Tower>) -> Result<(), ModelError> {
    let Some(v) = part(r, "vision_config")? else { return Ok(()) };
    let (h, n, f) = (v.dim(&["hidden_size"])?, v.layers()?, v.dim(&["intermediate_size"])?);
    let a = v.dim(&["num_attention_heads"])?.saturating_mul(v.dim(&["head_dim"])?);
    let mut t = Build::new();
    t.add("patch_linear", h, v.dim(&["patch_embed_hidden_size"])?, true, 1);
    t.add("positions", v.dim(&["max_num_patches"])?, h, false, 2);
    t.add("qkv", 3 * a, h, false, n);
    t.add("o_proj", h, a, false, n);
    t.add("gate_up", 2 * f, h, false, n);
    t.add("down_proj", h, f, false, n);
    t.scales(h, 2 * n + 1);
    v.ignore(&["dense_act_fn"]);
    v.finish()?;
    towers.push(t.done("vision"));
    let mut p = Build::new();
    p.add("dense", hidden, h, true, 1);
    p.add("latent_query", r.dim(&["latent_query_num"])?, hidden, false, 1);
    p.add("x_attn", hidden, hidden, true, 4);
    towers.push(p.done("projector"));
    Ok(())
}
