//! Nemotron-H, Nemotron Nano 2 and Nemotron 3: one mixer or network per layer, in an order that a pattern spells out.
//! Follows `modeling_nemotron_h.py` that NVIDIA publishes with the models and its port in transformers.

use super::{How::Code, Types};
use crate::blocks::{Layer, Mamba2, matrix, mlp, push};
use crate::config::{MAX_LAYERS, Reader};
use crate::decoder::{Dims, EXPERTS, Experts, PLAIN_EXPERTS, Shared, attend, skeleton};
use crate::error::ModelError;
use crate::spec::{FeedForward, ModelSpec, Mtp, Role, Shard};
use units::Params;

pub(crate) const TYPES: Types = &[("nemotron_h", Code(read))];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Mamba,
    Attention,
    Network,
    Experts,
}

/// The order of layers from a pattern (`M*-E`) or a list of words.
fn order(r: &Reader<'_>, pattern: &'static str, words: &'static str) -> Result<Option<Vec<Kind>>, ModelError> {
    let unknown = |shown: String| r.unknown(format!("the layer type `{shown}`"));
    if let Some(list) = r.texts(&[words])? {
        r.ignore(&[pattern]);
        let kinds = list.iter().map(|w| match *w {
            "mamba" | "mamba2" => Ok(Kind::Mamba),
            "attention" | "full_attention" => Ok(Kind::Attention),
            "mlp" => Ok(Kind::Network),
            "moe" => Ok(Kind::Experts),
            other => Err(unknown(other.chars().take(40).collect())),
        });
        return kinds.collect::<Result<_, _>>().map(Some);
    }
    let Some(text) = r.text(&[pattern])? else { return Ok(None) };
    let kinds = text.chars().map(|c| match c {
        'M' => Ok(Kind::Mamba),
        '*' => Ok(Kind::Attention),
        '-' => Ok(Kind::Network),
        'E' => Ok(Kind::Experts),
        other => Err(unknown(other.to_string())),
    });
    kinds.collect::<Result<_, _>>().map(Some)
}

fn read(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("nemotron");
    let kinds = order(r, "hybrid_override_pattern", "layers_block_type")?
        .ok_or_else(|| r.missing(&["hybrid_override_pattern", "layers_block_type"]))?;
    let count = kinds.len() as u64;
    if count == 0 || count > MAX_LAYERS {
        let value = serde_json::Value::from(count);
        return Err(r.bad("layers_block_type", &value, &format!("from 1 to {MAX_LAYERS} layers")));
    }
    if r.has("num_hidden_layers") && r.layers()? != count {
        let value = serde_json::Value::from(count);
        return Err(r.bad("hybrid_override_pattern", &value, "as long as `num_hidden_layers`"));
    }
    let d = Dims::read_with(r, count)?;
    let mut spec = skeleton(r, "nemotron", d.hidden, d.vocab, false)?;
    let parts = Parts::read(r, d)?;
    for kind in &kinds {
        let mut layer = Layer::new(d.hidden);
        parts.add(r, *kind, &mut layer)?;
        push(&mut spec.layers, layer);
    }
    spec.small = d.hidden;
    r.ignore(&["num_nextn_predict_layers", "mtp_use_repeated_layers"]);
    if let Some(kinds) = order(r, "mtp_hybrid_override_pattern", "mtp_layers_block_type")?.filter(|k| !k.is_empty()) {
        let mut layer = Layer::new(0);
        for kind in kinds {
            layer.small = layer.small.saturating_add(d.hidden);
            parts.add(r, kind, &mut layer)?;
        }
        let join = d.hidden.saturating_mul(d.hidden).saturating_mul(2).saturating_add(3 * d.hidden);
        let run = layer.run(1);
        spec.mtp =
            Some(Mtp { blocks: 1, params: run.params_per_layer() + Params(join), layer: Some(run), stored_copies: 0 });
    }
    Ok(spec)
}

struct Parts {
    d: Dims,
    bias: bool,
    mamba: Mamba2,
    width: u64,
    mlp_bias: bool,
    moe: Option<crate::blocks::Moe>,
    latent: Option<u64>,
}

impl Parts {
    fn read(r: &Reader<'_>, d: Dims) -> Result<Self, ModelError> {
        let heads = r.dim(&["mamba_num_heads"])?;
        let experts = Experts {
            width: &["moe_intermediate_size"],
            shared: Shared::Width(&["moe_shared_expert_intermediate_size"]),
            ..PLAIN_EXPERTS
        };
        let moe = if r.raw(EXPERTS).is_some() { experts.read(r, d.hidden, false)? } else { None };
        let shared = r.count(&["n_shared_experts"], 1, 1024)?;
        r.ignore(&["expand", "moe_shared_expert_overlap", "mamba_head_dim", "mlp_hidden_act", "mamba_hidden_act"]);
        r.ignore(&["sliding_window", "use_mamba_kernels", "moe_latent_size", "moe_intermediate_size"]);
        Ok(Self {
            d,
            bias: r.flag("attention_bias", false)?,
            mamba: Mamba2 {
                hidden: d.hidden,
                inner: heads.saturating_mul(r.dim(&["mamba_head_dim"])?),
                heads,
                groups: r.dim(&["n_groups", "mamba_n_groups"])?,
                state: r.dim(&["ssm_state_size", "mamba_d_state"])?,
                taps: r.dim(&["conv_kernel", "mamba_d_conv"])?,
                conv_bias: r.flag("use_conv_bias", true)?,
                bias: r.flag("use_bias", false)? || r.flag("mamba_proj_bias", false)?,
            },
            width: r.count(&["intermediate_size"], 0, 1 << 26)?,
            mlp_bias: r.flag("mlp_bias", false)?,
            moe: moe.map(|m| crate::blocks::Moe { shared: m.shared.saturating_mul(shared), ..m }),
            latent: r.dim_opt(&["moe_latent_size"])?,
        })
    }

    fn add(&self, r: &Reader<'_>, kind: Kind, layer: &mut Layer) -> Result<(), ModelError> {
        let h = self.d.hidden;
        match kind {
            Kind::Mamba => self.mamba.add(layer),
            Kind::Attention => attend(self.d, self.bias).add(layer),
            Kind::Network if self.width == 0 => return Err(r.missing(&["intermediate_size"])),
            Kind::Network => mlp(layer, Role::Mlp, h, self.width, 1, false, self.mlp_bias),
            Kind::Experts => {
                let moe = self.moe.ok_or_else(|| r.missing(EXPERTS))?;
                let Some(latent) = self.latent else {
                    moe.add(layer);
                    return Ok(());
                };
                // experts work on a narrower copy of the stream; router and shared expert on the stream itself
                layer.matrices.push(matrix("router", Role::Router, moe.experts, h, Shard::Replicated));
                layer.matrices.push(matrix("latent_down", Role::SharedExpert, latent, h, Shard::Replicated));
                layer.matrices.push(matrix("latent_up", Role::SharedExpert, h, latent, Shard::Replicated));
                mlp(layer, Role::Expert, latent, moe.width, moe.experts, false, false);
                if moe.shared > 0 {
                    mlp(layer, Role::SharedExpert, h, moe.shared, 1, false, false);
                }
                let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
                layer.feed_forward = FeedForward::Moe { experts: narrow(moe.experts), top_k: narrow(moe.top_k) };
            }
        }
        Ok(())
    }
}
