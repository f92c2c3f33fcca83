//! The reverse question: what runs on this hardware.

use hardware::NodeShape;
use model::{ModelSpec, WeightFormat};
use perf::{
    Arrival, Capacity, Curves, Engine, Formats, Layout, MemoryLoad, ServingEstimate, ServingLoad, StepModel, memory,
    serving,
};

use crate::fit::FitRequest;
use crate::workload::Traffic;

/// How a model runs on the hardware in the best format that fits.
#[derive(Clone, Debug)]
pub struct Run {
    /// Weight format.
    pub formats: Formats,
    /// Whether it is the checkpoint's own.
    pub own_format: bool,
    /// Layout over all GPUs.
    pub layout: Layout,
    /// Longest sequence that fits, at most what the model claims.
    pub context: u64,
    /// Whether the hardware, not the model, limits the context.
    pub context_limited_by_memory: bool,
    /// Sequences of the asked shape that fit at once.
    pub sequences: u64,
    /// One request alone.
    pub single: Option<ServingEstimate>,
    /// All the sequences that fit, at most 256, at once.
    pub full: Option<ServingEstimate>,
}

/// Formats from best to smallest that are tried where the user names none.
pub fn formats_to_try(spec: &ModelSpec, engine: Engine) -> Vec<WeightFormat> {
    let mut formats = vec![spec.weights];
    let smaller: &[WeightFormat] = match engine {
        Engine::LlamaCpp => &[
            WeightFormat::Gguf(model::GgufMix::Q8_0),
            WeightFormat::Gguf(model::GgufMix::Q6K),
            WeightFormat::Gguf(model::GgufMix::Q5KM),
            WeightFormat::Gguf(model::GgufMix::Q4KM),
        ],
        _ => &[WeightFormat::Fp8Block, WeightFormat::Awq { group: 128 }],
    };
    formats.extend(smaller.iter().copied().filter(|f| f.weight_bits() < spec.weights.weight_bits()));
    formats
}

/// The best way this model runs on `nodes` nodes, or `None` where no format fits one sequence of the asked shape.
pub fn runs(
    spec: &ModelSpec,
    node: &NodeShape,
    nodes: u32,
    engine: Engine,
    formats: &[WeightFormat],
    traffic: &Traffic,
    curves: &'static Curves,
) -> Option<Run> {
    let tokens = traffic.context;
    for &weights in formats {
        let request = FitRequest {
            weights: Some(weights),
            kv: model::KvFormat::Bf16,
            engine,
            capacity: Capacity::CudaTotal,
            weights_only: false,
            sequences: 1,
            tokens,
            tp: None,
            pp: None,
            dp: None,
            ep: None,
        };
        let Ok(layout) = request.layout(spec, node, nodes) else { continue };
        let formats = Formats { weights, kv: model::KvFormat::Bf16 };
        let load = MemoryLoad { sequences: 1, tokens, ..MemoryLoad::default() };
        let plan = memory(spec, &layout, node, engine, &formats, &load, Capacity::CudaTotal);
        if !plan.fits {
            continue;
        }
        let claimed = if spec.max_context > 0 { spec.max_context } else { u64::MAX };
        let fits = longest(spec, &plan, claimed);
        let step = StepModel::compile(spec, &layout, node, nodes, engine, &formats, curves).ok();
        let run = |n: f64| {
            let load = ServingLoad {
                input: traffic.input as f64,
                output: traffic.output as f64,
                prefix_share: 0.0,
                arrival: Arrival::Concurrency(n),
            };
            step.as_ref().map(|s| serving(s, plan.kv_tokens_max, &load))
        };
        return Some(Run {
            formats,
            own_format: weights == spec.weights,
            layout,
            context: fits.min(claimed),
            context_limited_by_memory: fits < claimed,
            sequences: plan.sequences_max,
            single: run(1.0),
            full: run(plan.sequences_max.clamp(1, 256) as f64),
        });
    }
    None
}

/// The longest single sequence that the cache holds: `kv_tokens_max` for uniform attention; more where windows cap
/// part of the layers, which `kv_tokens_max` (counted at the asked length) understates.
fn longest(spec: &ModelSpec, plan: &perf::MemoryPlan, claimed: u64) -> u64 {
    let pool = plan.kv_tokens_max as f64 * plan.kv_bytes_per_token;
    let held = |tokens: u64| {
        let whole = spec.kv_bytes(tokens, model::KvFormat::Bf16).as_f64();
        let linear = spec.kv_bytes_per_token(model::KvFormat::Bf16).as_f64() * tokens as f64;
        if linear > 0.0 { plan.kv_bytes_per_token * tokens as f64 * whole / linear } else { 0.0 }
    };
    let most = claimed.min(1 << 30);
    if held(most) <= pool {
        return most;
    }
    let (mut low, mut high) = (0, most);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if held(middle) <= pool {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
