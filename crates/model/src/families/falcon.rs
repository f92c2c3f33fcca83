//! Falcon 7B to 180B. Follows `modeling_falcon.py` of transformers.

use super::{How::Code, Types};
use crate::config::Reader;
use crate::decoder::{Dims, Flag, LLAMA, Norm, Style, decoder_parts, skeleton};
use crate::error::ModelError;
use crate::spec::ModelSpec;

const FALCON: Style = Style {
    family: "falcon",
    norm: Norm::ScaleAndBias,
    qkv_bias: Flag::Key("bias", false),
    o_bias: Flag::Key("bias", false),
    mlp_bias: Flag::Key("bias", false),
    gated: false,
    width_ratio: 4,
    ..LLAMA
};

pub(crate) const TYPES: Types = &[("falcon", Code(read))];

fn read(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("falcon");
    let mut d = Dims::read(r)?;
    let new = r.flag("new_decoder_architecture", false)?;
    if r.flag("multi_query", true)? && !new {
        // the old decoder has one key head, whatever `num_kv_heads` says
        d.kv_heads = 1;
    } else if !new {
        d.kv_heads = d.heads;
    }
    let parallel = r.flag("parallel_attn", true)?;
    let norms = match (new, parallel) {
        (true, _) => r.dim_opt(&["num_ln_in_parallel_attn"])?.unwrap_or(2),
        (false, true) => 1,
        (false, false) => 2,
    };
    r.ignore(&["alibi"]);
    let mut spec = skeleton(r, "falcon", d.hidden, d.vocab, true)?;
    decoder_parts(r, &Style { norms_per_layer: norms, ..FALCON }, d, &mut spec)?;
    Ok(spec)
}
