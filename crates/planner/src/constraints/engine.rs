//! Does the engine run on this GPU at all?

use hardware::{Gpu, Vendor};
use perf::Engine;

use crate::rejection::Rejection;

/// Oldest NVIDIA compute capability that the datacenter engines are built for: 7.0 (Volta) for vLLM, 7.5 for SGLang,
/// 8.0 for TensorRT-LLM. Sources: the engines' installation pages. llama.cpp runs on anything.
fn least_capability(engine: Engine) -> f64 {
    match engine {
        Engine::Vllm => 7.0,
        Engine::Sglang => 7.5,
        Engine::TrtLlm => 8.0,
        Engine::LlamaCpp => 0.0,
    }
}

/// AMD instruction sets that vLLM and SGLang are built for.
const AMD_TARGETS: [&str; 3] = ["gfx90a", "gfx942", "gfx950"];

/// Rejects GPUs that the engine is not built for.
pub fn engine_runs(engine: Engine, gpu: &Gpu) -> Result<(), Rejection> {
    if engine == Engine::LlamaCpp {
        return Ok(());
    }
    let capability = gpu.compute_capability.as_deref().unwrap_or("");
    let no = |why: String| Err(Rejection::EngineUnsupported { why });
    let name = engine.name();
    match gpu.vendor {
        Vendor::Nvidia => {
            let least = least_capability(engine);
            match capability.parse::<f64>() {
                Ok(have) if have < least => {
                    no(format!("{name} needs compute capability {least:.1}, {} has {capability}", gpu.short_id()))
                }
                _ => Ok(()),
            }
        }
        Vendor::Amd if engine == Engine::TrtLlm => no("trtllm runs on NVIDIA GPUs only".into()),
        Vendor::Amd => {
            let announced = gpu.preliminary && capability.is_empty();
            if announced || AMD_TARGETS.iter().any(|t| capability.starts_with(t)) {
                Ok(())
            } else {
                no(format!("{name} is built for {}, {} is {capability}", AMD_TARGETS.join(", "), gpu.short_id()))
            }
        }
        Vendor::Intel if engine == Engine::Vllm && gpu.id.contains("gaudi") => Ok(()),
        Vendor::Intel | Vendor::Apple => no(format!("{name} does not run on {}", gpu.short_id())),
    }
}
