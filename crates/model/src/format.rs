//! Formats of weights and of the cache: what one matrix costs in each.
//!
//! A format quantises linear layers only. Embedding, head, router, norms, biases and towers stay in 16 bit, except in
//! GGUF mixes, which also quantise embedding and head. What a checkpoint leaves out beyond that comes as a list of
//! roles.

use std::fmt;
use std::str::FromStr;

use units::Bytes;

use crate::spec::{Matrix, Role};

/// How quantisable matrices are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WeightFormat {
    /// 32-bit float.
    Fp32,
    /// 16-bit brain float.
    Bf16,
    /// 16-bit float.
    Fp16,
    /// FP8 with one scale per 128×128 block (DeepSeek, GLM FP8, Qwen3 FP8).
    Fp8Block,
    /// FP8 with one scale per output channel.
    Fp8Channel,
    /// FP8 with one scale per tensor.
    Fp8Tensor,
    /// 8-bit integers with one scale per output channel.
    Int8,
    /// AWQ: 4-bit with scale and zero point per group.
    Awq {
        /// Group size, mostly 128.
        group: u16,
    },
    /// GPTQ: as AWQ plus an index per input.
    Gptq {
        /// Group size, mostly 128.
        group: u16,
    },
    /// 4-bit integers of compressed-tensors: scale per group, no zero point.
    Int4 {
        /// Group size, 32 or 128.
        group: u16,
    },
    /// bitsandbytes NF4.
    Nf4 {
        /// Whether the scales are quantised again.
        double: bool,
    },
    /// MXFP4: 4-bit floats, an 8-bit scale per 32. gpt-oss stores only its experts so.
    Mxfp4,
    /// NVFP4: 4-bit floats, an FP8 scale per 16 and a float per tensor.
    Nvfp4,
    /// A GGUF mix named by its common name.
    Gguf(GgufMix),
}

/// The usual GGUF mixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GgufMix {
    /// Q8_0.
    Q8_0,
    /// Q6_K.
    Q6K,
    /// Q5_K_M.
    Q5KM,
    /// Q4_K_M.
    Q4KM,
    /// Q4_0.
    Q4_0,
    /// Q3_K_M.
    Q3KM,
    /// Q2_K.
    Q2K,
}

/// How the key-value cache is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KvFormat {
    /// 16-bit brain float (or fp16).
    Bf16,
    /// 8-bit float.
    Fp8,
    /// llama.cpp q8_0: 34 bytes per 32.
    Q8_0,
    /// llama.cpp q4_0: 18 bytes per 32.
    Q4_0,
}

/// Why a text names no format, and what to type instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no {what} is called `{input}`")]
pub struct FormatError {
    /// `weight format` or `KV format`.
    pub what: &'static str,
    /// The text, cut to 60 characters.
    pub input: String,
    /// The nearest name, or the list of all.
    pub hint: String,
}

impl FormatError {
    fn new(what: &'static str, input: &str, names: &[&str]) -> Self {
        let input: String = input.chars().take(60).collect();
        let near: Vec<_> = crate::near::nearest(&input, names.iter().copied(), 2);
        let list = |n: &[&str]| n.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        let hint = if near.is_empty() {
            format!("use one of {}", list(names))
        } else {
            format!("did you mean {}?", list(&near).replace(", ", " or "))
        };
        Self { what, input, hint }
    }

