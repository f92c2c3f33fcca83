//! The GPT line and its relatives: GPT-2, GPT-J, GPT-Neo, GPT-NeoX, OPT, BLOOM, MPT, StarCoder, StableLM, Nemotron-4,
//! Jais 2. LayerNorm, mostly biases, mostly a plain network. Follows the `modeling_*.py` of the same names in
//! transformers.

use super::{How::Code, How::Style as S, Types};
use crate::blocks::matrix;
use crate::config::Reader;
use crate::decoder::{Dims, Flag, LLAMA, Norm, Style, Windows, decoder, decoder_parts, skeleton};
use crate::error::ModelError;
use crate::spec::{Attention, ModelSpec, Role, Shard, Tower, Window};

/// LayerNorm and biases everywhere, plain network of four times the width, tied.
const GPT: Style = Style {
    family: "gpt",
    tied: true,
    norm: Norm::ScaleAndBias,
    qkv_bias: Flag::Yes,
    o_bias: Flag::Yes,
    mlp_bias: Flag::Yes,
    gated: false,
    width_ratio: 4,
    ..LLAMA
};
const GPT2: Style = Style { positions: Some((&["n_positions", "max_position_embeddings"], 0)), ..GPT };
const GPTJ: Style =
    Style { tied: false, norms_per_layer: 1, qkv_bias: Flag::No, o_bias: Flag::No, head_bias: Flag::Yes, ..GPT };
const GPT_NEO: Style = Style { qkv_bias: Flag::No, positions: Some((&["max_position_embeddings"], 0)), ..GPT };
const NEOX: Style = Style {
    family: "gpt-neox",
    tied: false,
    qkv_bias: Flag::Key("attention_bias", true),
    o_bias: Flag::Key("attention_bias", true),
    ..GPT
};
/// Positions start at 2.
const OPT: Style = Style { family: "opt", positions: Some((&["max_position_embeddings"], 2)), ..GPT };
const BLOOM: Style = Style { family: "bloom", embedding_norm: true, ..GPT };
const MPT: Style = Style {
    family: "mpt",
    norm: Norm::Scale,
    qkv_bias: Flag::Not("no_bias", false),
    o_bias: Flag::Not("no_bias", false),
    mlp_bias: Flag::Not("no_bias", false),
    ..GPT
};
const STARCODER2: Style = Style {
    family: "starcoder",
    qkv_bias: Flag::Key("use_bias", true),
    o_bias: Flag::Key("use_bias", true),
    mlp_bias: Flag::Key("use_bias", true),
    windows: Windows::All,
    ..GPT
};
const STABLELM: Style = Style {
    family: "stablelm",
    norm: Norm::ScaleAndBias,
    qkv_bias: Flag::Key("use_qkv_bias", false),
    o_bias: Flag::No,
    mlp_bias: Flag::No,
    ..LLAMA
};
const NEMOTRON: Style = Style { family: "nemotron", norm: Norm::ScaleAndBias, gated: false, ..LLAMA };
/// Persimmon, Fuyu's decoder: LayerNorm also on queries and keys.
const PERSIMMON: Style = Style { family: "fuyu", tied: false, ..GPT };
const JAIS2: Style = Style { family: "jais", ..NEMOTRON };

pub(crate) const TYPES: Types = &[
    ("gpt2", Code(gpt2)),
    ("gpt_bigcode", Code(gpt2)),
    ("gptj", S(&GPTJ)),
    ("gpt_neo", Code(gpt_neo)),
    ("gpt_neox", S(&NEOX)),
    ("opt", Code(opt)),
    ("bloom", S(&BLOOM)),
    ("mpt", Code(mpt)),
    ("starcoder2", Code(starcoder2)),
    ("stablelm", Code(stablelm)),
    ("nemotron", S(&NEMOTRON)),
    ("jais2", S(&JAIS2)),
    ("fuyu", Code(fuyu)),
];

fn gpt2(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("gpt");
    let mut d = Dims::read(r)?;
    if r.flag("add_cross_attention", false)? {
        return Err(r.unknown("`add_cross_attention`"));
    }
    if r.flag("multi_query", false)? {
        d.kv_heads = 1;
    }
    let mut spec = skeleton(r, "gpt", d.hidden, d.vocab, true)?;
    decoder_parts(r, &GPT2, d, &mut spec)?;
    Ok(spec)
}

