//! MiMo-V2. Follows the `modeling_mimo_v2_flash.py` that Xiaomi publishes with it: five windowed layers with more
//! key heads and sinks to one that sees all, values narrower than keys.

use super::{How::Code, Types};
use crate::blocks::{Gqa, Layer, mlp, push};
use crate::config::Reader;
use crate::decoder::{Dims, Experts, MoeLayers, PLAIN_EXPERTS, Shared, attend, skeleton};
use crate::error::ModelError;
use crate::spec::{ModelSpec, Role, Window};

pub(crate) const TYPES: Types = &[("mimo_v2_flash", Code(read))];

fn read(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("mimo");
    let d = Dims::read(r)?;
    let pattern = r.counts(&["hybrid_layer_pattern"])?.ok_or_else(|| r.missing(&["hybrid_layer_pattern"]))?;
    if pattern.len() as u64 != d.layers {
        let value = serde_json::Value::from(pattern.len());
        return Err(r.bad("hybrid_layer_pattern", &value, &format!("a list of {}, one per layer", d.layers)));
    }
    let experts =
        Experts { width: &["moe_intermediate_size"], shared: Shared::Count(&["n_shared_experts"]), ..PLAIN_EXPERTS };
    let moe = experts.read(r, d.hidden, true)?.ok_or_else(|| r.missing(&["n_routed_experts"]))?;
    let routed = MoeLayers::DeepSeek(0).read(r, d.layers)?;
    let width = r.dim(&["intermediate_size"])?;
    let full = (d.heads, d.kv_heads, d.head_dim, r.dim_opt(&["v_head_dim"])?.unwrap_or(d.head_dim));
    let swa = (
        r.dim_opt(&["swa_num_attention_heads"])?.unwrap_or(full.0),
        r.dim_opt(&["swa_num_key_value_heads"])?.unwrap_or(full.1),
        r.dim_opt(&["swa_head_dim"])?.unwrap_or(full.2),
        r.dim_opt(&["swa_v_head_dim"])?.unwrap_or(full.3),
    );
    let window = Window::Sliding(r.dim(&["sliding_window", "sliding_window_size"])?);
    r.ignore(&["attention_chunk_size", "sliding_window_size"]);
    let bias = r.flag("attention_bias", false)?;
    let full_sink = r.flag("add_full_attention_sink_bias", false)?;
    let swa_sink = r.flag("add_swa_attention_sink_bias", false)?;
    let mut spec = skeleton(r, "mimo", d.hidden, d.vocab, false)?;
    for (local, routed) in pattern.into_iter().map(|p| p > 0).zip(routed) {
        let (heads, kv_heads, k_dim, v_dim) = if local { swa } else { full };
        let sink = if local { swa_sink } else { full_sink };
        let mut layer = Layer::new(2 * d.hidden + if sink { heads } else { 0 });
        let window = if local { window } else { Window::Full };
        Gqa { heads, kv_heads, k_dim, v_dim, qkv_bias: bias, window, ..attend(d, false) }.add(&mut layer);
        if routed {
            moe.add(&mut layer);
        } else {
            mlp(&mut layer, Role::Mlp, d.hidden, width, 1, true, false);
        }
        push(&mut spec.layers, layer);
    }
    spec.small = d.hidden;
    r.problem("mtp", "the checkpoint's MTP blocks are not in its config and not counted");
    Ok(spec)
}
