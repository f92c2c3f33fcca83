//! Single mixtures of experts that are short tables of differences: dots.llm1, Granite MoE, Solar Open, Sarvam, ERNIE
//! 4.5, DBRX, Arctic, Grok, Mellum, Kolibri, MiMo. Each follows the model's own `modeling_*.py`.

use super::glm::GLM4_MOE;
use super::qwen::QWEN2;
use super::{How::Code, How::Style as S, Types};
use crate::blocks::{Layer, Moe, mlp, push};
use crate::config::{MAX_EXPERTS, Reader};
use crate::decoder::{
    Dims, Experts, Flag, LLAMA, MoeLayers, Norm, PLAIN_EXPERTS, QkNorm, Shared, Style, Windows, attend, decoder,
    skeleton,
};
use crate::error::ModelError;
use crate::spec::{ModelSpec, Role};

const DOTS1: Style = Style {
    family: "dots",
    qk_norm: QkNorm::Head,
    experts: Some(Experts {
        width: &["moe_intermediate_size"],
        shared: Shared::Count(&["n_shared_experts"]),
        buffer: true,
        ..PLAIN_EXPERTS
    }),
    moe_layers: MoeLayers::DeepSeek(0),
    windows: Windows::Qwen,
    ..LLAMA
};
const GRANITE_MOE: Style = Style {
    family: "granite",
    tied: true,
    experts: Some(Experts { width: &["intermediate_size"], ..PLAIN_EXPERTS }),
    ..LLAMA
};
const SOLAR: Style = Style {
    family: "solar",
    experts: Some(Experts {
        width: &["moe_intermediate_size"],
        shared: Shared::Count(&["n_shared_experts"]),
        ..PLAIN_EXPERTS
    }),
    moe_layers: MoeLayers::DeepSeek(0),
    ..LLAMA
};
const SARVAM: Style = Style { family: "sarvam", ..GLM4_MOE };
const ERNIE: Style = Style {
    family: "ernie",
    tied: true,
    qkv_bias: Flag::Key("use_bias", false),
    o_bias: Flag::Key("use_bias", false),
    mlp_bias: Flag::Key("use_bias", false),
    ..LLAMA
};
const ERNIE_MOE: Style = Style {
    experts: Some(Experts {
        width: &["moe_intermediate_size"],
        shared: Shared::Count(&["moe_num_shared_experts"]),
        correction: true,
        ..PLAIN_EXPERTS
    }),
    moe_layers: MoeLayers::Ernie,
    ..ERNIE
};
const MELLUM: Style = Style {
    family: "mellum",
    qk_norm: QkNorm::Head,
    windows: Windows::Every(0),
    experts: Some(Experts { width: &["moe_intermediate_size"], ..PLAIN_EXPERTS }),
    ..LLAMA
};
const KOLIBRI: Style = Style {
    family: "kolibri",
    norms_per_layer: 4,
    qk_norm: QkNorm::Head,
    windows: Windows::Every(0),
    experts: Some(Experts {
        width: &["moe_intermediate_size"],
        shared: Shared::Width(&["shared_expert_intermediate_size"]),
        ..PLAIN_EXPERTS
    }),
    ..LLAMA
};

pub(crate) const TYPES: Types = &[
    ("dots1", S(&DOTS1)),
    ("granitemoe", S(&GRANITE_MOE)),
    ("solar_open", S(&SOLAR)),
    ("sarvam_moe", S(&SARVAM)),
    ("ernie4_5", S(&ERNIE)),
    ("ernie4_5_moe", Code(ernie_moe)),
    ("mellum", S(&MELLUM)),
    ("kolibri1", S(&KOLIBRI)),
    ("dbrx", Code(dbrx)),
    ("arctic", Code(arctic)),
    ("grok-1", Code(grok1)),
    ("grok-2", Code(grok2)),
    ("mimo", Code(mimo)),
];

fn ernie_moe(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    r.ignore(&["moe_use_aux_free"]);
    decoder(&r.of("ernie"), &ERNIE_MOE)
}

/// MiMo-7B: Qwen2's decoder.
fn mimo(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let blocks = r.count(&["num_nextn_predict_layers"], 0, 16)?;
    r.ignore(&["attention_bias"]);
    let mut spec = decoder(&r.of("mimo"), &QWEN2)?;
    if blocks > 0 {
        spec.mtp = super::deepseek::mtp_like_last(&spec, blocks, 0);
    }
    Ok(spec)
}

