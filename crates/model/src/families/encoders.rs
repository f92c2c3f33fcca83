//! Encoders: BERT, RoBERTa, XLM-RoBERTa, ModernBERT; CLIP, SigLIP and ViT. They keep no cache. Follows the
//! `modeling_*.py` of the same names in transformers.

use super::{How::Code, Types};
use crate::blocks::{Layer, matrix, mlp, push};
use crate::config::Reader;
use crate::decoder::{Dims, attend, skeleton};
use crate::error::ModelError;
use crate::spec::{Attention, ModelSpec, Role, Shard};
use crate::towers;

pub(crate) const TYPES: Types = &[
    ("bert", Code(bert)),
    ("roberta", Code(bert)),
    ("xlm-roberta", Code(bert)),
    ("modernbert", Code(modernbert)),
    ("vit", Code(vit)),
    ("clip", Code(|r| pair(r, false))),
    ("siglip", Code(|r| pair(r, true))),
];

fn without_cache(layer: &mut Layer) {
    if let Attention::Gqa { own_cache, .. } = &mut layer.attention {
        *own_cache = false;
    }
}

/// What stands on top of an encoder, by its architecture's name.
fn masked_lm(r: &Reader<'_>) -> Result<bool, ModelError> {
    let names = r.texts(&["architectures"])?.unwrap_or_default();
    let name = names.first().copied().unwrap_or_default();
    if name.ends_with("ForMaskedLM") {
        Ok(true)
    } else if name.ends_with("Model") || name.is_empty() {
        Ok(false)
    } else {
        Err(r.unknown(format!("the architecture `{}`", name.chars().take(60).collect::<String>())))
    }
}

fn bert(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("bert");
    let masked = masked_lm(r)?;
    let d = Dims::read(r)?;
    let h = d.hidden;
    let width = r.dim(&["intermediate_size"])?;
    let mut spec = skeleton(r, "bert", h, d.vocab, true)?;
    let rows = r.dim(&["max_position_embeddings"])?;
    let types = r.count(&["type_vocab_size"], 2, 1 << 20)?;
    spec.embedding.push(matrix("positions", Role::Other, rows, h, Shard::Replicated));
    spec.embedding.push(matrix("token_types", Role::Other, types, h, Shard::Replicated));
    spec.small = 2 * h;
    for _ in 0..d.layers {
        let mut layer = Layer::new(4 * h);
        attend(d, true).add(&mut layer);
        without_cache(&mut layer);
        mlp(&mut layer, Role::Mlp, h, width, 1, false, true);
        push(&mut spec.layers, layer);
    }
    // the pooler, or the transform and bias of the masked head
    let top = matrix(if masked { "transform" } else { "pooler" }, Role::Other, h, h, Shard::Replicated);
    spec.embedding.push(top.with_bias(true));
    if masked {
        spec.small = spec.small.saturating_add(2 * h).saturating_add(d.vocab);
    }
    spec.tied = masked;
    Ok(spec)
}

fn modernbert(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("modernbert");
    let masked = masked_lm(r)?;
    let d = Dims::read(r)?;
    let h = d.hidden;
    let width = r.dim(&["intermediate_size"])?;
    for key in ["attention_bias", "mlp_bias", "norm_bias", "classifier_bias"] {
        if r.flag(key, false)? {
            return Err(r.unknown(format!("`{key}`")));
        }
    }
    let decoder_bias = r.flag("decoder_bias", true)?;
    r.ignore(&["global_attn_every_n_layers", "local_attention"]);
    let mut spec = skeleton(r, "modernbert", h, d.vocab, true)?;
    spec.small = 2 * h;
    for i in 0..d.layers {
        // the first layer has no norm before its attention
        let mut layer = Layer::new(if i == 0 { h } else { 2 * h });
        attend(d, false).add(&mut layer);
        without_cache(&mut layer);
        mlp(&mut layer, Role::Mlp, h, width, 1, true, false);
        push(&mut spec.layers, layer);
    }
    if masked {
        spec.embedding.push(matrix("head_dense", Role::Other, h, h, Shard::Replicated));
        spec.small = spec.small.saturating_add(h).saturating_add(if decoder_bias { d.vocab } else { 0 });
    }
    spec.tied = masked;
    Ok(spec)
}

/// A spec that is all tower.
fn towers_only(r: &Reader<'_>, family: &'static str, hidden: u64) -> Result<ModelSpec, ModelError> {
    let mut spec = skeleton(r, family, hidden, 0, true)?;
    spec.embedding.clear();
    spec.tied = false;
    Ok(spec)
}

fn vit(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("vit");
    let hidden = r.dim(&["hidden_size"])?;
    let mut spec = towers_only(r, "vit", hidden)?;
    towers::vit(r, &mut spec.towers)?;
    Ok(spec)
}

/// A text and an image encoder that share a space.
fn pair(r: &Reader<'_>, siglip: bool) -> Result<ModelSpec, ModelError> {
    let family = if siglip { "siglip" } else { "clip" };
    let r = &r.of(family);
    let text = r.nested("text_config", false)?.ok_or_else(|| r.missing(&["text_config"]))?;
    let vision = r.nested("vision_config", false)?.ok_or_else(|| r.missing(&["vision_config"]))?;
    let hidden = vision.dim(&["hidden_size"])?;
    let mut spec = towers_only(r, family, hidden)?;
    if siglip {
        towers::siglip_pair(&text, &vision, &mut spec.towers)?;
    } else {
        let width = r.dim_or(&["projection_dim"], 512, "CLIP's default")?;
        towers::clip_pair(&text, &vision, width, &mut spec.towers)?;
    }
    // temperature, and SigLIP's bias
    spec.small = if siglip { 2 } else { 1 };
    r.ignore(&["logit_scale_init_value"]);
    text.finish()?;
    vision.finish()?;
    Ok(spec)
}