    /// What to type instead.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

const WEIGHT_NAMES: &[&str] = &[
    "bf16",
    "fp16",
    "fp32",
    "fp8",
    "fp8-channel",
    "fp8-tensor",
    "int8",
    "awq",
    "gptq",
    "int4",
    "nf4",
    "nf4-dq",
    "mxfp4",
    "nvfp4",
    "q8_0",
    "q6_k",
    "q5_k_m",
    "q4_k_m",
    "q4_0",
    "q3_k_m",
    "q2_k",
];

impl FromStr for WeightFormat {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        let folded = text.trim().to_ascii_lowercase().replace('_', "-");
        Ok(match folded.as_str() {
            "fp32" | "f32" | "float32" => Self::Fp32,
            "bf16" | "bfloat16" => Self::Bf16,
            "fp16" | "f16" | "float16" | "half" => Self::Fp16,
            "fp8" | "fp8-block" | "fp8-e4m3" => Self::Fp8Block,
            "fp8-channel" | "fp8-dynamic" => Self::Fp8Channel,
            "fp8-tensor" | "fp8-static" => Self::Fp8Tensor,
            "int8" | "w8a8" | "w8a16" => Self::Int8,
            "awq" | "awq-int4" => Self::Awq { group: 128 },
            "gptq" | "gptq-int4" => Self::Gptq { group: 128 },
            "int4" | "w4a16" => Self::Int4 { group: 128 },
            "int4-32" => Self::Int4 { group: 32 },
            "nf4" | "bnb-4bit" | "bnb" => Self::Nf4 { double: false },
            "nf4-dq" => Self::Nf4 { double: true },
            "mxfp4" => Self::Mxfp4,
            "nvfp4" | "fp4" => Self::Nvfp4,
            "q8-0" => Self::Gguf(GgufMix::Q8_0),
            "q6-k" => Self::Gguf(GgufMix::Q6K),
            "q5-k-m" => Self::Gguf(GgufMix::Q5KM),
            "q4-k-m" => Self::Gguf(GgufMix::Q4KM),
            "q4-0" => Self::Gguf(GgufMix::Q4_0),
            "q3-k-m" => Self::Gguf(GgufMix::Q3KM),
            "q2-k" => Self::Gguf(GgufMix::Q2K),
            other => {
                let grouped = other.rsplit_once('-').and_then(|(head, g)| {
                    let group: u16 = g.strip_prefix('g').unwrap_or(g).parse().ok()?;
                    (matches!(group, 16 | 32 | 64 | 128 | 256)).then_some((head, group))
                });
                match grouped {
                    Some(("awq", group)) => Self::Awq { group },
                    Some(("gptq", group)) => Self::Gptq { group },
                    Some(("int4", group)) => Self::Int4 { group },
                    _ => return Err(FormatError::new("weight format", text.trim(), WEIGHT_NAMES)),
                }
            }
        })
    }
}

