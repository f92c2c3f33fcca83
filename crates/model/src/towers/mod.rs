//! Vision towers and the projectors behind them. A tower reads its own object of the config and is loaded whole.

use crate::blocks::matrix;
use crate::config::Reader;
use crate::error::ModelError;
use crate::spec::{Matrix, Role, Shard, Tower};

mod large;
mod pairs;
mod single;

pub(crate) use large::{gemma4, glm4v, mllama};
pub(crate) use pairs::{clip_pair, siglip_pair, vit};
pub(crate) use single::{ernie, got_ocr, kosmos, muse};

/// A tower under construction.
struct Build {
    matrices: Vec<Matrix>,
    small: u64,
}

impl Build {
    fn new() -> Self {
        Self { matrices: Vec::new(), small: 0 }
    }

    /// `copies` matrices with or without a bias.
    fn add(&mut self, name: &'static str, output: u64, input: u64, bias: bool, copies: u64) {
        let one = matrix(name, Role::Tower, output, input, Shard::Replicated).with_bias(bias);
        self.matrices.push(Matrix { copies, ..one });
    }

    /// `copies` LayerNorms (scale and bias) of a width.
    fn layer_norms(&mut self, width: u64, copies: u64) {
        self.small = self.small.saturating_add(width.saturating_mul(2).saturating_mul(copies));
    }

    /// `copies` scales of a width.
    fn scales(&mut self, width: u64, copies: u64) {
        self.small = self.small.saturating_add(width.saturating_mul(copies));
    }

    fn done(self, name: &'static str) -> Tower {
        Tower { name, matrices: self.matrices, small: self.small }
    }
}

fn part<'a>(r: &Reader<'a>, key: &'static str) -> Result<Option<Reader<'a>>, ModelError> {
    let found = r.nested(key, false)?;
    if found.is_none() {
        r.problem(key, "not in the config: the size is that of the text model alone");
    }
    Ok(found)
}

fn kernel(v: &Reader<'_>, patch: u64) -> Result<u64, ModelError> {
    let channels = v.count(&["num_channels", "in_channels", "in_chans"], 3, 1024)?;
    Ok(channels.saturating_mul(patch).saturating_mul(patch))
}

/// Pixtral (Mistral Small 3.1): gated network, RMSNorm, no position table; then a patch merger and a projector.
pub(crate) fn pixtral(r: &Reader<'_>, hidden: u64, towers: &mut Vec<Tower>) -> Result<(), ModelError> {
    let Some(v) = part(r, "vision_config")? else { return Ok(()) };
    let (h, n) = (v.dim(&["hidden_size"])?, v.layers()?);
    let f = v.dim(&["intermediate_size"])?;
    let a = match (v.dim_opt(&["head_dim"])?, v.dim_opt(&["num_attention_heads"])?) {
        (Some(d), Some(heads)) => d.saturating_mul(heads),
        _ => h,
    };
    let mut t = Build::new();
    t.add("patch_conv", h, kernel(&v, v.dim(&["patch_size"])?)?, false, 1);
    t.add("qkv", 3 * a, h, false, n);
    t.add("o_proj", h, a, false, n);
    t.add("gate_up", 2 * f, h, false, n);
    t.add("down_proj", h, f, false, n);
    t.scales(h, 2 * n + 1);
    v.ignore(&["image_size"]);
    v.finish()?;
    towers.push(t.done("vision"));
    let merge = r.dim_or(&["spatial_merge_size"], 2, "as in Mistral Small 3.1")?;
    let bias = r.flag("multimodal_projector_bias", false)?;
    let mut p = Build::new();
    p.scales(h, 1);
    p.add("patch_merger", h, h.saturating_mul(merge).saturating_mul(merge), false, 1);
    p.add("linear_1", hidden, h, bias, 1);
    p.add("linear_2", hidden, hidden, bias, 1);
    r.ignore(&["projector_hidden_act", "vision_feature_layer"]);
    towers.push(p.done("projector"));
    Ok(())
}

/// SigLIP with Gemma 3's projector: learned positions, LayerNorm, biases, no pooling head.
pub(crate) fn siglip_for_gemma(r: &Reader<'_>, hidden: u64, towers: &mut Vec<Tower>) -> Result<(), ModelError> {
    let Some(v) = part(r, "vision_config")? else { return Ok(()) };
    let h = v.dim(&["hidden_size"])?;
    let mut t = Build::new();
    let patch = v.dim(&["patch_size"])?;
    let side = v.dim(&["image_size"])? / patch;
    vit_layers(&v, &mut t)?;
    t.add("patch_conv", h, kernel(&v, patch)?, true, 1);
    t.add("positions", side.saturating_mul(side), h, false, 1);
    if v.flag("vision_use_head", true)? {
        return Err(r.unknown("a vision tower with a pooling head"));
    }
    v.finish()?;
    towers.push(t.done("vision"));
    let mut p = Build::new();
    p.scales(h, 1);
    p.add("mm_input_projection", hidden, h, false, 1);
    towers.push(p.done("projector"));
    Ok(())
}

