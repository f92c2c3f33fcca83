//! Towers of Gemma 4, Llama 3.2 Vision and GLM-4.1V.

use super::{Build, kernel, part};
use crate::config::{MAX_LAYERS, Reader};
use crate::error::ModelError;
use crate::spec::Tower;

/// Gemma 4: gated network, four norms per layer, norms of queries and keys, two position tables.
pub(crate) fn gemma4(r: &Reader<'_>, hidden: u64, towers: &mut Vec<Tower>) -> Result<(), ModelError> {
    let Some(v) = part(r, "vision_config")? else { return Ok(()) };
    let (h, n, f) = (v.dim(&["hidden_size"])?, v.layers()?, v.dim(&["intermediate_size"])?);
    let (heads, d) = (v.dim(&["num_attention_heads"])?, v.dim(&["head_dim"])?);
    let kv = v.dim_opt(&["num_key_value_heads"])?.unwrap_or(heads);
    let bias = v.flag("attention_bias", false)?;
    if v.flag("use_clipped_linears", false)? {
        return Err(r.unknown("`use_clipped_linears`"));
    }
    let mut t = Build::new();
    t.add("patch_linear", h, kernel(&v, v.dim(&["patch_size"])?)?, false, 1);
    t.add("positions", v.dim(&["position_embedding_size"])?, h, false, 2);
    t.add("q_proj", heads.saturating_mul(d), h, bias, n);
    t.add("kv_proj", kv.saturating_mul(d), h, bias, 2 * n);
    t.add("o_proj", h, heads.saturating_mul(d), bias, n);
    t.add("gate_up", 2 * f, h, false, n);
    t.add("down_proj", h, f, false, n);
    t.scales(h, 4 * n);
    t.scales(d, 2 * n);
    v.ignore(&["standardize", "global_head_dim", "pooling_kernel_size", "default_output_length", "video_seq_length"]);
    v.finish()?;
    towers.push(t.done("vision"));
    let mut p = Build::new();
    p.add("embedding_projection", hidden, h, false, 1);
    towers.push(p.done("projector"));
    Ok(())
}

/// Llama 3.2 Vision: tile and position tables with gates, 32 local and 8 gated global layers. Returns the image tokens
/// of one sequence's largest image.
pub(crate) fn mllama(r: &Reader<'_>, hidden: u64, towers: &mut Vec<Tower>) -> Result<u64, ModelError> {
    let Some(v) = part(r, "vision_config")? else { return Ok(0) };
    let (h, f) = (v.dim(&["hidden_size"])?, v.dim(&["intermediate_size"])?);
    let (local, global) = (v.layers()?, v.count(&["num_global_layers"], 8, MAX_LAYERS)?);
    let n = local.saturating_add(global);
    let patch = v.dim(&["patch_size"])?;
    let side = v.dim(&["image_size"])? / patch;
    let tokens = side.saturating_mul(side).saturating_add(1);
    let tiles = v.dim(&["max_num_tiles"])?;
    let shapes = match v.raw(&["supported_aspect_ratios"]) {
        Some((_, list)) => list.as_array().map_or(0, Vec::len) as u64 + 1,
        None => return Err(v.missing(&["supported_aspect_ratios"])),
    };
    let mut t = Build::new();
    t.add("patch_conv", h, kernel(&v, patch)?, false, 1);
    t.scales(h, 1);
    t.add("positions", tokens, h, false, 1);
    t.add("tile_positions", shapes, tiles.saturating_mul(tokens).saturating_mul(h), false, 1);
    t.add("tile_embedding", shapes, tiles.saturating_mul(h), false, 2);
    // gates of the tables
    t.scales(1, 3);
    t.add("qkv", 3 * h, h, false, n);
    t.add("o_proj", h, h, false, n);
    t.add("fc1", f, h, true, n);
    t.add("fc2", h, f, true, n);
    t.layer_norms(h, 2 * n + 2);
    t.scales(2, global);
    let out = v.dim(&["vision_output_dim"])?;
    v.ignore(&["attention_heads", "num_attention_heads", "intermediate_layers_indices", "vision_output_dim"]);
    v.finish()?;
    towers.push(t.done("vision"));
    let mut p = Build::new();
    p.add("multi_modal_projector", hidden, out, true, 1);
    towers.push(p.done("projector"));
    Ok(tiles.saturating_mul(tokens))
}

/// GLM-4.1V: gated network of the decoder's width, RMSNorm, a convolution that joins four patches, a gated merger.
pub(crate) fn glm4v(r: &Reader<'_>, hidden: u64, towers: &mut Vec<Tower>) -> Result<(), ModelError> {
    let Some(v) = part(r, "vision_config")? else { return Ok(()) };
    let (h, n) = (v.dim(&["hidden_size"])?, v.dim(&["depth"])?.min(MAX_LAYERS));
    let f = v.dim(&["intermediate_size"])?;
    let out = v.dim_opt(&["out_hidden_size"])?.unwrap_or(hidden);
    let patch = v.dim(&["patch_size"])?;
    let side = v.dim(&["image_size"])? / patch;
    let frames = v.dim_or(&["temporal_patch_size"], 2, "as in GLM-4.1V")?;
    let merge = v.dim_or(&["spatial_merge_size"], 2, "as in GLM-4.1V")?;
    let bias = v.flag("attention_bias", false)?;
    let mut t = Build::new();
    t.add("patch_conv", h, kernel(&v, patch)?.saturating_mul(frames), true, 1);
    t.add("positions", side.saturating_mul(side), h, false, 1);
    t.add("qkv", 3 * h, h, bias, n);
    t.add("o_proj", h, h, false, n);
    t.add("gate_up", 2 * out, h, false, n);
    t.add("down_proj", h, out, false, n);
    // after the patches and after the layers
    t.scales(h, 2 * n + 2);
    t.add("downsample", out, h.saturating_mul(merge).saturating_mul(merge), true, 1);
    t.add("merger_proj", out, out, false, 1);
    t.layer_norms(out, 1);
    t.add("merger_gate_up", 2 * f, out, false, 1);
    t.add("merger_down", out, f, false, 1);
    v.ignore(&["num_heads"]);
    v.finish()?;
    towers.push(t.done("vision"));
    Ok(())
}