impl fmt::Display for WeightFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl WeightFormat {
    /// The short name that flags and JSON use; group sizes are not part of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fp32 => "fp32",
            Self::Bf16 => "bf16",
            Self::Fp16 => "fp16",
            Self::Fp8Block => "fp8",
            Self::Fp8Channel => "fp8-channel",
            Self::Fp8Tensor => "fp8-tensor",
            Self::Int8 => "int8",
            Self::Awq { .. } => "awq",
            Self::Gptq { .. } => "gptq",
            Self::Int4 { .. } => "int4",
            Self::Nf4 { double: false } => "nf4",
            Self::Nf4 { double: true } => "nf4-dq",
            Self::Mxfp4 => "mxfp4",
            Self::Nvfp4 => "nvfp4",
            Self::Gguf(mix) => mix.name(),
        }
    }

    /// Every name that parses to a distinct format, for completions and lists.
    pub fn names() -> &'static [&'static str] {
        WEIGHT_NAMES
    }

    /// How wide a quantised weight is, in words: `16-bit`, `8-bit`, `4-bit`.
    pub fn bits_label(self) -> &'static str {
        match self.weight_bits() {
            32 => "32-bit",
            16 => "16-bit",
            8 => "8-bit",
            6 => "6-bit",
            5 => "5-bit",
            4 => "4-bit",
            3 => "3-bit",
            _ => "2-bit",
        }
    }

    /// Bits of one quantised weight without its scales.
    pub fn weight_bits(self) -> u8 {
        match self {
            Self::Fp32 => 32,
            Self::Bf16 | Self::Fp16 => 16,
            Self::Fp8Block | Self::Fp8Channel | Self::Fp8Tensor | Self::Int8 | Self::Gguf(GgufMix::Q8_0) => 8,
            Self::Gguf(GgufMix::Q6K) => 6,
            Self::Gguf(GgufMix::Q5KM) => 5,
            Self::Gguf(GgufMix::Q3KM) => 3,
            Self::Gguf(GgufMix::Q2K) => 2,
            _ => 4,
        }
    }

    /// Whether a quantised weight takes four bits (scales aside).
    pub fn is_four_bit(self) -> bool {
        self.weight_bits() == 4
    }

    /// Whether weights are plain floats, with no scales and no exceptions.
    pub fn is_plain_float(self) -> bool {
        matches!(self, Self::Fp32 | Self::Bf16 | Self::Fp16)
    }

    /// Bits of the operands that the matrix product multiplies: weight-only formats compute in 16 bit, FP8 and INT8
    /// in 8, NVFP4 in 4. MXFP4 as gpt-oss uses it has 16-bit activations.
    pub fn compute_bits(self) -> u8 {
        match self {
            Self::Fp32 => 32,
            Self::Fp8Block | Self::Fp8Channel | Self::Fp8Tensor | Self::Int8 => 8,
            Self::Nvfp4 => 4,
            _ => 16,
        }
    }

    /// Bytes of an operand that the matrix product multiplies, at least 1: see [`Self::compute_bits`].
    pub fn compute_bytes(self) -> u8 {
        (self.compute_bits() / 8).max(1)
    }

    /// Whether this format quantises a matrix of that role at all.
    pub fn quantises(self, role: Role, unquantised: &[Role]) -> bool {
        if self.is_plain_float() || unquantised.contains(&role) {
            return false;
        }
        match role {
            Role::Attention | Role::Indexer | Role::Mixer | Role::Mlp | Role::Expert | Role::SharedExpert => true,
            Role::Embedding | Role::Head => matches!(self, Self::Gguf(_)),
            Role::Router | Role::Tower | Role::Other => false,
        }
    }

    /// Bytes of one element that this format leaves unquantised, in a checkpoint of `dtype_bytes` per element.
    pub fn plain_element_bytes(self, dtype_bytes: u8) -> u64 {
        match self {
            Self::Fp32 => 4,
            _ => u64::from(dtype_bytes.clamp(1, 2)),
        }
    }

    /// Bytes of a matrix (all its copies, biases included) in this format, with scales, zero points and padding.
    ///
    /// `unquantised` names roles that stay in 16 bit beyond what the format always leaves there; `dtype_bytes` is the
    /// width of unquantised elements. The matrix may be a rank's cut of a larger one: scales are counted for the cut.
    /// (GGUF falls back to a wider type where a row is no multiple of 256, so cut those along whole super-blocks.)
    ///
    /// Sources: the storage layouts of DeepSeek-V3's FP8 checkpoint, AutoAWQ, AutoGPTQ, bitsandbytes, OCP MX 1.0,
    /// ModelOpt's NVFP4 and ggml's block types.
    pub fn matrix_bytes(&self, m: &Matrix, unquantised: &[Role], dtype_bytes: u8) -> Bytes {
        let plain = self.plain_element_bytes(dtype_bytes);
        let bias = m.bias_elements().saturating_mul(plain);
        if !self.quantises(m.role, unquantised) {
            // llama.cpp keeps routers in 32 bit
            let width = if matches!(self, Self::Gguf(_)) && m.role == Role::Router { 4 } else { plain };
            return Bytes(m.elements().saturating_mul(width).saturating_add(bias));
        }
        let one = self.quantised_bytes(m.role, m.name, m.output, m.input);
        Bytes(one.saturating_mul(m.copies).saturating_add(bias))
    }

    /// One quantised matrix of `o` rows and `i` columns.
    fn quantised_bytes(self, role: Role, name: &str, o: u64, i: u64) -> u64 {
        let elements = o.saturating_mul(i);
        if i == 1 {
            // a bare number of weights without a shape: no row to lay scales along, groups run through it
            return match self {
                Self::Fp8Block | Self::Fp8Channel | Self::Fp8Tensor | Self::Int8 => o,
                Self::Gptq { group } => Self::Awq { group }.quantised_bytes(role, name, 1, o),
                _ if o == 1 => 2,
                _ => self.quantised_bytes(role, name, 1, o),
            };
        }
        let grouped = |group: u16| i.div_ceil(u64::from(group.max(1))).saturating_mul(o);
        // 4-bit integers are packed eight to a 32-bit word
        let packed = |n: u64| n.div_ceil(8).saturating_mul(4);
        match self {
            Self::Fp32 => elements.saturating_mul(4),
            Self::Bf16 | Self::Fp16 => elements.saturating_mul(2),
            Self::Fp8Block => {
                elements.saturating_add(o.div_ceil(128).saturating_mul(i.div_ceil(128)).saturating_mul(4))
            }
            Self::Fp8Channel | Self::Int8 => elements.saturating_add(o.saturating_mul(4)),
            // one scale of the weight, one of its input
            Self::Fp8Tensor => elements.saturating_add(8),
            Self::Awq { group } => {
                packed(elements).saturating_add(grouped(group).saturating_mul(2)).saturating_add(packed(grouped(group)))
            }
            Self::Gptq { group } => packed(elements)
                .saturating_add(grouped(group).saturating_mul(2))
                .saturating_add(packed(grouped(group)))
                .saturating_add(i.saturating_mul(4)),
            Self::Int4 { group } => packed(elements).saturating_add(grouped(group).saturating_mul(2)),
            Self::Nf4 { double: false } => elements.div_ceil(2).saturating_add(elements.div_ceil(64).saturating_mul(4)),
            Self::Nf4 { double: true } => {
                let blocks = elements.div_ceil(64);
                elements.div_ceil(2).saturating_add(blocks).saturating_add(blocks.div_ceil(256).saturating_mul(4))
            }
            Self::Mxfp4 => i.div_ceil(32).saturating_mul(17).saturating_mul(o),
            // per 16 weights 8 bytes and an FP8 scale; per tensor a float scale of the weight and one of its input
            Self::Nvfp4 => i.div_ceil(16).saturating_mul(9).saturating_mul(o).saturating_add(8),
            Self::Gguf(mix) => mix.bytes(role, name, o, i),
        }
    }
}

