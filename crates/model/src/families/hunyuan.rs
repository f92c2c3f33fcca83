//! Hunyuan and Hy. Follows `modeling_hunyuan_v1_dense.py`, `modeling_hunyuan_v1_moe.py` and `modeling_hy_v3.py` of
//! transformers.

use super::deepseek::mtp_like_last;
use super::{How::Code, How::Style as S, Types};
use crate::config::Reader;
use crate::decoder::{Experts, LLAMA, MoeLayers, PLAIN_EXPERTS, QkNorm, Shared, Style, decoder};
use crate::error::ModelError;
use crate::spec::ModelSpec;

const DENSE: Style =
    Style { family: "hunyuan", qk_norm: QkNorm::Head, qk_norm_if: Some(("use_qk_norm", true)), ..LLAMA };
const MOE: Style = Style {
    experts: Some(Experts {
        width: &["moe_intermediate_size"],
        shared: Shared::Count(&["num_shared_expert", "num_shared_experts"]),
        ..PLAIN_EXPERTS
    }),
    ..DENSE
};
const HY3: Style = Style {
    family: "hunyuan",
    qk_norm: QkNorm::Head,
    experts: Some(Experts {
        width: &["moe_intermediate_size"],
        shared: Shared::Count(&["num_shared_experts"]),
        buffer: true,
        ..PLAIN_EXPERTS
    }),
    moe_layers: MoeLayers::DeepSeek(1),
    ..LLAMA
};

pub(crate) const TYPES: Types = &[("hunyuan_v1_dense", S(&DENSE)), ("hunyuan_v1_moe", Code(moe)), ("hy_v3", Code(hy3))];

fn moe(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    if r.flag("use_cla", false)? {
        return Err(r.unknown("cross-layer attention (`use_cla`)"));
    }
    r.ignore(&["use_mixed_mlp_moe", "attention_head_dim"]);
    decoder(&r.of("hunyuan"), &MOE)
}

fn hy3(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let mut spec = decoder(&r.of("hunyuan"), &HY3)?;
    // the checkpoint holds one block that the config does not mention
    let blocks = r.count(&["num_nextn_predict_layers"], 1, 16)?;
    if blocks > 0 {
        spec.mtp = mtp_like_last(&spec, blocks, 0);
    }
    Ok(spec)
}
