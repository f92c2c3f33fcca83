//! Llama 3.2 Vision: a Llama decoder of which every fifth layer attends to image tokens only. Follows
//! `modeling_mllama.py` of transformers.

use super::{How::Code, Types};
use crate::blocks::{Layer, mlp, push};
use crate::config::Reader;
use crate::decoder::{Dims, attend, skeleton};
use crate::error::ModelError;
use crate::spec::{Attention, ModelSpec, Role};
use crate::towers;

pub(crate) const TYPES: Types = &[("mllama", Code(read))];

fn read(outer: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &outer.nested("text_config", true)?.ok_or_else(|| outer.missing(&["text_config"]))?.of("llama");
    let d = Dims::read(r)?;
    let width = r.dim(&["intermediate_size"])?;
    let layers = r.counts(&["cross_attention_layers"])?.ok_or_else(|| r.missing(&["cross_attention_layers"]))?;
    let mut spec = skeleton(r, "llama", d.hidden, d.vocab, false)?;
    // eight more rows for image tokens in the embedding, not in the head
    if let Some(embedding) = spec.embedding.first_mut() {
        embedding.output = embedding.output.saturating_add(8);
    }
    let tokens = towers::mllama(outer, d.hidden, &mut spec.towers)?;
    for i in 0..d.layers {
        let crossing = layers.contains(&i);
        // norms of queries and keys, and two gates
        let mut layer = Layer::new(2 * d.hidden + if crossing { 2 * d.head_dim + 2 } else { 0 });
        attend(d, false).add(&mut layer);
        if crossing {
            let (heads, kv_heads) = layer.attention.head_counts();
            layer.attention = Attention::Cross {
                heads,
                kv_heads,
                dim: u32::try_from(d.head_dim).unwrap_or(u32::MAX),
                source_tokens: tokens,
            };
        }
        mlp(&mut layer, Role::Mlp, d.hidden, width, 1, true, false);
        push(&mut spec.layers, layer);
    }
    spec.small = d.hidden;
    r.finish()?;
    Ok(spec)
}
