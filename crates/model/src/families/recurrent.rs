//! Decoders of recurrent layers: RecurrentGemma, RWKV-4, xLSTM, OLMo Hybrid. Follows `modeling_recurrent_gemma.py`,
//! `modeling_rwkv.py`, `modeling_xlstm.py` and `modeling_olmo_hybrid.py` of transformers.

use super::{How::Code, Types};
use crate::blocks::{DeltaNet, Gqa, Layer, matrix, mlp, push};
use crate::config::Reader;
use crate::decoder::{Dims, HIDDEN, attend, skeleton};
use crate::error::ModelError;
use crate::spec::{Attention, FeedForward, ModelSpec, Role, Shard, StateSpec, Window};

pub(crate) const TYPES: Types = &[
    ("recurrent_gemma", Code(recurrent_gemma)),
    ("rwkv", Code(rwkv)),
    ("xlstm", Code(xlstm)),
    ("olmo_hybrid", Code(olmo_hybrid)),
];

fn narrow(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Two gated linear recurrences to one windowed attention.
fn recurrent_gemma(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("gemma");
    let d = Dims::read(r)?;
    let (h, w) = (d.hidden, r.dim_opt(&["lru_width"])?.unwrap_or(d.hidden));
    // the config gives both halves of the gated network together
    let width = r.dim(&["intermediate_size"])? / 2;
    let taps = r.dim(&["conv1d_width"])?;
    let window = Window::Sliding(r.dim(&["attention_window_size"])?);
    let bias = r.flag("attention_bias", false)?;
    let cycle = r.texts(&["block_types", "_block_types"])?.filter(|c| !c.is_empty());
    let cycle = cycle.ok_or_else(|| r.missing(&["block_types"]))?;
    r.ignore(&[
        "w_init_variance_scale",
        "logits_soft_cap",
        "final_w_init_variance_scale",
        "embeddings_scale_by_sqrt_dim",
    ]);
    let mut spec = skeleton(r, "gemma", h, d.vocab, true)?;
    for kind in cycle.iter().cycle().take(usize::try_from(d.layers).unwrap_or(0)) {
        let mut layer = Layer::new(2 * h);
        match *kind {
            "attention" => Gqa { qkv_bias: bias, o_bias: true, window, ..attend(d, false) }.add(&mut layer),
            "recurrent" => {
                let m = Role::Mixer;
                layer.matrices.push(matrix("linear_x", m, w, h, Shard::Output).with_bias(true));
                layer.matrices.push(matrix("linear_y", m, w, h, Shard::Output).with_bias(true));
                layer.matrices.push(matrix("linear_out", m, h, w, Shard::Input).with_bias(true));
                // block-diagonal gates, one block per head
                let block = w / d.heads;
                let gate = matrix("rg_lru_gate", Role::Other, block, block, Shard::Replicated).with_bias(true);
                layer.matrices.push(crate::spec::Matrix { copies: 2 * d.heads, ..gate });
                layer.small = layer.small.saturating_add(w.saturating_mul(taps + 2));
                layer.attention = Attention::Linear(StateSpec {
                    recurrent_elements: w,
                    recurrent_bytes: 4,
                    conv_elements: w.saturating_mul(taps),
                    heads: narrow(d.heads),
                });
            }
            other => {
                return Err(r.unknown(format!("the layer type `{}`", other.chars().take(40).collect::<String>())));
            }
        }
        mlp(&mut layer, Role::Mlp, h, width, 1, true, true);
        push(&mut spec.layers, layer);
    }
    spec.small = h;
    Ok(spec)
}

/// RWKV-4: time mixing and channel mixing, five vectors of state per layer.
fn rwkv(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("rwkv");
    let (h, layers, vocab) = (r.dim(HIDDEN)?, r.layers()?, r.dim(&["vocab_size"])?);
    let a = r.dim_opt(&["attention_hidden_size"])?.unwrap_or(h);
    let f = r.dim_opt(&["intermediate_size"])?.unwrap_or(4 * h);
    r.ignore(&["rescale_every"]);
    let mut spec = skeleton(r, "rwkv", h, vocab, false)?;
    spec.max_context = r.count(&["context_length"], 0, 1 << 40)?;
    let m = Role::Mixer;
    for _ in 0..layers {
        // two norms; decay and first of time mixing; five mixing vectors
        let mut layer = Layer::new(9 * h + 2 * a);
        for name in ["time_key", "time_value", "time_receptance"] {
            layer.matrices.push(matrix(name, m, a, h, Shard::Output));
        }
        layer.matrices.push(matrix("time_output", m, h, a, Shard::Input));
        layer.matrices.push(matrix("channel_key", Role::Mlp, f, h, Shard::Output));
        layer.matrices.push(matrix("channel_receptance", Role::Mlp, h, h, Shard::Replicated));
        layer.matrices.push(matrix("channel_value", Role::Mlp, h, f, Shard::Input));
        layer.feed_forward = FeedForward::Dense;
        layer.attention =
            Attention::Linear(StateSpec { recurrent_elements: 5 * h, recurrent_bytes: 4, conv_elements: 0, heads: 1 });
        push(&mut spec.layers, layer);
    }
    // before the first layer and after the last
    spec.small = 4 * h;
    Ok(spec)
}

/// xLSTM 7B: matrix memories.
fn xlstm(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("xlstm");
    let (h, layers, vocab) = (r.dim(&["hidden_size", "embedding_dim"])?, r.layers()?, r.dim(&["vocab_size"])?);
    let heads = r.dim(&["num_heads"])?;
    if r.flag("use_bias", false)? || !r.flag("add_out_norm", true)? {
        return Err(r.unknown("xLSTM with biases or without its output norm"));
    }
    if r.text(&["weight_mode"])?.is_some_and(|m| m != "single") {
        return Err(r.unknown("`weight_mode` other than `single`"));
    }
    let scaled = |factor: f64| (h as f64 * factor) as u64;
    let qk = scaled(r.factor(&["qk_dim_factor"], 0.5)?);
    let v = scaled(r.factor(&["v_dim_factor"], 1.0)?);
    let step = r.count(&["ffn_round_up_to_multiple_of"], 64, 1 << 20)?.max(1);
    let width = scaled(r.factor(&["ffn_proj_factor"], 2.667)?).div_ceil(step).saturating_mul(step);
    r.ignore(&[
        "num_blocks",
        "norm_reduction_force_float32",
        "chunkwise_kernel",
        "sequence_kernel",
        "step_kernel",
        "mode",
        "return_last_states",
        "autocast_kernel_dtype",
        "inference_state_dtype",
        "gate_soft_cap",
        "output_logit_soft_cap",
        "max_inference_chunksize",
    ]);
    let mut spec = skeleton(r, "xlstm", h, vocab, false)?;
    let m = Role::Mixer;
    for _ in 0..layers {
        let mut layer = Layer::new(2 * h + v);
        layer.matrices.push(matrix("q_proj", m, qk, h, Shard::Output));
        layer.matrices.push(matrix("k_proj", m, qk, h, Shard::Output));
        layer.matrices.push(matrix("v_proj", m, v, h, Shard::Output));
        layer.matrices.push(matrix("ogate_preact", m, v, h, Shard::Output));
        layer.matrices.push(matrix("igate_fgate", Role::Other, 2 * heads, h, Shard::Output).with_bias(true));
        layer.matrices.push(matrix("out_proj", m, h, v, Shard::Input));
        // memory, normaliser and stabiliser
        let memory = (qk / heads).saturating_mul(v).saturating_add(qk).saturating_add(heads);
        layer.attention = Attention::Linear(StateSpec {
            recurrent_elements: memory,
            recurrent_bytes: 4,
            conv_elements: 0,
            heads: narrow(heads),
        });
        mlp(&mut layer, Role::Mlp, h, width, 1, true, false);
        push(&mut spec.layers, layer);
    }
    spec.small = h;
    Ok(spec)
}

/// OLMo Hybrid: three gated delta nets to one attention with full-width norms.
fn olmo_hybrid(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("olmo");
    let d = Dims::read(r)?;
    let width = r.dim(&["intermediate_size"])?;
    let bias = r.flag("attention_bias", false)?;
    let types = r.per_layer(&["layer_types"], d.layers)?.ok_or_else(|| r.missing(&["layer_types"]))?;
    let delta = DeltaNet {
        hidden: d.hidden,
        k_heads: r.dim(&["linear_num_key_heads"])?,
        v_heads: r.dim(&["linear_num_value_heads"])?,
        k_dim: r.dim(&["linear_key_head_dim"])?,
        v_dim: r.dim(&["linear_value_head_dim"])?,
        taps: r.dim(&["linear_conv_kernel_dim"])?,
    };
    r.ignore(&[
        "linear_a_log_min",
        "linear_a_log_max",
        "linear_dt_min",
        "linear_dt_max",
        "linear_dt_init_floor",
        "linear_allow_neg_eigval",
    ]);
    let mut spec = skeleton(r, "olmo", d.hidden, d.vocab, false)?;
    for kind in types {
        let mut layer = Layer::new(2 * d.hidden);
        match kind {
            "full_attention" => {
                layer.small += d.heads.saturating_add(d.kv_heads).saturating_mul(d.head_dim);
                attend(d, bias).add(&mut layer);
            }
            "linear_attention" => delta.add(&mut layer),
            other => {
                return Err(r.unknown(format!("the layer type `{}`", other.chars().take(40).collect::<String>())));
            }
        }
        mlp(&mut layer, Role::Mlp, d.hidden, width, 1, true, false);
        push(&mut spec.layers, layer);
    }
    spec.small = d.hidden;
    Ok(spec)
}
