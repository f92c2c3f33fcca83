//! Gemma 4. Follows `modeling_gemma4.py` of transformers: global layers have wider heads and share one matrix for keys
//! and values (engines still cache both), experts stand beside a dense network.

use super::{How::Code, Types};
use crate::blocks::{Gqa, Layer, mlp, push};
use crate::config::Reader;
use crate::decoder::{Dims, Experts, PLAIN_EXPERTS, Windows, attend, skeleton};
use crate::error::ModelError;
use crate::spec::{ModelSpec, Role, Window};
use crate::towers;

pub(crate) const TYPES: Types = &[("gemma4", Code(vision)), ("gemma4_text", Code(text))];

fn vision(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let Some(inner) = r.nested("text_config", true)? else { return text(r) };
    let mut spec = text(&inner)?;
    towers::gemma4(r, spec.hidden, &mut spec.towers)?;
    inner.finish()?;
    Ok(spec)
}

fn text(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("gemma");
    let d = Dims::read(r)?;
    if r.count(&["hidden_size_per_layer_input"], 0, 1 << 26)? > 0 {
        return Err(r.unknown("per-layer embeddings (`hidden_size_per_layer_input`)"));
    }
    if r.count(&["num_kv_shared_layers"], 0, 1 << 20)? > 0 {
        return Err(r.unknown("layers that share a cache (`num_kv_shared_layers`)"));
    }
    if r.flag("use_double_wide_mlp", false)? {
        return Err(r.unknown("`use_double_wide_mlp`"));
    }
    r.ignore(&["vocab_size_per_layer_input"]);
    let windows = Windows::Every(6).read(r, d.layers)?;
    let wide = r.dim_opt(&["global_head_dim"])?.unwrap_or(d.head_dim);
    let few = r.dim_opt(&["num_global_key_value_heads"])?.unwrap_or(d.kv_heads);
    let shared = r.flag("attention_k_eq_v", false)?;
    let bias = r.flag("attention_bias", false)?;
    let width = r.dim(&["intermediate_size"])?;
    let moe = if r.flag("enable_moe_block", false)? {
        Experts { width: &["moe_intermediate_size", "expert_intermediate_size"], ..PLAIN_EXPERTS }
            .read(r, d.hidden, true)?
    } else {
        None
    };
    let mut spec = skeleton(r, "gemma", d.hidden, d.vocab, true)?;
    for window in windows {
        let global = window == Window::Full;
        let head = if global { wide } else { d.head_dim };
        let mut layer = Layer::new(4 * d.hidden + 2 * head);
        let kv_heads = if global { few } else { d.kv_heads };
        Gqa { kv_heads, k_dim: head, v_dim: head, k_is_v: global && shared, window, ..attend(d, bias) }.add(&mut layer);
        mlp(&mut layer, Role::Mlp, d.hidden, width, 1, true, false);
        if let Some(moe) = moe {
            moe.add(&mut layer);
            // three more norms, the router's scale, a scale per expert
            layer.small = layer.small.saturating_add(4 * d.hidden).saturating_add(moe.experts);
        }
        push(&mut spec.layers, layer);
    }
    spec.small = d.hidden;
    Ok(spec)
}
