//! Kimi K2.5: a K2 decoder with a MoonViT tower. Follows `modeling_kimi_k25.py` that Moonshot publishes with it.

use super::{How::Code, Types, find};
use crate::config::Reader;
use crate::error::ModelError;
use crate::spec::ModelSpec;
use crate::towers;

pub(crate) const TYPES: Types = &[("kimi_k25", Code(k25))];

fn k25(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let inner = r.nested("text_config", true)?.ok_or_else(|| r.missing(&["text_config"]))?;
    let kind = inner.text(&["model_type"])?.unwrap_or("kimi_k2");
    let how = match kind {
        "kimi_k2" | "deepseek_v3" => find("kimi_k2"),
        _ => None,
    };
    let how =
        how.ok_or_else(|| r.unknown(format!("the text model `{}`", kind.chars().take(40).collect::<String>())))?;
    let mut spec = how.read(&inner)?;
    towers::moonvit(r, spec.hidden, &mut spec.towers)?;
    inner.finish()?;
    Ok(spec)
}
