//! Kimi Linear: three Kimi delta attention layers to one of latent attention. Follows the `modeling_kimi.py` that
//! Moonshot publishes with it and `fla/layers/kda.py`.

use super::deepseek::mla;
use super::{How::Code, Types};
use crate::blocks::{Layer, matrix, mlp, push};
use crate::config::Reader;
use crate::decoder::{Experts, HIDDEN, MoeLayers, PLAIN_EXPERTS, Shared, skeleton};
use crate::error::ModelError;
use crate::spec::{Attention, ModelSpec, Role, Shard, StateSpec};

pub(crate) const TYPES: Types = &[("kimi_linear", Code(read))];

fn read(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("kimi");
    let (hidden, layers, vocab) = (r.dim(HIDDEN)?, r.layers()?, r.dim(&["vocab_size"])?);
    for key in ["routed_expert_hidden_size", "attn_res_block_size", "mla_use_output_gate"] {
        if r.raw(&[key]).is_some_and(|(_, v)| v.as_bool() != Some(false)) {
            return Err(r.unknown(format!("`{key}` of Kimi K3")));
        }
    }
    let linear = r.nested("linear_attn_config", false)?.ok_or_else(|| r.missing(&["linear_attn_config"]))?;
    let delta = linear.counts(&["kda_layers"])?.ok_or_else(|| linear.missing(&["kda_layers"]))?;
    let full = linear.counts(&["full_attn_layers"])?.unwrap_or_default();
    let kda = Kda {
        hidden,
        heads: linear.dim(&["num_heads"])?,
        dim: linear.dim(&["head_dim"])?,
        taps: linear.dim(&["short_conv_kernel_size"])?,
    };
    linear.finish()?;
    let attention = mla(r, hidden)?;
    let experts =
        Experts { width: &["moe_intermediate_size"], shared: Shared::Count(&["num_shared_experts"]), ..PLAIN_EXPERTS };
    let moe = experts.read(r, hidden, true)?.ok_or_else(|| r.missing(&["num_experts"]))?;
    let routed = MoeLayers::DeepSeek(1).read(r, layers)?;
    let width = r.dim(&["intermediate_size"])?;
    r.ignore(&["mla_use_nope"]);
    if r.count(&["num_nextn_predict_layers"], 0, 16)? > 0 {
        return Err(r.unknown("an MTP block of Kimi Linear"));
    }
    let mut spec = skeleton(r, "kimi", hidden, vocab, false)?;
    let mut buffers = 0u64;
    for (i, routed) in (1..).zip(routed) {
        let mut layer = Layer::new(2 * hidden);
        // both lists count from 1
        match (delta.contains(&i), full.contains(&i)) {
            (true, false) => kda.add(&mut layer),
            (false, true) => attention.add(&mut layer),
            _ => return Err(r.unknown(format!("layer {i}, in both or neither of `kda_layers` and `full_attn_layers`"))),
        }
        if routed {
            moe.add(&mut layer);
            buffers = buffers.saturating_add(moe.experts);
        } else {
            mlp(&mut layer, Role::Mlp, hidden, width, 1, true, false);
        }
        push(&mut spec.layers, layer);
    }
    spec.stored_extra.push(("router bias buffers".into(), i64::try_from(buffers).unwrap_or(i64::MAX)));
    spec.small = hidden;
    Ok(spec)
}

#[derive(Clone, Copy)]
struct Kda {
    hidden: u64,
    heads: u64,
    dim: u64,
    taps: u64,
}

impl Kda {
    fn add(self, layer: &mut Layer) {
        let (h, d, m) = (self.hidden, self.dim, Role::Mixer);
        let inner = self.heads.saturating_mul(d);
        for name in ["q_proj", "k_proj", "v_proj"] {
            layer.matrices.push(matrix(name, m, inner, h, Shard::Output));
        }
        // decay and gate, each through a bottleneck of one head's width
        for (down, up) in [("f_a_proj", "f_b_proj"), ("g_a_proj", "g_b_proj")] {
            layer.matrices.push(matrix(down, Role::Other, d, h, Shard::Replicated));
            layer.matrices.push(matrix(up, Role::Other, inner, d, Shard::Output));
        }
        layer.matrices.push(matrix("b_proj", Role::Other, self.heads, h, Shard::Output));
        layer.matrices.push(matrix("o_proj", m, h, inner, Shard::Input));
        let conv = inner.saturating_mul(3).saturating_mul(self.taps);
        // convolutions, decay per head, bias of the time step, output norm
        let small = conv.saturating_add(self.heads).saturating_add(inner).saturating_add(d);
        layer.small = layer.small.saturating_add(small);
        layer.attention = Attention::Linear(StateSpec {
            recurrent_elements: inner.saturating_mul(d),
            recurrent_bytes: 4,
            conv_elements: conv,
            heads: u32::try_from(self.heads).unwrap_or(u32::MAX),
        });
    }
}
