//! Formats of weights and of the cache.

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