/// Layers of a plain vision transformer: LayerNorm twice, biases everywhere, plain network, final LayerNorm.
fn vit_layers(v: &Reader<'_>, t: &mut Build) -> Result<(), ModelError> {
    let (h, n) = (v.dim(&["hidden_size"])?, v.layers()?);
    let f = v.dim(&["intermediate_size"])?;
    v.ignore(&["num_attention_heads", "head_dim"]);
    t.add("qkv", 3 * h, h, true, n);
    t.add("o_proj", h, h, true, n);
    t.add("fc1", f, h, true, n);
    t.add("fc2", h, f, true, n);
    t.layer_norms(h, 2 * n + 1);
    Ok(())
}

const QWEN_IGNORED: &[&str] = &[
    "num_heads",
    "spatial_patch_size",
    "window_size",
    "fullatt_block_indexes",
    "tokens_per_second",
    "in_chans",
    "in_channels",
    "hidden_size",
    "image_size",
];

/// Qwen2-VL: LayerNorm, plain network, merger of two matrices.
pub(crate) fn qwen2_vl(r: &Reader<'_>, hidden: u64, towers: &mut Vec<Tower>) -> Result<(), ModelError> {
    let Some(v) = part(r, "vision_config")? else { return Ok(()) };
    let (h, n) = (v.dim(&["embed_dim"])?, v.dim(&["depth"])?.min(crate::config::MAX_LAYERS));
    let f = (h as f64 * v.factor(&["mlp_ratio"], 4.0)?) as u64;
    let patch = v.dim(&["patch_size"])?;
    let frames = v.dim_or(&["temporal_patch_size"], 2, "as in Qwen2-VL")?;
    let merge = v.dim_or(&["spatial_merge_size"], 2, "as in Qwen2-VL")?;
    let mut t = Build::new();
    t.add("patch_conv", h, kernel(&v, patch)?.saturating_mul(frames), false, 1);
    t.add("qkv", 3 * h, h, true, n);
    t.add("o_proj", h, h, true, n);
    t.add("fc1", f, h, true, n);
    t.add("fc2", h, f, true, n);
    t.layer_norms(h, 2 * n + 1);
    let wide = h.saturating_mul(merge).saturating_mul(merge);
    t.add("merger_0", wide, wide, true, 1);
    t.add("merger_2", hidden, wide, true, 1);
    v.ignore(QWEN_IGNORED);
    v.finish()?;
    towers.push(t.done("vision"));
    Ok(())
}

/// Qwen2.5-VL: RMSNorm, gated network with biases.
pub(crate) fn qwen2_5_vl(r: &Reader<'_>, hidden: u64, towers: &mut Vec<Tower>) -> Result<(), ModelError> {
    let Some(v) = part(r, "vision_config")? else { return Ok(()) };
    let (h, n) = (v.dim(&["hidden_size"])?, v.dim(&["depth"])?.min(crate::config::MAX_LAYERS));
    let f = v.dim(&["intermediate_size"])?;
    let patch = v.dim(&["patch_size"])?;
    let frames = v.dim_or(&["temporal_patch_size"], 2, "as in Qwen2.5-VL")?;
    let merge = v.dim_or(&["spatial_merge_size"], 2, "as in Qwen2.5-VL")?;
    let out = v.dim_opt(&["out_hidden_size"])?.unwrap_or(hidden);
    let mut t = Build::new();
    t.add("patch_conv", h, kernel(&v, patch)?.saturating_mul(frames), false, 1);
    t.add("qkv", 3 * h, h, true, n);
    t.add("o_proj", h, h, true, n);
    t.add("gate_up", 2 * f, h, true, n);
    t.add("down_proj", h, f, true, n);
    t.scales(h, 2 * n + 1);
    let wide = h.saturating_mul(merge).saturating_mul(merge);
    t.add("merger_0", wide, wide, true, 1);
    t.add("merger_2", out, wide, true, 1);
    v.ignore(QWEN_IGNORED);
    v.finish()?;
    towers.push(t.done("vision"));
    Ok(())
}

