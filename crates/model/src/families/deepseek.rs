//! DeepSeek-V2, V3, R1, V3.2 and everything with multi-head latent attention: Kimi K2, GLM-5, GLM-4.7-Flash.
//! Follows `modeling_deepseek_v2.py`, `modeling_deepseek_v3.py` and `modeling_glm_moe_dsa.py` of transformers and the
//! `inference/model.py` that DeepSeek publishes with V3.2 (indexer, MTP block).

use super::{How::Code, Types};
use crate::blocks::{Layer, Mla, mlp, push};
use crate::config::Reader;
use crate::decoder::{
    Experts, HIDDEN, MoeLayers, PLAIN_EXPERTS, Shared, WIDTH, eh_proj, last_layer, router_width, skeleton,
};
use crate::error::ModelError;
use crate::spec::{Indexer, ModelSpec, Mtp, Role};
use units::Params;

/// What differs between the models that share this anatomy.
#[derive(Clone, Copy)]
pub(crate) struct Variant {
    pub(crate) family: &'static str,
    pub(crate) tied: bool,
    /// Whether checkpoints store a correction bias per expert beside the parameters.
    pub(crate) buffer: bool,
    /// Whether the MTP block comes with its own embedding and head.
    pub(crate) mtp_copies: bool,
    /// First routed layer where `first_k_dense_replace` is missing.
    pub(crate) first: u64,
}

const V3: Variant = Variant { family: "deepseek", tied: false, buffer: true, mtp_copies: true, first: 0 };
const V2: Variant = Variant { buffer: false, ..V3 };
const GLM5: Variant = Variant { family: "glm", mtp_copies: false, first: 3, ..V3 };
const GLM_LITE: Variant = Variant { family: "glm", ..V3 };
const KIMI: Variant = Variant { family: "kimi", ..V3 };
const MISTRAL4: Variant = Variant { family: "mistral", buffer: false, ..V3 };
const YOUTU: Variant = Variant { family: "youtu", tied: true, ..V3 };
const SARVAM: Variant = Variant { family: "sarvam", ..V3 };

pub(crate) const TYPES: Types = &[
    ("deepseek_v2", Code(|r| read(r, V2))),
    ("deepseek_v3", Code(|r| read(r, V3))),
    ("deepseek_v32", Code(|r| read(r, V3))),
    ("kimi_k2", Code(|r| read(r, KIMI))),
    ("glm_moe_dsa", Code(|r| read(r, GLM5))),
    ("glm4_moe_lite", Code(|r| read(r, GLM_LITE))),
    ("mistral4", Code(|r| read(r, MISTRAL4))),
    ("youtu", Code(|r| read(r, YOUTU))),
    ("sarvam_mla", Code(|r| read(r, SARVAM))),
];

/// The latent attention that a config describes.
pub(crate) fn mla(r: &Reader<'_>, hidden: u64) -> Result<Mla, ModelError> {
    r.ignore(&["num_key_value_heads", "head_dim", "qk_head_dim"]);
    Ok(Mla {
        hidden,
        heads: r.dim(&["num_attention_heads"])?,
        q_rank: r.dim_opt(&["q_lora_rank"])?,
        kv_rank: r.dim(&["kv_lora_rank"])?,
        rope: r.dim(&["qk_rope_head_dim"])?,
        nope: r.dim(&["qk_nope_head_dim"])?,
        v_dim: r.dim(&["v_head_dim"])?,
        bias: r.flag("attention_bias", false)?,
        indexer: None,
    })
}

/// Which layers own an indexer; `None` without sparse attention.
fn indexers(r: &Reader<'_>, layers: u64) -> Result<Option<Vec<Indexer>>, ModelError> {
    let Some(heads) = r.dim_opt(&["index_n_heads"])? else { return Ok(None) };
    let dim = r.dim(&["index_head_dim"])?;
    let top_k = r.dim(&["index_topk"])?;
    let owners = match r.per_layer(&["indexer_types"], layers)? {
        None => vec![true; layers as usize],
        Some(types) => types
            .iter()
            .map(|t| match *t {
                "full" => Ok(true),
                "shared" => Ok(false),
                other => Err(r.unknown(format!("the indexer type `{}`", other.chars().take(40).collect::<String>()))),
            })
            .collect::<Result<_, _>>()?,
    };
    let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Ok(Some(owners.into_iter().map(|owns| Indexer { heads: narrow(heads), dim: narrow(dim), top_k, owns }).collect()))
}

