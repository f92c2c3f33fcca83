//! The engines that serve, as numbers: what their memory fraction means, what they allocate, what a step costs them.

use std::fmt;
use std::str::FromStr;

use model::{KvFormat, WeightFormat};
use units::{Basis, Bytes, Seconds};

use crate::table::{Row, Rows};

/// A serving engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Engine {
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// TensorRT-LLM.
    TrtLlm,
    /// llama.cpp.
    LlamaCpp,
}

impl Engine {
    /// Every engine.
    pub const ALL: [Self; 4] = [Self::Vllm, Self::Sglang, Self::TrtLlm, Self::LlamaCpp];

    /// The name in output, flags and data files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::TrtLlm => "trtllm",
            Self::LlamaCpp => "llama.cpp",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown engine `{input}`")]
pub struct EngineError {
    /// The text, cut to 60 characters.
    pub input: String,
}

impl EngineError {
    /// What to type instead.
    pub fn hint(&self) -> String {
        "type one of `vllm`, `sglang`, `trtllm`, `llama.cpp`".into()
    }
}

impl FromStr for Engine {
    type Err = EngineError;
    fn from_str(text: &str) -> Result<Self, EngineError> {
        let plain: String =
            text.chars().filter(|c| c.is_ascii_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect();
        match plain.as_str() {
            "vllm" => Ok(Self::Vllm),
            "sglang" => Ok(Self::Sglang),
            "trtllm" | "tensorrtllm" => Ok(Self::TrtLlm),
            "llamacpp" => Ok(Self::LlamaCpp),
            _ => Err(EngineError { input: text.chars().take(60).collect() }),
        }
    }
}

/// The formats of weights and cache that a plan uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Formats {
    /// Weights.
    pub weights: WeightFormat,
    /// Key-value cache.
    pub kv: KvFormat,
}

/// What an engine's memory fraction is a fraction of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FractionOf {
    /// All memory of the GPU, for the whole process (vLLM `--gpu-memory-utilization`).
    Total,
    /// What was free before loading, for weights and cache; activations and graphs live in the rest
    /// (SGLang `--mem-fraction-static`).
    FreeBeforeLoad,
    /// What is free after weights and activations, for the cache (TensorRT-LLM).
    FreeAfterLoad,
    /// There is no fraction: the engine allocates what it is asked to (llama.cpp).
    Nothing,
}

/// How long an engine keeps the cache of a windowed layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowPolicy {
    /// The window and a few tokens more.
    Capped {
        /// Tokens beyond the window.
        slack: u64,
    },
    /// As long as the context.
    Full,
}

/// One engine as numbers; every one is a row of `data/engines.csv` with its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineProfile {
    /// Which engine.
    pub engine: Engine,
    /// What the memory fraction is a fraction of.
    pub fraction_of: FractionOf,
    /// Default memory fraction.
    pub fraction: f64,
    /// Device memory taken by the driver context before anything else, one rank.
    pub context: Bytes,
    /// The same with more than one rank.
    pub context_parallel: Bytes,
    /// Memory outside the framework's allocator (collectives, workspaces), one rank.
    pub non_torch: Bytes,
    /// The same under tensor parallelism.
    pub non_torch_parallel: Bytes,
    /// The same over PCIe, without a switched NVLink domain.
    pub non_torch_cards: Bytes,
    /// Driver context of more than one rank over PCIe.
    pub context_cards: Bytes,
    /// Captured graphs.
    pub graphs: Bytes,
    /// Device memory from which the defaults above hold.
    pub large_device: Bytes,
    /// Device memory up to which the smaller defaults below hold.
    pub small_device: Bytes,
    /// `logit_slots` and the limit of sequences on small devices.
    pub small_logit_slots: f64,
    /// `chunk_tokens` on small devices.
    pub small_chunk_tokens: u64,
    /// `graphs` on small devices.
    pub small_graphs: Bytes,
    /// Whether graphs come out of the fraction (true) or out of what it leaves.
    pub graphs_in_budget: bool,
    /// Copies of float32 logits that the warm-up of the sampler holds, per sequence slot.
    pub logit_copies: f64,
    /// Sequence slots that the sampler warms up with.
    pub logit_slots: f64,
    /// Tokens that one step may process.
    pub chunk_tokens: u64,
    /// Sequences that one rank runs at once.
    pub max_sequences: u64,
    /// Tokens per cache block.
    pub block_tokens: u64,
    /// Cache of windowed layers.
    pub window: WindowPolicy,
    /// Host time per step that nothing hides.
    pub step: Seconds,
    /// Small kernels of one dense layer (norms, rotary, launches).
    pub layer: Seconds,
    /// Host time per running sequence and step.
    pub sequence: Seconds,
    /// Share of a prompt's prefill that delays the decoding of others: 1 where chunks are mixed into steps.
    pub interference: f64,
    /// Whether small all-reduces over NVLink run in a kernel of the engine's own.
    pub fused_all_reduce: bool,
    /// Fixed time per request before it is scheduled.
    pub admission: Seconds,
    /// The weakest basis of the step costs.
    pub basis: Basis,
}