/// A decoder whose layers are attention and experts with little more.
struct Plain {
    d: Dims,
    moe: Moe,
    norm: u64,
}

impl Plain {
    fn layer(&self) -> Layer {
        let d = self.d;
        let mut layer = Layer::new(self.norm);
        attend(d, false).add(&mut layer);
        self.moe.add(&mut layer);
        layer
    }
}

fn dbrx(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("dbrx");
    let attention = r.nested("attn_config", false)?.ok_or_else(|| r.missing(&["attn_config"]))?;
    let network = r.nested("ffn_config", false)?.ok_or_else(|| r.missing(&["ffn_config"]))?;
    let hidden = r.dim(&["d_model"])?;
    let heads = r.dim(&["n_heads"])?;
    let d = Dims {
        hidden,
        layers: r.layers()?,
        vocab: r.dim(&["vocab_size"])?,
        heads,
        kv_heads: attention.dim(&["kv_n_heads"])?,
        head_dim: hidden / heads,
    };
    let experts = Experts { width: &["ffn_hidden_size"], ..PLAIN_EXPERTS };
    let moe = experts.read(&network, hidden, true)?.ok_or_else(|| network.missing(&["moe_num_experts"]))?;
    network.ignore(&[
        "moe_jitter_eps",
        "moe_loss_weight",
        "moe_normalize_expert_weights",
        "uniform_expert_assignment",
        "ffn_act_fn",
    ]);
    network.finish()?;
    let mut spec = skeleton(r, "dbrx", hidden, d.vocab, false)?;
    let plain = Plain { d, moe, norm: Norm::Scale.params(hidden) * 2 };
    for _ in 0..d.layers {
        push(&mut spec.layers, plain.layer());
    }
    spec.small = hidden;
    Ok(spec)
}

/// Arctic: beside the experts a dense residual network as wide as the model, behind a third norm.
fn arctic(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("arctic");
    let d = Dims::read(r)?;
    let experts = Experts { width: &["intermediate_size"], ..PLAIN_EXPERTS };
    let moe = experts.read(r, d.hidden, true)?.ok_or_else(|| r.missing(&["num_local_experts"]))?;
    if r.count(&["moe_layer_frequency"], 1, MAX_EXPERTS)? != 1 {
        return Err(r.unknown("`moe_layer_frequency` other than 1"));
    }
    let residual = r.flag("use_residual", true)? && r.flag("parallel_attn_mlp_res", true)?;
    let plain = Plain { d, moe, norm: d.hidden * if residual { 3 } else { 2 } };
    let mut spec = skeleton(r, "arctic", d.hidden, d.vocab, false)?;
    for _ in 0..d.layers {
        let mut layer = plain.layer();
        if residual {
            mlp(&mut layer, Role::Mlp, d.hidden, d.hidden, 1, true, false);
        }
        push(&mut spec.layers, layer);
    }
    spec.small = d.hidden;
    Ok(spec)
}

fn grok1(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    grok(r, &["intermediate_size"], false)
}

/// Grok 2: a dense network beside the experts.
fn grok2(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let residual = r.flag("residual_moe", false)?;
    grok(r, &["moe_intermediate_size"], residual)
}

fn grok(r: &Reader<'_>, width: &'static [&'static str], residual: bool) -> Result<ModelSpec, ModelError> {
    let r = &r.of("grok");
    let d = Dims::read(r)?;
    let moe = Experts { width, ..PLAIN_EXPERTS }.read(r, d.hidden, true)?.ok_or_else(|| r.missing(&["num_experts"]))?;
    let plain = Plain { d, moe, norm: 4 * d.hidden };
    let mut spec = skeleton(r, "grok", d.hidden, d.vocab, false)?;
    r.ignore(&["sliding_window_size", "global_attn_every_n", "router_logit_softcapping", "max_attn_value"]);
    r.ignore(&["embedding_multiplier_scale", "output_multiplier_scale", "attn_output_multiplier"]);
    for _ in 0..d.layers {
        let mut layer = plain.layer();
        if residual {
            mlp(&mut layer, Role::Mlp, d.hidden, r.dim(&["intermediate_size"])?, 1, true, false);
        }
        push(&mut spec.layers, layer);
    }
    spec.small = d.hidden;
    Ok(spec)
}
