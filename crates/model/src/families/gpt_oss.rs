//! gpt-oss. Follows `modeling_gpt_oss.py` of transformers and OpenAI's `gpt_oss/torch/model.py`: biases everywhere,
//! one sink per head, every other layer with a window of 128.

use super::{How::Style as S, Types};
use crate::decoder::{Experts, Flag, LLAMA, PLAIN_EXPERTS, Style, Windows};

const GPT_OSS: Style = Style {
    family: "gpt-oss",
    qkv_bias: Flag::Key("attention_bias", true),
    o_bias: Flag::Key("attention_bias", true),
    sinks: true,
    windows: Windows::Every(2),
    experts: Some(Experts { width: &["intermediate_size"], bias: true, router_bias: true, ..PLAIN_EXPERTS }),
    ..LLAMA
};

pub(crate) const TYPES: Types = &[("gpt_oss", S(&GPT_OSS))];
