//! Nemotron Super and Ultra, Llamas thinned by architecture search: every block says whether it has attention, with how
//! many key heads, and how wide its network is. Follows the `modeling_decilm.py` that NVIDIA publishes with them.

use serde_json::Value;

use super::{How::Code, Types};
use crate::blocks::{Layer, matrix, mlp, push};
use crate::config::Reader;
use crate::decoder::{Dims, attend, skeleton};
use crate::error::ModelError;
use crate::spec::{ModelSpec, Role, Shard};

pub(crate) const TYPES: Types = &[("nemotron-nas", Code(read))];

/// A half of a block: left out, replaced by one matrix, or there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Absent,
    Linear,
    Whole,
}

fn half(r: &Reader<'_>, block: &Value, key: &str) -> Result<Half, ModelError> {
    let part = block.get(key).ok_or_else(|| r.bad("block_configs", block, "blocks with `attention` and `ffn`"))?;
    let on = |flag: &str| part.get(flag).and_then(Value::as_bool).unwrap_or(false);
    if part.get("sparsify").is_some_and(|s| !s.is_null()) {
        return Err(r.unknown("`sparsify` of a block"));
    }
    Ok(if on("no_op") {
        Half::Absent
    } else if on("replace_with_linear") {
        Half::Linear
    } else {
        Half::Whole
    })
}

fn read(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("nemotron");
    let d = Dims::read(r)?;
    let (key, value) = r.raw(&["block_configs"]).ok_or_else(|| r.missing(&["block_configs"]))?;
    let wanted = format!("a list of {}, one per layer", d.layers);
    let blocks = value.as_array().filter(|b| b.len() as u64 == d.layers).ok_or_else(|| r.bad(key, value, &wanted))?;
    let bias = r.flag("attention_bias", false)?;
    if r.flag("mlp_bias", false)? {
        return Err(r.unknown("`mlp_bias`"));
    }
    let mut spec = skeleton(r, "nemotron", d.hidden, d.vocab, false)?;
    let h = d.hidden;
    for block in blocks {
        let mut layer = Layer::new(0);
        match half(r, block, "attention")? {
            Half::Absent => {}
            Half::Linear => {
                layer.small = h;
                layer.matrices.push(matrix("linear_attn", Role::Attention, h, h, Shard::Replicated));
            }
            Half::Whole => {
                layer.small = h;
                let group = block.pointer("/attention/n_heads_in_group").and_then(Value::as_u64);
                let group = group.filter(|g| *g > 0 && d.heads.is_multiple_of(*g));
                let group =
                    group.ok_or_else(|| r.bad(key, block, "blocks whose `n_heads_in_group` divides the heads"))?;
                attend(Dims { kv_heads: d.heads / group, ..d }, bias).add(&mut layer);
            }
        }
        match half(r, block, "ffn")? {
            Half::Absent => {}
            Half::Linear => {
                layer.small = layer.small.saturating_add(h);
                layer.matrices.push(matrix("linear_mlp", Role::Mlp, h, h, Shard::Replicated));
            }
            Half::Whole => {
                layer.small = layer.small.saturating_add(h);
                let factor = block.pointer("/ffn/ffn_mult").and_then(Value::as_f64).filter(|f| (0.0..1e3).contains(f));
                let factor = factor.ok_or_else(|| r.bad(key, block, "blocks with a positive `ffn_mult`"))?;
                let width = ((2.0 * factor * h as f64 / 3.0) as u64).div_ceil(256).saturating_mul(256);
                mlp(&mut layer, Role::Mlp, h, width, 1, true, false);
            }
        }
        push(&mut spec.layers, layer);
    }
    spec.small = h;
    Ok(spec)
}
