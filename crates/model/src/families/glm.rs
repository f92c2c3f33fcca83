//! ChatGLM, GLM-4 and GLM-4.5 to 4.7. Follows `modeling_chatglm.py` that Zhipu publishes with ChatGLM3, and
//! `modeling_glm.py`, `modeling_glm4.py`, `modeling_glm4_moe.py` of transformers.

use super::deepseek::mtp_like_last;
use super::{How::Code, How::Style as S, Types};
use crate::config::Reader;
use crate::decoder::{Experts, Flag, LLAMA, MoeLayers, PLAIN_EXPERTS, QkNorm, Shared, Style, decoder};
use crate::error::ModelError;
use crate::spec::ModelSpec;
use crate::towers;

const GLM: Style = Style { family: "glm", qkv_bias: Flag::Key("attention_bias", true), o_bias: Flag::No, ..LLAMA };
/// Norms before and after both halves of a layer.
const GLM4: Style = Style { qkv_bias: Flag::Key("attention_bias", false), norms_per_layer: 4, ..GLM };
const CHATGLM: Style = Style { qkv_bias: Flag::Key("add_qkv_bias", true), mlp_bias: Flag::No, ..GLM };
pub(crate) const GLM4_MOE: Style = Style {
    qkv_bias: Flag::Key("attention_bias", false),
    qk_norm: QkNorm::Head,
    qk_norm_if: Some(("use_qk_norm", false)),
    experts: Some(Experts {
        width: &["moe_intermediate_size"],
        shared: Shared::Count(&["n_shared_experts"]),
        buffer: true,
        ..PLAIN_EXPERTS
    }),
    moe_layers: MoeLayers::DeepSeek(1),
    ..GLM
};

pub(crate) const TYPES: Types = &[
    ("glm", S(&GLM)),
    ("glm4", S(&GLM4)),
    ("chatglm", Code(chatglm)),
    ("glm4_moe", Code(glm4_moe)),
    ("glm4v", Code(glm4v)),
];

fn chatglm(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    if r.flag("add_bias_linear", false)? {
        return Err(r.unknown("`add_bias_linear` of the first ChatGLM"));
    }
    r.ignore(&["multi_query_attention", "rmsnorm"]);
    decoder(&r.of("glm"), &CHATGLM)
}

fn glm4_moe(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let mut spec = decoder(&r.of("glm"), &GLM4_MOE)?;
    let blocks = r.count(&["num_nextn_predict_layers"], 0, 16)?;
    if blocks > 0 {
        let copies = spec.vocab.saturating_mul(spec.hidden).saturating_mul(2);
        spec.mtp = mtp_like_last(&spec, blocks, copies);
    }
    Ok(spec)
}

/// GLM-4.1V: a GLM-4 decoder with biases, and a tower.
fn glm4v(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let inner = r.nested("text_config", true)?.ok_or_else(|| r.missing(&["text_config"]))?;
    let style = Style { qkv_bias: Flag::Key("attention_bias", true), ..GLM4 };
    let mut spec = decoder(&inner.of("glm"), &style)?;
    towers::glm4v(r, spec.hidden, &mut spec.towers)?;
    inner.finish()?;
    Ok(spec)
}
