//! Decoders that mix attention with state-space layers: Mamba 1 and 2, Jamba, Granite 4, Nemotron-H and Nemotron 3,
//! LFM2, MiniMax-Text-01. Follows `modeling_mamba.py`, `modeling_mamba2.py`, `modeling_jamba.py`,
//! `modeling_granitemoehybrid.py`, `modeling_nemotron_h.py`, `modeling_lfm2.py` and `modeling_minimax.py` of
//! transformers.

use super::{How::Code, Types};
use crate::blocks::{Layer, Mamba1, Mamba2, matrix, mlp, push};
use crate::config::{MAX_LAYERS, Reader};
use crate::decoder::{Dims, Experts, HIDDEN, MoeLayers, PLAIN_EXPERTS, Shared, attend, skeleton};
use crate::error::ModelError;
use crate::spec::{Attention, ModelSpec, Role, Shard, StateSpec};

pub(crate) const TYPES: Types = &[
    ("mamba", Code(|r| mamba1(r, true))),
    ("falcon_mamba", Code(|r| mamba1(r, false))),
    ("mamba2", Code(mamba2)),
    ("jamba", Code(jamba)),
    ("granitemoehybrid", Code(granite)),
    ("lfm2", Code(|r| lfm2(r, false))),
    ("lfm2_moe", Code(|r| lfm2(r, true))),
    ("minimax", Code(minimax)),
];

fn rank(r: &Reader<'_>, key: &'static str, hidden: u64) -> Result<u64, ModelError> {
    match r.raw(&[key]) {
        Some((_, v)) if v.as_str() == Some("auto") => Ok(hidden.div_ceil(16)),
        Some(_) => r.dim(&[key]),
        None => Ok(hidden.div_ceil(16)),
    }
}

fn mamba1(r: &Reader<'_>, tied: bool) -> Result<ModelSpec, ModelError> {
    let r = &r.of("mamba");
    let (hidden, layers, vocab) = (r.dim(HIDDEN)?, r.layers()?, r.dim(&["vocab_size"])?);
    let expand = r.count(&["expand"], 2, 1024)?;
    let mixer = Mamba1 {
        hidden,
        inner: r.dim_opt(&["intermediate_size"])?.unwrap_or(hidden.saturating_mul(expand)),
        rank: rank(r, "time_step_rank", hidden)?,
        state: r.dim(&["state_size"])?,
        taps: r.dim(&["conv_kernel"])?,
        conv_bias: r.flag("use_conv_bias", true)?,
        bias: r.flag("use_bias", false)?,
        norms: false,
    };
    let mut spec = skeleton(r, "mamba", hidden, vocab, tied)?;
    for _ in 0..layers {
        let mut layer = Layer::new(hidden);
        mixer.add(&mut layer);
        push(&mut spec.layers, layer);
    }
    spec.small = hidden;
    Ok(spec)
}

fn mamba2(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("mamba");
    let (hidden, layers, vocab) = (r.dim(HIDDEN)?, r.layers()?, r.dim(&["vocab_size"])?);
    r.ignore(&["head_dim"]);
    let mixer = Mamba2 {
        hidden,
        inner: hidden.saturating_mul(r.count(&["expand"], 2, 1024)?),
        heads: r.dim(&["num_heads"])?,
        groups: r.dim(&["n_groups"])?,
        state: r.dim(&["state_size"])?,
        taps: r.dim(&["conv_kernel"])?,
        conv_bias: r.flag("use_conv_bias", true)?,
        bias: r.flag("use_bias", false)?,
    };
    let mut spec = skeleton(r, "mamba", hidden, vocab, false)?;
    for _ in 0..layers {
        let mut layer = Layer::new(hidden);
        mixer.add(&mut layer);
        push(&mut spec.layers, layer);
    }
    spec.small = hidden;
    Ok(spec)
}

