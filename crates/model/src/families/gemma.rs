//! Gemma 1 to 3. Follows `modeling_gemma.py`, `modeling_gemma2.py` and `modeling_gemma3.py` of transformers.

use super::{How::Code, How::Style as S, Types};
use crate::config::Reader;
use crate::decoder::{LLAMA, QkNorm, Style, Windows, decoder};
use crate::error::ModelError;
use crate::spec::ModelSpec;
use crate::towers;

const GEMMA: Style = Style { family: "gemma", tied: true, ..LLAMA };
/// Every second layer sees all; norms before and after both halves.
const GEMMA2: Style = Style { norms_per_layer: 4, windows: Windows::Every(2), ..GEMMA };
/// Every sixth layer sees all.
const GEMMA3: Style = Style { qk_norm: QkNorm::Head, windows: Windows::Every(6), ..GEMMA2 };

pub(crate) const TYPES: Types =
    &[("gemma", S(&GEMMA)), ("gemma2", S(&GEMMA2)), ("gemma3_text", S(&GEMMA3)), ("gemma3", Code(gemma3))];

fn gemma3(r: &Reader<'_>) -> Result<ModelSpec, ModelError> {
    let Some(inner) = r.nested("text_config", true)? else { return decoder(r, &GEMMA3) };
    let mut spec = decoder(&inner.of("gemma"), &GEMMA3)?;
    towers::siglip_for_gemma(r, spec.hidden, &mut spec.towers)?;
    inner.finish()?;
    Ok(spec)
}
