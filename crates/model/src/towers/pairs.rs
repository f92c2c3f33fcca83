//! Towers that are models of their own: ViT, CLIP, SigLIP.

use super::{Build, kernel, vit_layers};
use crate::config::Reader;
use crate::error::ModelError;
use crate::spec::Tower;

/// ViT: class token, learned positions, classifier where there are labels.
pub(crate) fn vit(r: &Reader<'_>, towers: &mut Vec<Tower>) -> Result<(), ModelError> {
    let (h, patch) = (r.dim(&["hidden_size"])?, r.dim(&["patch_size"])?);
    let side = r.dim(&["image_size"])? / patch;
    if !r.flag("qkv_bias", true)? {
        return Err(r.unknown("ViT without `qkv_bias`"));
    }
    let mut t = Build::new();
    vit_layers(r, &mut t)?;
    t.add("patch_conv", h, kernel(r, patch)?, true, 1);
    t.add("positions", side.saturating_mul(side).saturating_add(1), h, false, 1);
    t.scales(h, 1);
    let names = r.texts(&["architectures"])?.unwrap_or_default();
    match names.first().copied().unwrap_or_default() {
        "ViTForImageClassification" => {
            let labels = match r.raw(&["id2label"]).and_then(|(_, v)| v.as_object()) {
                Some(map) => map.len() as u64,
                None => r.dim_or(&["num_labels"], 1000, "ImageNet")?,
            };
            t.add("classifier", labels, h, true, 1);
        }
        "ViTModel" => t.add("pooler", h, h, true, 1),
        other => return Err(r.unknown(format!("the architecture `{}`", other.chars().take(60).collect::<String>()))),
    }
    towers.push(t.done("vision"));
    Ok(())
}

/// The text and the image half of CLIP with their projections.
pub(crate) fn clip_pair(
    text: &Reader<'_>,
    v: &Reader<'_>,
    width: u64,
    towers: &mut Vec<Tower>,
) -> Result<(), ModelError> {
    let h = text.dim(&["hidden_size"])?;
    let mut t = Build::new();
    vit_layers(text, &mut t)?;
    t.add("embed_tokens", text.dim(&["vocab_size"])?, h, false, 1);
    t.add("positions", text.count(&["max_position_embeddings"], 77, 1 << 20)?, h, false, 1);
    t.add("text_projection", width, h, false, 1);
    towers.push(t.done("text"));
    let (h, patch) = (v.dim(&["hidden_size"])?, v.dim(&["patch_size"])?);
    let side = v.dim(&["image_size"])? / patch;
    let mut t = Build::new();
    vit_layers(v, &mut t)?;
    t.layer_norms(h, 1);
    t.add("patch_conv", h, kernel(v, patch)?, false, 1);
    t.add("positions", side.saturating_mul(side).saturating_add(1), h, false, 1);
    t.scales(h, 1);
    t.add("visual_projection", width, h, false, 1);
    towers.push(t.done("vision"));
    text.ignore(&["projection_dim"]);
    v.ignore(&["projection_dim"]);
    Ok(())
}

/// The text and the image half of SigLIP; the image half pools by attention.
pub(crate) fn siglip_pair(text: &Reader<'_>, v: &Reader<'_>, towers: &mut Vec<Tower>) -> Result<(), ModelError> {
    let h = text.dim(&["hidden_size"])?;
    let mut t = Build::new();
    vit_layers(text, &mut t)?;
    t.add("embed_tokens", text.dim(&["vocab_size"])?, h, false, 1);
    t.add("positions", text.count(&["max_position_embeddings"], 64, 1 << 20)?, h, false, 1);
    t.add("head", text.count(&["projection_size"], h, 1 << 26)?, h, true, 1);
    towers.push(t.done("text"));
    let (h, f, patch) = (v.dim(&["hidden_size"])?, v.dim(&["intermediate_size"])?, v.dim(&["patch_size"])?);
    let side = v.dim(&["image_size"])? / patch;
    let mut t = Build::new();
    vit_layers(v, &mut t)?;
    t.add("patch_conv", h, kernel(v, patch)?, true, 1);
    t.add("positions", side.saturating_mul(side), h, false, 1);
    if v.flag("vision_use_head", true)? {
        t.scales(h, 1);
        t.add("pool_qkv", 3 * h, h, true, 1);
        t.add("pool_o", h, h, true, 1);
        t.layer_norms(h, 1);
        t.add("pool_fc1", f, h, true, 1);
        t.add("pool_fc2", h, f, true, 1);
    }
    towers.push(t.done("vision"));
    Ok(())
}