fn jamba(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("jamba");
    let d = Dims::read(r)?;
    let width = r.dim(&["intermediate_size"])?;
    let moe = Experts { width: &["intermediate_size"], ..PLAIN_EXPERTS }.read(r, d.hidden, true)?;
    let mixer = Mamba1 {
        hidden: d.hidden,
        inner: d.hidden.saturating_mul(r.count(&["mamba_expand"], 2, 1024)?),
        rank: rank(r, "mamba_dt_rank", d.hidden)?,
        state: r.dim(&["mamba_d_state"])?,
        taps: r.dim(&["mamba_d_conv"])?,
        conv_bias: r.flag("mamba_conv_bias", true)?,
        bias: r.flag("mamba_proj_bias", false)?,
        norms: true,
    };
    let step = |key, default| r.count(&[key], default, MAX_LAYERS);
    let (attn_step, attn_at) = (step("attn_layer_period", 8)?.max(1), step("attn_layer_offset", 4)?);
    let (moe_step, moe_at) = (step("expert_layer_period", 2)?.max(1), step("expert_layer_offset", 1)?);
    let mut spec = skeleton(r, "jamba", d.hidden, d.vocab, false)?;
    for i in 0..d.layers {
        let mut layer = Layer::new(2 * d.hidden);
        if i % attn_step == attn_at {
            attend(d, false).add(&mut layer);
        } else {
            mixer.add(&mut layer);
        }
        match moe {
            Some(moe) if i % moe_step == moe_at => moe.add(&mut layer),
            _ => mlp(&mut layer, Role::Mlp, d.hidden, width, 1, true, false),
        }
        push(&mut spec.layers, layer);
    }
    spec.small = d.hidden;
    Ok(spec)
}

fn granite(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("granite");
    let d = Dims::read(r)?;
    let bias = r.flag("attention_bias", false)?;
    let experts = Experts {
        width: &["intermediate_size"],
        shared: Shared::Width(&["shared_intermediate_size"]),
        ..PLAIN_EXPERTS
    };
    let moe = experts.read(r, d.hidden, true)?;
    let dense = r.count(&["shared_intermediate_size"], 0, 1 << 26)?;
    let mixer = Mamba2 {
        hidden: d.hidden,
        inner: d.hidden.saturating_mul(r.count(&["mamba_expand"], 2, 1024)?),
        heads: r.dim(&["mamba_n_heads"])?,
        groups: r.dim(&["mamba_n_groups"])?,
        state: r.dim(&["mamba_d_state"])?,
        taps: r.dim(&["mamba_d_conv"])?,
        conv_bias: r.flag("mamba_conv_bias", true)?,
        bias: r.flag("mamba_proj_bias", false)?,
    };
    r.ignore(&["mamba_d_head", "intermediate_size"]);
    let types =
        r.per_layer(&["layer_types", "layers_block_type"], d.layers)?.ok_or_else(|| r.missing(&["layer_types"]))?;
    let mut spec = skeleton(r, "granite", d.hidden, d.vocab, true)?;
    for kind in types {
        let mut layer = Layer::new(2 * d.hidden);
        match kind {
            "mamba" => mixer.add(&mut layer),
            "attention" => attend(d, bias).add(&mut layer),
            other => {
                return Err(r.unknown(format!("the layer type `{}`", other.chars().take(40).collect::<String>())));
            }
        }
        match moe {
            Some(moe) => moe.add(&mut layer),
            None if dense > 0 => mlp(&mut layer, Role::Mlp, d.hidden, dense, 1, true, false),
            None => return Err(r.missing(&["shared_intermediate_size"])),
        }
        push(&mut spec.layers, layer);
    }
    spec.small = d.hidden;
    Ok(spec)
}