impl EngineProfile {
    /// The defaults that the engine takes on a device of this memory. Engines jump between two sets; here they are
    /// blended over a range without devices, so that more memory never holds less.
    pub fn on_device(&self, memory: Bytes) -> Self {
        if memory >= self.large_device {
            return self.clone();
        }
        let range = self.large_device.saturating_sub(self.small_device).as_f64().max(1.0);
        let share = memory.saturating_sub(self.small_device).as_f64() / range;
        let blend = |small: f64, large: f64| small + (large - small) * share;
        let slots = self.small_logit_slots;
        let most = self.max_sequences as f64;
        Self {
            graphs: Bytes::floor(blend(self.small_graphs.as_f64(), self.graphs.as_f64())),
            logit_slots: blend(slots, self.logit_slots),
            chunk_tokens: (blend(self.small_chunk_tokens as f64, self.chunk_tokens as f64) as u64).max(1),
            max_sequences: (blend(most.min(slots), most) as u64).max(1),
            ..self.clone()
        }
    }

    /// Reads the rows of one engine; `None` where a key is missing.
    pub(crate) fn read(engine: Engine, rows: &Rows) -> Option<Self> {
        let find = |key: &str| -> Option<&Row> {
            rows.iter().find(|r| r.text("engine") == engine.name() && r.text("key") == key)
        };
        let number = |key: &str| find(key)?.number("value");
        let gib = |key: &str| Some(Bytes::from_gib(number(key)?));
        let count = |key: &str| Some(number(key)? as u64);
        let us = |key: &str| Some(Seconds::from_us(number(key)?));
        let fraction_of = match find("fraction_of")?.text("value") {
            "total" => FractionOf::Total,
            "free_before_load" => FractionOf::FreeBeforeLoad,
            "free_after_load" => FractionOf::FreeAfterLoad,
            "nothing" => FractionOf::Nothing,
            _ => return None,
        };
        let window = match find("window_slack_tokens")?.text("value") {
            "full" => WindowPolicy::Full,
            _ => WindowPolicy::Capped { slack: count("window_slack_tokens")? },
        };
        let basis = ["step_us", "layer_us", "sequence_us"]
            .into_iter()
            .filter_map(|key| find(key).map(|row| row.basis()))
            .fold(Basis::Measured, Basis::weakest);
        Some(Self {
            engine,
            fraction_of,
            fraction: number("fraction")?,
            context: gib("context_gib")?,
            context_parallel: gib("context_parallel_gib")?,
            non_torch: gib("non_torch_gib")?,
            non_torch_parallel: gib("non_torch_parallel_gib")?,
            non_torch_cards: gib("non_torch_cards_gib")?,
            context_cards: gib("context_cards_gib")?,
            graphs: gib("graphs_gib")?,
            large_device: gib("large_device_gib")?,
            small_device: gib("small_device_gib")?,
            small_logit_slots: number("small_logit_slots")?,
            small_chunk_tokens: count("small_chunk_tokens")?.max(1),
            small_graphs: gib("small_graphs_gib")?,
            graphs_in_budget: number("graphs_in_budget")? != 0.0,
            logit_copies: number("logit_copies")?,
            logit_slots: number("logit_slots")?,
            chunk_tokens: count("chunk_tokens")?.max(1),
            max_sequences: count("max_sequences")?.max(1),
            block_tokens: count("block_tokens")?.max(1),
            window,
            step: us("step_us")?,
            layer: us("layer_us")?,
            sequence: us("sequence_us")?,
            interference: number("interference")?,
            fused_all_reduce: number("fused_all_reduce")? != 0.0,
            admission: us("admission_us")?,
            basis,
        })
    }
}

impl EngineProfile {
    /// An engine that costs nothing: stands in where a data file lacks its rows.
    pub(crate) fn neutral(engine: Engine) -> Self {
        Self {
            engine,
            fraction_of: FractionOf::Nothing,
            fraction: 1.0,
            context: Bytes::ZERO,
            context_parallel: Bytes::ZERO,
            non_torch: Bytes::ZERO,
            non_torch_parallel: Bytes::ZERO,
            non_torch_cards: Bytes::ZERO,
            context_cards: Bytes::ZERO,
            graphs: Bytes::ZERO,
            large_device: Bytes::ZERO,
            small_device: Bytes::ZERO,
            small_logit_slots: 1.0,
            small_chunk_tokens: 2048,
            small_graphs: Bytes::ZERO,
            graphs_in_budget: true,
            logit_copies: 1.0,
            logit_slots: 1.0,
            chunk_tokens: 2048,
            max_sequences: 256,
            block_tokens: 1,
            window: WindowPolicy::Full,
            step: Seconds::ZERO,
            layer: Seconds::ZERO,
            sequence: Seconds::ZERO,
            interference: 1.0,
            fused_all_reduce: false,
            admission: Seconds::ZERO,
            basis: Basis::Assumed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curves::Curves;

    #[test]
    fn names_come_back() {
        for engine in Engine::ALL {
            assert_eq!(engine.name().parse(), Ok(engine));
        }
        assert_eq!("TensorRT-LLM".parse(), Ok(Engine::TrtLlm));
        let e = "tgi".parse::<Engine>().unwrap_err();
        assert_eq!(
            format!("{e} | {}", e.hint()),
            "unknown engine `tgi` | type one of `vllm`, `sglang`, `trtllm`, `llama.cpp`"
        );
    }

    #[test]
    fn small_devices_get_smaller_defaults() {
        let vllm = Curves::embedded().engine(Engine::Vllm);
        let on = |gib| vllm.on_device(Bytes::from_gib(gib));
        assert_eq!((on(79.2).chunk_tokens, on(79.2).max_sequences), (8192, 1024));
        assert_eq!((on(23.5).chunk_tokens, on(23.5).max_sequences), (2048, 256));
    }
}