/// ggml block types that the mixes use: weights and bytes of a block.
#[derive(Clone, Copy)]
enum Block {
    Q8_0,
    Q6K,
    Q5K,
    Q4K,
    Q4_0,
    Q3K,
    Q2K,
}

impl Block {
    /// Bytes of `rows` rows of `columns`; k-quants fall back where a row is no multiple of 256, as llama.cpp does.
    fn bytes(self, rows: u64, columns: u64) -> u64 {
        let fits = columns.is_multiple_of(256);
        let (per, bytes) = match self {
            Self::Q8_0 => (32, 34),
            Self::Q6K if fits => (256, 210),
            Self::Q6K => (32, 34),
            Self::Q5K if fits => (256, 176),
            Self::Q5K => (32, 24),
            Self::Q4K if fits => (256, 144),
            Self::Q4K => (32, 22),
            Self::Q3K if fits => (256, 110),
            Self::Q2K if fits => (256, 84),
            Self::Q4_0 | Self::Q3K | Self::Q2K => (32, 18),
        };
        columns.div_ceil(per).saturating_mul(bytes).saturating_mul(rows)
    }
}

impl GgufMix {
    /// The short name in lower case: `q4_k_m`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Q8_0 => "q8_0",
            Self::Q6K => "q6_k",
            Self::Q5KM => "q5_k_m",
            Self::Q4KM => "q4_k_m",
            Self::Q4_0 => "q4_0",
            Self::Q3KM => "q3_k_m",
            Self::Q2K => "q2_k",
        }
    }

    /// Bytes of a matrix by its place in the mix. `_M` mixes raise the value and down projections in half of the
    /// layers; a matrix does not know its layer, so it gets the mean of the two types.
    fn bytes(self, role: Role, name: &str, o: u64, i: u64) -> u64 {
        let raised = matches!(name, "v_proj" | "down_proj" | "kv_b_proj");
        let mean = |a: Block, b: Block| a.bytes(o, i).saturating_add(b.bytes(o, i)) / 2;
        match (self, role) {
            (Self::Q8_0, _) => Block::Q8_0.bytes(o, i),
            (_, Role::Head) | (Self::Q6K, _) => Block::Q6K.bytes(o, i),
            (Self::Q5KM, _) if raised => mean(Block::Q6K, Block::Q5K),
            (Self::Q5KM, _) => Block::Q5K.bytes(o, i),
            (Self::Q4KM, _) if raised => mean(Block::Q6K, Block::Q4K),
            (Self::Q4KM, _) => Block::Q4K.bytes(o, i),
            (Self::Q4_0, _) => Block::Q4_0.bytes(o, i),
            (Self::Q3KM, _) if raised || name == "o_proj" => Block::Q4K.bytes(o, i),
            (Self::Q3KM, _) => Block::Q3K.bytes(o, i),
            (Self::Q2K, _) if raised || name == "o_proj" => Block::Q3K.bytes(o, i),
            (Self::Q2K, _) => Block::Q2K.bytes(o, i),
        }
    }
}

const KV_NAMES: &[&str] = &["bf16", "fp8", "q8_0", "q4_0"];

impl FromStr for KvFormat {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        Ok(match text.trim().to_ascii_lowercase().replace('-', "_").as_str() {
            "bf16" | "fp16" | "f16" | "bfloat16" | "float16" => Self::Bf16,
            "fp8" | "fp8_e4m3" | "fp8_e5m2" => Self::Fp8,
            "q8_0" => Self::Q8_0,
            "q4_0" => Self::Q4_0,
            _ => return Err(FormatError::new("KV format", text.trim(), KV_NAMES)),
        })
    }
}

