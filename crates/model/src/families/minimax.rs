//! MiniMax M2. Follows `modeling_minimax_m2.py` of transformers: full-width norms of queries and keys, all layers
//! routed.

use super::{How::Code, Types};
use crate::config::Reader;
use crate::decoder::{Experts, Flag, LLAMA, PLAIN_EXPERTS, QkNorm, Style, decoder};
use crate::error::ModelError;
use crate::spec::ModelSpec;

const M2: Style = Style {
    family: "minimax",
    qkv_bias: Flag::No,
    o_bias: Flag::No,
    qk_norm: QkNorm::Full,
    qk_norm_if: Some(("use_qk_norm", true)),
    experts: Some(Experts { width: &["intermediate_size"], buffer: true, ..PLAIN_EXPERTS }),
    ..LLAMA
};

pub(crate) const TYPES: Types = &[("minimax_m2", Code(m2))];

fn m2(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    if r.text(&["qk_norm_type"])?.is_some_and(|t| t != "per_layer") {
        return Err(r.unknown("`qk_norm_type` other than `per_layer`"));
    }
    if r.count(&["shared_intermediate_size"], 0, 1 << 26)? > 0 {
        return Err(r.unknown("a shared expert in MiniMax M2"));
    }
    // announced by the config, absent from the published checkpoints
    r.ignore(&["use_mtp", "mtp_transformer_layers", "num_mtp_modules", "use_routing_bias", "attn_type_list"]);
    decoder(&r.of("minimax"), &M2)
}