/// Reads a decoder with latent attention.
pub(crate) fn read(r: &Reader<'_>, variant: Variant) -> Result<ModelSpec, ModelError> {
    let r = &r.of(variant.family);
    let hidden = r.dim(HIDDEN)?;
    let layers = r.layers()?;
    let vocab = r.dim(&["vocab_size"])?;
    let mut spec = skeleton(r, variant.family, hidden, vocab, variant.tied)?;
    let attention = mla(r, hidden)?;
    let indexers = indexers(r, layers)?;
    if let Some(types) = r.per_layer(&["layer_types"], layers)?
        && let Some(other) = types.iter().find(|t| !matches!(**t, "full_attention" | "deepseek_sparse_attention"))
    {
        return Err(r.unknown(format!("the layer type `{}`", other.chars().take(40).collect::<String>())));
    }
    r.ignore(&["mlp_bias", "num_experts"]);
    let experts = Experts {
        width: &["moe_intermediate_size"],
        shared: Shared::Count(&["n_shared_experts", "num_shared_experts"]),
        buffer: variant.buffer,
        ..PLAIN_EXPERTS
    };
    let moe = experts.read(r, hidden, true)?;
    let routed = match moe {
        Some(_) => MoeLayers::DeepSeek(variant.first).read(r, layers)?,
        None => vec![false; layers as usize],
    };
    let width = if routed.iter().all(|m| *m) {
        r.ignore(WIDTH);
        0
    } else {
        r.dim(WIDTH)?
    };
    let mut buffers = 0u64;
    for (i, routed) in routed.iter().enumerate() {
        let mut layer = Layer::new(2 * hidden);
        let indexer = indexers.as_ref().and_then(|list| list.get(i).copied());
        Mla { indexer, ..attention }.add(&mut layer);
        match moe {
            Some(moe) if *routed => {
                moe.add(&mut layer);
                buffers = buffers.saturating_add(moe.experts);
            }
            _ => mlp(&mut layer, Role::Mlp, hidden, width, 1, true, false),
        }
        push(&mut spec.layers, layer);
    }
    if variant.buffer && buffers > 0 {
        spec.stored_extra.push(("router bias buffers".into(), i64::try_from(buffers).unwrap_or(i64::MAX)));
    }
    spec.small = hidden;
    let blocks = r.count(&["num_nextn_predict_layers"], 0, 16)?;
    if blocks > 0 {
        // the block always has an indexer of its own
        let mut layer = Layer::new(2 * hidden);
        let indexer = indexers.and_then(|list| list.first().copied()).map(|i| Indexer { owns: true, ..i });
        Mla { indexer, ..attention }.add(&mut layer);
        match moe {
            Some(moe) => moe.add(&mut layer),
            None => mlp(&mut layer, Role::Mlp, hidden, width, 1, true, false),
        }
        let copies = if variant.mtp_copies { vocab.saturating_mul(hidden).saturating_mul(2) } else { 0 };
        spec.mtp = Some(mtp(hidden, blocks, layer, copies));
    }
    Ok(spec)
}

/// An MTP block as DeepSeek-V3 has it: a decoder layer with its router's correction bias, the joining matrix and
/// three norms.
pub(crate) fn mtp(hidden: u64, blocks: u64, layer: Layer, copies: u64) -> Mtp {
    let mut layer = layer;
    let run = layer.clone().run(1);
    layer.small = layer.small.saturating_add(router_width(&run)).saturating_add(3 * hidden);
    layer.matrices.push(eh_proj(hidden));
    let run = layer.run(u32::try_from(blocks).unwrap_or(1));
    Mtp {
        blocks: run.count,
        params: Params(run.params_per_layer().0.saturating_mul(blocks)),
        layer: Some(run),
        stored_copies: copies.saturating_mul(blocks),
    }
}

/// The MTP block of a model whose block repeats its last layer.
pub(crate) fn mtp_like_last(spec: &ModelSpec, blocks: u64, copies: u64) -> Option<Mtp> {
    let run = last_layer(spec)?;
    let layer = Layer {
        attention: run.attention,
        cross: None,
        feed_forward: run.feed_forward,
        matrices: run.matrices,
        small: run.small,
    };
    Some(mtp(spec.hidden, blocks, layer, copies))
}
