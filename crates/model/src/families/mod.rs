//! One file per architecture family: from a bounded reader of its config to the anatomy.

use crate::config::Reader;
use crate::decoder::{Style, decoder};
use crate::error::ModelError;
use crate::spec::ModelSpec;

mod classic;
mod cohere;
mod deepseek;
mod encoder_decoder;
mod encoders;
mod exaone;
mod falcon;
mod gemma;
mod gemma3n;
mod gemma4;
mod glm;
mod gpt_oss;
mod hunyuan;
mod hybrid;
mod kimi;
mod kimi_linear;
mod llama;
mod llama4;
mod mimo;
mod minimax;
mod mistral;
mod mllama;
mod moe;
mod nemotron_h;
mod nemotron_nas;
mod olmo;
mod phi;
mod qwen;
mod qwen_next;
mod recurrent;
mod vision_language;

/// How a `model_type` is read.
#[derive(Clone, Copy)]
pub(crate) enum How {
    /// By a table of differences.
    Style(&'static Style),
    /// By code of its own.
    Code(fn(&Reader<'_>) -> Result<ModelSpec, ModelError>),
}

impl How {
    pub(crate) fn read(self, r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
        match self {
            Self::Style(style) => decoder(&r.of(style.family), style),
            Self::Code(read) => read(r),
        }
    }
}

/// `model_type`s of a family.
pub(crate) type Types = &'static [(&'static str, How)];

const FAMILIES: &[Types] = &[
    llama::TYPES,
    mistral::TYPES,
    qwen::TYPES,
    qwen_next::TYPES,
    deepseek::TYPES,
    kimi::TYPES,
    glm::TYPES,
    gpt_oss::TYPES,
    gemma::TYPES,
    phi::TYPES,
    llama4::TYPES,
    classic::TYPES,
    cohere::TYPES,
    exaone::TYPES,
    falcon::TYPES,
    hunyuan::TYPES,
    minimax::TYPES,
    moe::TYPES,
    gemma3n::TYPES,
    vision_language::TYPES,
    recurrent::TYPES,
    gemma4::TYPES,
    kimi_linear::TYPES,
    mimo::TYPES,
    mllama::TYPES,
    encoders::TYPES,
    encoder_decoder::TYPES,
    hybrid::TYPES,
    nemotron_h::TYPES,
    nemotron_nas::TYPES,
    olmo::TYPES,
];

/// Every `model_type` that is read.
pub(crate) fn known() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().flat_map(|types| types.iter()).map(|(name, _)| *name)
}

/// The reader of a `model_type`.
pub(crate) fn find(model_type: &str) -> Option<How> {
    FAMILIES.iter().flat_map(|types| types.iter()).find(|(name, _)| *name == model_type).map(|(_, how)| *how)
}