/// Qwen3-VL and Qwen3.5: learned positions, one more merger per deepstack layer.
pub(crate) fn qwen3_vl(r: &Reader<'_>, towers: &mut Vec<Tower>) -> Result<(), ModelError> {
    let Some(v) = part(r, "vision_config")? else { return Ok(()) };
    let (h, n) = (v.dim(&["hidden_size"])?, v.dim(&["depth"])?.min(crate::config::MAX_LAYERS));
    let f = v.dim(&["intermediate_size"])?;
    let patch = v.dim(&["patch_size"])?;
    let frames = v.dim_or(&["temporal_patch_size"], 2, "as in Qwen3-VL")?;
    let merge = v.dim_or(&["spatial_merge_size"], 2, "as in Qwen3-VL")?;
    let out = v.dim(&["out_hidden_size"])?;
    let deep = v.counts(&["deepstack_visual_indexes"])?.unwrap_or_default().len() as u64;
    let mut t = Build::new();
    t.add("patch_conv", h, kernel(&v, patch)?.saturating_mul(frames), true, 1);
    t.add("positions", v.dim(&["num_position_embeddings"])?, h, false, 1);
    t.add("qkv", 3 * h, h, true, n);
    t.add("o_proj", h, h, true, n);
    t.add("fc1", f, h, true, n);
    t.add("fc2", h, f, true, n);
    t.layer_norms(h, 2 * n + 1);
    let wide = h.saturating_mul(merge).saturating_mul(merge);
    t.add("merger_0", wide, wide, true, 1 + deep);
    t.add("merger_2", out, wide, true, 1 + deep);
    // the deepstack mergers norm after joining patches
    t.layer_norms(wide, deep);
    v.ignore(QWEN_IGNORED);
    v.finish()?;
    towers.push(t.done("vision"));
    Ok(())
}

/// MoonViT with Kimi K2.5's patch merger.
pub(crate) fn moonvit(r: &Reader<'_>, hidden: u64, towers: &mut Vec<Tower>) -> Result<(), ModelError> {
    let Some(v) = part(r, "vision_config")? else { return Ok(()) };
    let (h, n) = (v.dim(&["vt_hidden_size"])?, v.dim(&["vt_num_hidden_layers"])?.min(crate::config::MAX_LAYERS));
    let f = v.dim(&["vt_intermediate_size"])?;
    let rows = v.dim(&["init_pos_emb_height"])?.saturating_mul(v.dim(&["init_pos_emb_width"])?);
    let merge = v.counts(&["merge_kernel_size"])?.unwrap_or_else(|| vec![2, 2]);
    let wide = merge.iter().fold(h, |w, m| w.saturating_mul(*m));
    let mut t = Build::new();
    t.add("patch_conv", h, kernel(&v, v.dim(&["patch_size"])?)?, true, 1);
    t.add("positions", rows, h, false, 1);
    t.add("qkv", 3 * h, h, true, n);
    t.add("o_proj", h, h, true, n);
    t.add("fc1", f, h, true, n);
    t.add("fc2", h, f, true, n);
    t.layer_norms(h, 2 * n + 1);
    v.ignore(&[
        "vt_num_attention_heads",
        "init_pos_emb_time",
        "merge_type",
        "mm_hidden_size",
        "mm_projector_type",
        "pos_emb_type",
        "projector_hidden_act",
        "projector_ln_eps",
        "text_hidden_size",
        "video_attn_type",
    ]);
    v.finish()?;
    towers.push(t.done("vision"));
    let mut p = Build::new();
    p.layer_norms(h, 1);
    p.add("linear_1", wide, wide, true, 1);
    p.add("linear_2", hidden, wide, true, 1);
    towers.push(p.done("projector"));
    Ok(())
}

/// Llama 4: class token, learned positions, LayerNorm, pixel-shuffle adapter and projector.
pub(crate) fn llama4(r: &Reader<'_>, hidden: u64, towers: &mut Vec<Tower>) -> Result<(), ModelError> {
    let Some(v) = part(r, "vision_config")? else { return Ok(()) };
    let (h, patch) = (v.dim(&["hidden_size"])?, v.dim(&["patch_size"])?);
    let side = v.dim(&["image_size"])? / patch;
    let mut t = Build::new();
    vit_layers(&v, &mut t)?;
    // a second norm before the layers
    t.layer_norms(h, 1);
    t.add("patch_linear", h, kernel(&v, patch)?, false, 1);
    t.add("positions", side.saturating_mul(side).saturating_add(1), h, false, 1);
    t.scales(h, 1);
    // four patches are joined to one of the network's width
    let shuffled = v.dim(&["intermediate_size"])?;
    let (inner, out) = (v.dim(&["projector_input_dim"])?, v.dim(&["projector_output_dim"])?);
    t.add("adapter_fc1", inner, shuffled, false, 1);
    t.add("adapter_fc2", out, inner, false, 1);
    let wide = v.dim(&["vision_output_dim"])?;
    let bias = v.flag("multi_modal_projector_bias", false)?;
    v.ignore(&["pixel_shuffle_ratio", "vision_feature_layer", "vision_feature_select_strategy", "rope_theta"]);
    v.finish()?;
    towers.push(t.done("vision"));
    let mut p = Build::new();
    p.add("multi_modal_projector", hidden, wide, bias, 1);
    towers.push(p.done("projector"));
    Ok(())
}