fn gpt_neo(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("gpt");
    let d = Dims::read(r)?;
    let mut spec = skeleton(r, "gpt", d.hidden, d.vocab, true)?;
    decoder_parts(r, &GPT_NEO, d, &mut spec)?;
    r.ignore(&["attention_types"]);
    let size = r.dim_or(&["window_size"], 256, "GPT-Neo's default")?;
    let Some(kinds) = r.per_layer(&["attention_layers"], d.layers)? else { return Ok(spec) };
    let Some(run) = spec.layers.pop() else { return Ok(spec) };
    for kind in kinds {
        let see = match kind {
            "global" => Window::Full,
            "local" => Window::Sliding(size),
            other => {
                return Err(r.unknown(format!("the layer type `{}`", other.chars().take(40).collect::<String>())));
            }
        };
        let mut one = crate::spec::LayerRun { count: 1, ..run.clone() };
        if let Attention::Gqa { window, .. } = &mut one.attention {
            *window = see;
        }
        spec.layers.push(one);
    }
    Ok(spec)
}

fn opt(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("opt");
    let hidden = r.dim(&["hidden_size"])?;
    if r.dim_opt(&["word_embed_proj_dim"])?.is_some_and(|p| p != hidden) {
        return Err(r.unknown("`word_embed_proj_dim` other than the hidden width (OPT-350m)"));
    }
    if !r.flag("do_layer_norm_before", true)? {
        return Err(r.unknown("`do_layer_norm_before: false` (OPT-350m)"));
    }
    r.ignore(&["enable_bias", "layer_norm_elementwise_affine"]);
    decoder(r, &OPT)
}

fn mpt(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let r = &r.of("mpt");
    let mut d = Dims::read(r)?;
    if let Some(a) = r.nested("attn_config", false)? {
        if a.flag("qk_ln", false)? {
            return Err(r.unknown("`qk_ln`"));
        }
        if let Some(kv) = a.dim_opt(&["kv_n_heads"])? {
            d.kv_heads = kv;
        }
        if a.text(&["attn_type"])? == Some("multiquery_attention") {
            d.kv_heads = 1;
        }
        if !a.flag("alibi", false)? {
            return Err(r.unknown("MPT without ALiBi"));
        }
    }
    let ratio = r.factor(&["expansion_ratio"], 4.0)?;
    if ratio.fract() != 0.0 {
        return Err(r.unknown("a fractional `expansion_ratio`"));
    }
    r.ignore(&["learned_pos_emb", "use_norm_bias", "verbose", "logit_scale", "init_device", "init_config"]);
    let mut spec = skeleton(r, "mpt", d.hidden, d.vocab, true)?;
    decoder_parts(r, &Style { width_ratio: ratio as u64, ..MPT }, d, &mut spec)?;
    Ok(spec)
}

fn starcoder2(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    if r.text(&["mlp_type"])?.is_some_and(|t| t != "default") {
        return Err(r.unknown("`mlp_type` other than `default`"));
    }
    decoder(&r.of("starcoder"), &STARCODER2)
}

fn stablelm(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    if r.flag("qk_layernorm", false)? {
        return Err(r.unknown("`qk_layernorm` of StableLM"));
    }
    let parallel = r.flag("use_parallel_residual", false)?;
    decoder(&r.of("stablelm"), &Style { norms_per_layer: if parallel { 1 } else { 2 }, ..STABLELM })
}

/// Fuyu: image patches go into a Persimmon decoder through one matrix.
fn fuyu(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let inner = r.nested("text_config", true)?.ok_or_else(|| r.missing(&["text_config"]))?.of("fuyu");
    let d = Dims::read(&inner)?;
    let mut spec = skeleton(&inner, "fuyu", d.hidden, d.vocab, false)?;
    let norms = inner.flag("qk_layernorm", true)?;
    decoder_parts(&inner, &PERSIMMON, d, &mut spec)?;
    for run in &mut spec.layers {
        run.small = run.small.saturating_add(if norms { 4 * d.head_dim } else { 0 });
    }
    let patch = r.dim(&["patch_size"])?;
    let pixels = r.count(&["num_channels"], 3, 1024)?.saturating_mul(patch).saturating_mul(patch);
    let embed = matrix("vision_embed_tokens", Role::Tower, d.hidden, pixels, Shard::Replicated).with_bias(true);
    spec.towers.push(Tower { name: "vision", matrices: vec![embed], small: 0 });
    r.ignore(&["image_size"]);
    inner.finish()?;
    Ok(spec)
}
