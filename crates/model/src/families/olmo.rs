//! OLMo 1 to 3, OLMoE, FlexOlmo. Follows `modeling_olmo.py`, `modeling_olmo2.py`, `modeling_olmo3.py`,
//! `modeling_olmoe.py` and `modeling_flex_olmo.py` of transformers.

use super::{How::Style as S, Types};
use crate::decoder::{Experts, LLAMA, Norm, PLAIN_EXPERTS, QkNorm, Style, Windows};

/// Norms without weights.
const OLMO: Style = Style { family: "olmo", norm: Norm::Bare, ..LLAMA };
const OLMO2: Style = Style { family: "olmo", qk_norm: QkNorm::Full, ..LLAMA };
const OLMO3: Style = Style { windows: Windows::Every(4), ..OLMO2 };
const OLMOE: Style = Style { experts: Some(Experts { width: &["intermediate_size"], ..PLAIN_EXPERTS }), ..OLMO2 };

pub(crate) const TYPES: Types =
    &[("olmo", S(&OLMO)), ("olmo2", S(&OLMO2)), ("olmo3", S(&OLMO3)), ("olmoe", S(&OLMOE)), ("flex_olmo", S(&OLMOE))];