impl fmt::Display for KvFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl KvFormat {
    /// The short name that flags and JSON use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Fp8 => "fp8",
            Self::Q8_0 => "q8_0",
            Self::Q4_0 => "q4_0",
        }
    }

    /// Every name.
    pub fn names() -> &'static [&'static str] {
        KV_NAMES
    }

    /// Bytes of that many cached elements; llama.cpp's types round up to whole blocks of 32.
    pub fn bytes(self, elements: u64) -> Bytes {
        Bytes(match self {
            Self::Bf16 => elements.saturating_mul(2),
            Self::Fp8 => elements,
            Self::Q8_0 => elements.div_ceil(32).saturating_mul(34),
            Self::Q4_0 => elements.div_ceil(32).saturating_mul(18),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Shard;

    fn matrix(role: Role, output: u64, input: u64, copies: u64) -> Matrix {
        Matrix { name: "x", role, output, input, copies, bias: false, shard: Shard::Replicated }
    }

    fn bytes(format: &str, role: Role, output: u64, input: u64) -> u64 {
        format.parse::<WeightFormat>().unwrap().matrix_bytes(&matrix(role, output, input, 1), &[], 2).0
    }

    #[test]
    fn bytes_of_a_matrix_by_format() {
        let mlp = |f| bytes(f, Role::Mlp, 4096, 1024);
        let n = 4096 * 1024;
        assert_eq!(mlp("bf16"), 2 * n);
        assert_eq!(mlp("fp32"), 4 * n);
        assert_eq!(mlp("fp8"), n + 4 * 32 * 8);
        assert_eq!(mlp("fp8-channel"), n + 4 * 4096);
        assert_eq!(mlp("fp8-tensor"), n + 8);
        assert_eq!(mlp("awq"), n / 2 + 2 * n / 128 + n / 256);
        assert_eq!(mlp("gptq"), n / 2 + 2 * n / 128 + n / 256 + 4 * 1024);
        assert_eq!(mlp("int4"), n / 2 + 2 * n / 128);
        assert_eq!(mlp("nf4"), n / 2 + n / 16);
        assert_eq!(mlp("nf4-dq"), n / 2 + n / 64 + 4 * n / (64 * 256));
        assert_eq!(mlp("mxfp4"), 17 * n / 32);
        assert_eq!(mlp("nvfp4"), 9 * n / 16 + 8);
        assert_eq!(mlp("q4_k_m"), 144 * n / 256);
        assert_eq!(mlp("q8_0"), 34 * n / 32);
    }

    #[test]
    fn block_scales_round_up() {
        // DeepSeek-V3's kv_a projection has 576 rows: five blocks of 128
        assert_eq!(bytes("fp8", Role::Attention, 576, 7168), 576 * 7168 + 4 * 5 * 56);
    }

    #[test]
    fn what_no_format_quantises_stays_16_bit() {
        for role in [Role::Embedding, Role::Head, Role::Router, Role::Tower, Role::Other] {
            assert_eq!(bytes("fp8", role, 128, 128), 2 * 128 * 128, "{role:?}");
        }
        assert_eq!(bytes("q4_k_m", Role::Head, 256, 256), 210 * 256);
        let m = matrix(Role::Attention, 64, 64, 1);
        assert_eq!(WeightFormat::Mxfp4.matrix_bytes(&m, &[Role::Attention], 2), Bytes(2 * 64 * 64));
        let biased = Matrix { bias: true, copies: 3, ..matrix(Role::Expert, 64, 64, 1) };
        assert_eq!(WeightFormat::Mxfp4.matrix_bytes(&biased, &[], 2), Bytes(3 * (64 * 34 + 2 * 64)));
    }

    #[test]
    fn names_parse_back_and_misses_suggest() {
        for name in WEIGHT_NAMES {
            assert_eq!(name.parse::<WeightFormat>().unwrap().name(), *name);
        }
        for name in KV_NAMES {
            assert_eq!(name.parse::<KvFormat>().unwrap().name(), *name);
        }
        let error = "q4_k_n".parse::<WeightFormat>().unwrap_err();
        assert_eq!(error.to_string(), "no weight format is called `q4_k_n`");
        assert!(error.hint().contains("`q4_k_m`"), "{}", error.hint());
        assert_eq!("awq-64".parse(), Ok(WeightFormat::Awq { group: 64 }));
        assert!("int9".parse::<KvFormat>().unwrap_err().hint().contains("`bf16`"));
    }

    #[test]
    fn cache_elements() {
        assert_eq!(KvFormat::Bf16.bytes(576), Bytes(1152));
        assert_eq!(KvFormat::Q8_0.bytes(64), Bytes(68));
        assert_eq!(KvFormat::Q4_0.bytes(33), Bytes(36));
    }
}