/// LFM2: short gated convolutions, every few layers attention.
fn lfm2(r: &Reader<'_>, routed: bool) -> Result<ModelSpec, ModelError> {
    let r = &r.of("lfm2");
    let d = Dims::read(r)?;
    let taps = r.dim(&["conv_L_cache"])?;
    let bias = r.flag("conv_bias", false)?;
    let width = match r.dim_opt(&["block_ff_dim"])? {
        Some(width) if r.flag("block_auto_adjust_ff_dim", true)? => {
            let multiplier = r.factor(&["block_ffn_dim_multiplier"], 1.0)?;
            let of = r.count(&["block_multiple_of"], 256, 1 << 20)?.max(1);
            let scaled = (multiplier * (width.saturating_mul(2) / 3) as f64) as u64;
            scaled.div_ceil(of).saturating_mul(of)
        }
        Some(width) => width,
        None => r.dim(&["intermediate_size"])?,
    };
    r.ignore(&["block_dim", "conv_dim", "conv_dim_out", "num_heads", "use_expert_bias", "intermediate_size"]);
    let full: Vec<bool> = match (r.per_layer(&["layer_types"], d.layers)?, r.counts(&["full_attn_idxs"])?) {
        (Some(types), _) => types
            .iter()
            .map(|t| match *t {
                "full_attention" => Ok(true),
                "conv" => Ok(false),
                other => Err(r.unknown(format!("the layer type `{}`", other.chars().take(40).collect::<String>()))),
            })
            .collect::<Result<_, _>>()?,
        (None, Some(list)) => (0..d.layers).map(|i| list.contains(&i)).collect(),
        (None, None) => return Err(r.missing(&["layer_types", "full_attn_idxs"])),
    };
    let moe = if routed {
        Experts { width: &["moe_intermediate_size"], ..PLAIN_EXPERTS }.read(r, d.hidden, true)?
    } else {
        None
    };
    let sparse = MoeLayers::Lfm.read(r, d.layers)?;
    let mut spec = skeleton(r, "lfm2", d.hidden, d.vocab, true)?;
    let h = d.hidden;
    for (full, sparse) in full.into_iter().zip(sparse) {
        let mut layer = Layer::new(2 * h);
        if full {
            layer.small += 2 * d.head_dim;
            attend(d, false).add(&mut layer);
        } else {
            layer.matrices.push(matrix("in_proj", Role::Mixer, 3 * h, h, Shard::Output).with_bias(bias));
            layer.matrices.push(matrix("out_proj", Role::Mixer, h, h, Shard::Input).with_bias(bias));
            layer.small = layer.small.saturating_add(h.saturating_mul(taps + u64::from(bias)));
            layer.attention = Attention::Linear(StateSpec {
                recurrent_elements: 0,
                recurrent_bytes: 4,
                conv_elements: h.saturating_mul(taps),
                heads: 0,
            });
        }
        match moe {
            Some(moe) if sparse => moe.add(&mut layer),
            _ => mlp(&mut layer, Role::Mlp, h, width, 1, true, false),
        }
        push(&mut spec.layers, layer);
    }
    spec.small = h;
    Ok(spec)
}

/// MiniMax-Text-01: lightning attention, every eighth layer full.
fn minimax(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("minimax");
    let d = Dims::read(r)?;
    let moe = Experts { width: &["intermediate_size"], ..PLAIN_EXPERTS }
        .read(r, d.hidden, true)?
        .ok_or_else(|| r.missing(&["num_local_experts"]))?;
    let types = r.per_layer(&["layer_types"], d.layers)?.ok_or_else(|| r.missing(&["layer_types"]))?;
    r.ignore(&["block_size", "sliding_window"]);
    r.ignore(&["full_attn_alpha_factor", "linear_attn_alpha_factor", "mlp_alpha_factor"]);
    r.ignore(&["full_attn_beta_factor", "linear_attn_beta_factor", "mlp_beta_factor"]);
    let mut spec = skeleton(r, "minimax", d.hidden, d.vocab, false)?;
    let inner = d.heads.saturating_mul(d.head_dim);
    for kind in types {
        let mut layer = Layer::new(2 * d.hidden);
        match kind {
            "full_attention" => attend(d, false).add(&mut layer),
            "linear_attention" => {
                let m = Role::Mixer;
                layer.matrices.push(matrix("qkv_proj", m, 3 * inner, d.hidden, Shard::Output));
                layer.matrices.push(matrix("output_gate", m, inner, d.hidden, Shard::Output));
                layer.matrices.push(matrix("out_proj", m, d.hidden, inner, Shard::Input));
                layer.small = layer.small.saturating_add(inner);
                layer.attention = Attention::Linear(StateSpec {
                    recurrent_elements: inner.saturating_mul(d.head_dim),
                    recurrent_bytes: 4,
                    conv_elements: 0,
                    heads: u32::try_from(d.heads).unwrap_or(u32::MAX),
                });
            }
            other => {
                return Err(r.unknown(format!("the layer type `{}`", other.chars().take(40).collect::<String>())));
            }
        }
        moe.add(&mut layer);
        push(&mut spec.layers, layer);
    }
    spec.small = d.hidden;
    Ok(spec)
}
