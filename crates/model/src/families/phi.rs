//! Phi 1.5 to 4. Follows `modeling_phi.py`, `modeling_phi3.py` and `modeling_phimoe.py` of transformers.

use super::{How::Style as S, Types};
use crate::decoder::{Experts, Flag, LLAMA, Norm, PLAIN_EXPERTS, Style, Windows};

/// Attention and network side by side behind one norm, biases everywhere.
const PHI: Style = Style {
    family: "phi",
    norm: Norm::ScaleAndBias,
    norms_per_layer: 1,
    qkv_bias: Flag::Yes,
    o_bias: Flag::Yes,
    mlp_bias: Flag::Yes,
    head_bias: Flag::Yes,
    gated: false,
    ..LLAMA
};
/// Packed projections without biases.
const PHI3: Style =
    Style { family: "phi", qkv_bias: Flag::No, o_bias: Flag::No, mlp_bias: Flag::No, windows: Windows::All, ..LLAMA };
const PHI_MOE: Style = Style {
    family: "phi-moe",
    norm: Norm::ScaleAndBias,
    qkv_bias: Flag::Key("attention_bias", false),
    o_bias: Flag::Key("attention_bias", false),
    head_bias: Flag::Key("lm_head_bias", false),
    windows: Windows::All,
    experts: Some(Experts { width: &["intermediate_size"], ..PLAIN_EXPERTS }),
    ..LLAMA
};

pub(crate) const TYPES: Types = &[("phi", S(&PHI)), ("phi3", S(&PHI3)), ("phimoe", S(&PHI_MOE))];
