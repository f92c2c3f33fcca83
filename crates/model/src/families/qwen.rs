//! Qwen 1.5, 2, 2.5 and 3, dense and mixtures of experts, text and vision. Follows `modeling_qwen2.py`,
//! `modeling_qwen2_moe.py`, `modeling_qwen3.py`, `modeling_qwen3_moe.py` and their `_vl` versions of transformers.

use super::{How::Code, How::Style as S, Types};
use crate::config::Reader;
use crate::decoder::{Experts, Flag, LLAMA, MoeLayers, PLAIN_EXPERTS, QkNorm, Shared, Style, Windows, decoder};
use crate::error::ModelError;
use crate::spec::ModelSpec;
use crate::towers;

/// Biases on q, k and v only, whatever `attention_bias` says.
pub(crate) const QWEN2: Style =
    Style { family: "qwen2", qkv_bias: Flag::Yes, o_bias: Flag::No, windows: Windows::Qwen, ..LLAMA };
const QWEN2_MOE: Style = Style {
    family: "qwen2-moe",
    experts: Some(Experts {
        width: &["moe_intermediate_size"],
        shared: Shared::Width(&["shared_expert_intermediate_size"]),
        shared_gate: true,
        ..PLAIN_EXPERTS
    }),
    moe_layers: MoeLayers::Qwen,
    ..QWEN2
};
pub(crate) const QWEN3: Style = Style { family: "qwen3", qk_norm: QkNorm::Head, windows: Windows::Qwen, ..LLAMA };
const QWEN3_MOE: Style = Style {
    family: "qwen3-moe",
    experts: Some(Experts { width: &["moe_intermediate_size"], ..PLAIN_EXPERTS }),
    moe_layers: MoeLayers::Qwen,
    ..QWEN3
};

pub(crate) const TYPES: Types = &[
    ("qwen2", S(&QWEN2)),
    ("qwen2_moe", S(&QWEN2_MOE)),
    ("qwen3", S(&QWEN3)),
    ("qwen3_moe", Code(qwen3_moe)),
    ("qwen2_vl", Code(qwen2_vl)),
    ("qwen2_5_vl", Code(qwen2_5_vl)),
    ("qwen3_vl", Code(|r| qwen3_vl(r, &QWEN3))),
    ("qwen3_vl_moe", Code(|r| qwen3_vl(r, &QWEN3_MOE))),
];

fn qwen3_moe(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    // written by some exporters, always so in this family
    r.ignore(&["use_qk_norm", "qkv_bias", "shared_expert_intermediate_size"]);
    decoder(&r.of("qwen3-moe"), &QWEN3_MOE)
}

/// The decoder's keys lie at the top in older files, in `text_config` in newer ones.
fn text<'a>(r: &Reader<'a>) -> Result<Reader<'a>, ModelError> {
    Ok(r.nested("text_config", true)?.unwrap_or_else(|| r.clone()))
}

fn qwen2_vl(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let inner = text(r)?;
    let mut spec = decoder(&inner, &QWEN2)?;
    towers::qwen2_vl(r, spec.hidden, &mut spec.towers)?;
    inner.finish()?;
    Ok(spec)
}

fn qwen2_5_vl(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let inner = text(r)?;
    let mut spec = decoder(&inner, &QWEN2)?;
    towers::qwen2_5_vl(r, spec.hidden, &mut spec.towers)?;
    inner.finish()?;
    Ok(spec)
}

fn qwen3_vl(r: &Reader<'_>, style: &Style) -> Result<ModelSpec, ModelError> {
    let inner = text(r)?;
    let mut spec = decoder(&inner.of(style.family), style)?;
    towers::qwen3_vl(r, &mut spec.towers)?;
    inner.finish()?;
    Ok(spec)
}
