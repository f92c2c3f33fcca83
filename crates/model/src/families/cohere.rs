//! Command-R and Command-A. Follows `modeling_cohere.py` and `modeling_cohere2.py` of transformers: attention and
//! network side by side behind one norm without bias.

use super::{How::Style as S, Types};
use crate::decoder::{LLAMA, QkNorm, Style, Windows};

const COHERE: Style = Style {
    family: "cohere",
    tied: true,
    norms_per_layer: 1,
    qk_norm: QkNorm::Full,
    qk_norm_if: Some(("use_qk_norm", false)),
    ..LLAMA
};
/// Every fourth layer sees all.
const COHERE2: Style = Style { qk_norm: QkNorm::None, qk_norm_if: None, windows: Windows::Every(4), ..COHERE };

pub(crate) const TYPES: Types = &[("cohere", S(&COHERE)), ("cohere2", S(&COHERE2))];
