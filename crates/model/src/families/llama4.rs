//! Llama 4. Follows `modeling_llama4.py` of transformers: chunked attention but in every fourth layer, routed layers
//! interleaved with wider dense ones.

use super::{How::Code, Types};
use crate::blocks::{Gqa, Layer, mlp, push};
use crate::config::{MAX_LAYERS, Reader};
use crate::decoder::{Dims, Experts, PLAIN_EXPERTS, attend, skeleton};
use crate::error::ModelError;
use crate::spec::{ModelSpec, Role, Window};
use crate::towers;

pub(crate) const TYPES: Types = &[("llama4", Code(vision)), ("llama4_text", Code(text))];

fn vision(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let Some(inner) = r.nested("text_config", true)? else { return text(r) };
    let mut spec = text(&inner)?;
    towers::llama4(r, spec.hidden, &mut spec.towers)?;
    inner.finish()?;
    Ok(spec)
}

fn text(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("llama");
    let d = Dims::read(r)?;
    let mut spec = skeleton(r, "llama", d.hidden, d.vocab, false)?;
    let bias = r.flag("attention_bias", false)?;
    let experts = Experts { width: &["intermediate_size"], ..PLAIN_EXPERTS };
    let moe = experts.read(r, d.hidden, true)?.ok_or_else(|| r.missing(&["num_local_experts"]))?;
    let moe = crate::blocks::Moe { shared: moe.width, ..moe };
    let step = r.count(&["interleave_moe_layer_step"], 1, MAX_LAYERS)?.max(1);
    let routed = r.counts(&["moe_layers"])?;
    let width = r.dim(&["intermediate_size_mlp"])?;
    let chunk = r.dim_opt(&["attention_chunk_size"])?;
    // rotary layers are chunked, those without positions see all; by default every fourth has none
    let nope = r.counts(&["no_rope_layers"])?.filter(|list| list.len() as u64 == d.layers);
    let interval = r.count(&["no_rope_layer_interval"], 4, MAX_LAYERS)?.max(1);
    // norms of queries and keys have no weights
    r.ignore(&[
        "use_qk_norm",
        "attn_temperature_tuning",
        "floor_scale",
        "attn_scale",
        "for_llm_compressor",
        "layer_types",
    ]);
    for i in 0..d.layers {
        let rotary = match &nope {
            Some(list) => list.get(i as usize).is_some_and(|n| *n != 0),
            None => (i + 1) % interval != 0,
        };
        let mut layer = Layer::new(2 * d.hidden);
        let window = chunk.filter(|_| rotary).map_or(Window::Full, Window::Chunked);
        Gqa { window, ..attend(d, bias) }.add(&mut layer);
        let is_routed = match &routed {
            Some(list) if !list.is_empty() => list.contains(&i),
            _ => (i + 1) % step == 0,
        };
        if is_routed {
            moe.add(&mut layer);
        } else {
            mlp(&mut layer, Role::Mlp, d.hidden, width, 1, true, false);
        }
        push(&mut spec.layers, layer);
    }
    spec.small = d.hidden;
    Ok(spec)
}
