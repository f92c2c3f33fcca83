//! EXAONE 4. Follows `modeling_exaone4.py` of transformers: norms behind both halves and on queries and keys.

use super::{How::Style as S, Types};
use crate::decoder::{LLAMA, QkNorm, Style, Windows};

const EXAONE4: Style = Style { family: "exaone", qk_norm: QkNorm::Head, windows: Windows::Every(4), ..LLAMA };

pub(crate) const TYPES: Types = &[("exaone4", S(&EXAONE4))];
