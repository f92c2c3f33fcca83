//! Mistral and Mixtral. Follows `modeling_mistral.py`, `modeling_mixtral.py` and `modeling_mistral3.py` of
//! transformers.

use super::qwen::QWEN3;
use super::{How::Code, How::Style as S, Types};
use crate::config::Reader;
use crate::decoder::{LLAMA, PLAIN_EXPERTS, Style, Windows, decoder};
use crate::error::ModelError;
use crate::spec::ModelSpec;
use crate::towers;

const MISTRAL: Style = Style { family: "mistral", windows: Windows::All, ..LLAMA };
const MIXTRAL: Style = Style { family: "mixtral", experts: Some(PLAIN_EXPERTS), ..MISTRAL };

pub(crate) const TYPES: Types = &[
    ("mistral", S(&MISTRAL)),
    ("mixtral", S(&MIXTRAL)),
    ("mistral3", Code(mistral3)),
    ("lighton_ocr", Code(lighton_ocr)),
];

/// A Mistral decoder with a Pixtral tower.
fn mistral3(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let inner = r.nested("text_config", true)?.ok_or_else(|| r.missing(&["text_config"]))?;
    let mut spec = decoder(&inner.of("mistral"), &MISTRAL)?;
    towers::pixtral(r, spec.hidden, &mut spec.towers)?;
    inner.finish()?;
    Ok(spec)
}

/// LightOnOCR: a Qwen3 decoder with a Pixtral tower.
fn lighton_ocr(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    // the outer flag rules: the inner one is a class default
    let tied = r.flag("tie_word_embeddings", true)?;
    let inner = r.nested("text_config", true)?.ok_or_else(|| r.missing(&["text_config"]))?;
    let mut spec = decoder(&inner.of("qwen3"), &QWEN3)?;
    if tied {
        spec.tied = true;
        spec.head = None;
    }
    towers::pixtral(r, spec.hidden, &mut spec.towers)?;
    inner.finish()?;
    Ok(spec)
}
