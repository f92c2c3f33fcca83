//! Llama 1 to 3 and what is built the same way. Follows `modeling_llama.py` of transformers.

use super::{How::Style as S, Types};
use crate::decoder::{Flag, LLAMA, Style, Windows};

const GRANITE: Style = Style { family: "granite", tied: true, ..LLAMA };
/// Granite with windows in three of four layers and a sink per head.
const GRANITE_SWA: Style = Style { sinks: true, windows: Windows::Every(4), ..GRANITE };
const SMOLLM: Style = Style { family: "smollm", tied: true, ..LLAMA };
/// Baichuan packs q, k and v without bias and has as many key heads as query heads.
const BAICHUAN: Style = Style { family: "baichuan", qkv_bias: Flag::No, o_bias: Flag::No, ..LLAMA };
const INTERNLM: Style =
    Style { family: "internlm", qkv_bias: Flag::Key("qkv_bias", false), o_bias: Flag::Key("bias", false), ..LLAMA };
/// InternLM2 packs q, k and v; `bias` rules all of attention.
const INTERNLM2: Style =
    Style { family: "internlm", qkv_bias: Flag::Key("bias", false), o_bias: Flag::Key("bias", false), ..LLAMA };
const SEED: Style = Style {
    family: "seed",
    qkv_bias: Flag::Key("attention_bias", true),
    o_bias: Flag::Key("attention_out_bias", false),
    ..LLAMA
};

pub(crate) const TYPES: Types = &[
    ("llama", S(&LLAMA)),
    ("iquestcoder", S(&LLAMA)),
    ("exaone", S(&LLAMA)),
    ("helium", S(&LLAMA)),
    ("granite", S(&GRANITE)),
    ("granite_swa", S(&GRANITE_SWA)),
    ("smollm3", S(&SMOLLM)),
    ("baichuan", S(&BAICHUAN)),
    ("internlm2", S(&INTERNLM2)),
    ("internlm3", S(&INTERNLM)),
    ("seed_oss", S(&SEED)),
];
