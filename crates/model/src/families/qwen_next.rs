//! Qwen3-Next and Qwen3.5: three gated delta nets to one gated attention. Follows `modeling_qwen3_next.py` and
//! `modeling_qwen3_5.py` of transformers.

use super::{How::Code, Types};
use crate::blocks::{DeltaNet, Gqa, Layer, Moe, mlp, push};
use crate::config::Reader;
use crate::decoder::{Dims, Experts, MoeLayers, PLAIN_EXPERTS, Shared, WIDTH, attend, skeleton};
use crate::error::ModelError;
use crate::spec::{ModelSpec, Mtp, Role};
use crate::towers;
use units::Params;

const EXPERTS: Experts = Experts {
    width: &["moe_intermediate_size"],
    shared: Shared::Width(&["shared_expert_intermediate_size"]),
    shared_gate: true,
    ..PLAIN_EXPERTS
};

pub(crate) const TYPES: Types = &[
    // the checkpoints hold one MTP block that the config does not mention
    ("qwen3_next", Code(|r| text(r, 1))),
    ("qwen3_5_text", Code(|r| text(r, 0))),
    ("qwen3_5_moe_text", Code(|r| text(r, 0))),
    ("qwen3_5", Code(vision)),
    ("qwen3_5_moe", Code(vision)),
];

fn vision(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let Some(inner) = r.nested("text_config", true)? else { return text(r, 0) };
    let mut spec = text(&inner, 0)?;
    towers::qwen3_vl(r, &mut spec.towers)?;
    inner.finish()?;
    Ok(spec)
}

struct Parts {
    d: Dims,
    moe: Option<Moe>,
    width: u64,
    delta: DeltaNet,
}

impl Parts {
    fn layer(&self, full: bool, routed: bool) -> Layer {
        let mut layer = Layer::new(2 * self.d.hidden);
        if full {
            layer.small += 2 * self.d.head_dim;
            Gqa { gate: true, ..attend(self.d, false) }.add(&mut layer);
        } else {
            self.delta.add(&mut layer);
        }
        match self.moe {
            Some(moe) if routed => moe.add(&mut layer),
            _ => mlp(&mut layer, Role::Mlp, self.d.hidden, self.width, 1, true, false),
        }
        layer
    }
}

fn text(r: &Reader<'_>, mtp_default: u64) -> Result<ModelSpec, ModelError> {
    let r = &r.of("qwen3-next");
    let d = Dims::read(r)?;
    let mut spec = skeleton(r, "qwen3-next", d.hidden, d.vocab, false)?;
    if r.flag("attention_bias", false)? {
        return Err(r.unknown("`attention_bias` in a Qwen3-Next layer"));
    }
    if !r.flag("attn_output_gate", true)? {
        return Err(r.unknown("attention without output gate in a Qwen3-Next layer"));
    }
    let types = r.per_layer(&["layer_types"], d.layers)?;
    let interval = r.count(&["full_attention_interval"], 4, crate::config::MAX_LAYERS)?.max(1);
    r.ignore(&["use_sliding_window", "mtp_use_dedicated_embeddings", "max_window_layers", "sliding_window"]);
    let full = match types {
        Some(types) => types
            .iter()
            .map(|t| match *t {
                "full_attention" => Ok(true),
                "linear_attention" => Ok(false),
                other => Err(r.unknown(format!("the layer type `{}`", other.chars().take(40).collect::<String>()))),
            })
            .collect::<Result<Vec<_>, _>>()?,
        None => (0..d.layers).map(|i| (i + 1) % interval == 0).collect(),
    };
    let moe = EXPERTS.read(r, d.hidden, true)?;
    let routed = match moe {
        Some(_) => MoeLayers::Qwen.read(r, d.layers)?,
        None => vec![false; d.layers as usize],
    };
    let width = if routed.iter().all(|m| *m) {
        r.ignore(WIDTH);
        0
    } else {
        r.dim(WIDTH)?
    };
    let parts = Parts {
        d,
        moe,
        width,
        delta: DeltaNet {
            hidden: d.hidden,
            k_heads: r.dim(&["linear_num_key_heads"])?,
            v_heads: r.dim(&["linear_num_value_heads"])?,
            k_dim: r.dim(&["linear_key_head_dim"])?,
            v_dim: r.dim(&["linear_value_head_dim"])?,
            taps: r.dim(&["linear_conv_kernel_dim"])?,
        },
    };
    for (full, routed) in full.into_iter().zip(routed) {
        push(&mut spec.layers, parts.layer(full, routed));
    }
    spec.small = d.hidden;
    let blocks = r.count(&["mtp_num_hidden_layers", "num_nextn_predict_layers"], mtp_default, 16)?;
    if blocks > 0 {
        let run = parts.layer(true, moe.is_some()).run(u32::try_from(blocks).unwrap_or(1));
        let join = 2 * d.hidden.saturating_mul(d.hidden) + 3 * d.hidden;
        spec.mtp = Some(Mtp {
            blocks: run.count,
            params: run.params_per_layer() * blocks + Params(join),
            layer: Some(run),
            stored_copies: 0,
        });
    }
    Ok(spec)
}
