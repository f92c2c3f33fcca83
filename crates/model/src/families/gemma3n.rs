//! Gemma 3n. Follows `modeling_gemma3n.py` of transformers: four parallel streams (AltUp), low-rank residuals
//! (Laurel), an embedding per layer, and last layers that reuse the cache of earlier ones.

use super::{How::Code, Types};
use crate::blocks::{Gqa, Layer, matrix, mlp, push};
use crate::config::Reader;
use crate::decoder::{Dims, Windows, attend, skeleton, uniform};
use crate::error::ModelError;
use crate::spec::{Matrix, ModelSpec, Role, Shard};

pub(crate) const TYPES: Types = &[("gemma3n_text", Code(text))];

fn text(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("gemma");
    let d = Dims::read(r)?;
    let h = d.hidden;
    let width = uniform(r, &["intermediate_size"])?;
    let windows = Windows::Every(5).read(r, d.layers)?;
    let per_layer = r.dim(&["hidden_size_per_layer_input"])?;
    let rows = r.dim(&["vocab_size_per_layer_input"])?;
    let streams = r.dim(&["altup_num_inputs"])?;
    let rank = r.dim(&["laurel_rank"])?;
    let shared = r.count(&["num_kv_shared_layers"], 0, d.layers)?;
    if r.flag("attention_bias", false)? {
        return Err(r.unknown("`attention_bias` of Gemma 3n"));
    }
    r.ignore(&["altup_active_idx", "altup_coef_clip", "altup_correct_scale", "activation_sparsity_pattern"]);
    let mut spec = skeleton(r, "gemma", h, d.vocab, true)?;
    let other = |name, o, i| matrix(name, Role::Other, o, i, Shard::Replicated);
    let inner = per_layer.saturating_mul(d.layers);
    spec.embedding.push(other("embed_tokens_per_layer", rows, inner));
    spec.embedding.push(other("per_layer_model_projection", inner, h));
    let altup = streams.saturating_sub(1).saturating_mul(2);
    spec.embedding.push(Matrix { copies: altup, ..other("altup_projection", h, h) });
    spec.small = h.saturating_add(per_layer);
    let own = d.layers.saturating_sub(shared);
    for (i, window) in (0..).zip(windows) {
        let own_cache = i < own;
        // four norms, Laurel's, the per-layer input's, the streams' router norm and output scale
        let mut layer = Layer::new(8 * h + d.head_dim + if own_cache { d.head_dim } else { 0 });
        Gqa { own_cache, window, ..attend(d, false) }.add(&mut layer);
        mlp(&mut layer, Role::Mlp, h, width, 1, true, false);
        layer.matrices.push(other("laurel_left", rank, h));
        layer.matrices.push(other("laurel_right", h, rank));
        layer.matrices.push(other("per_layer_input_gate", per_layer, h));
        layer.matrices.push(other("per_layer_projection", h, per_layer));
        layer.matrices.push(other("altup_router", streams, h));
        let square = streams.saturating_mul(streams);
        layer.small = layer.small.saturating_add(square).saturating_add(square.saturating_mul(streams));
        push(&mut spec.layers, layer);
    }
    Ok(spec)
}
