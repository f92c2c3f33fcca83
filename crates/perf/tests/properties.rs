//! What must hold for every model, layout and load.
#![allow(clippy::unwrap_used, reason = "a failed set-up fails the test")]

mod common;

use std::sync::LazyLock;

use common::{node, spec};
use hardware::NodeShape;
use model::{KvFormat, ModelSpec};
use perf::{
    Arrival, Batch, Capacity, Chunk, Curves, Engine, Formats, Layout, MemoryLoad, ServingLoad, StepModel, memory,
    serving,
};
use proptest::prelude::*;
use units::{Bytes, Seconds, Term, Value};

static MODELS: LazyLock<Vec<ModelSpec>> = LazyLock::new(|| {
    ["meta-llama/Llama-3.1-8B-Instruct", "deepseek-ai/DeepSeek-V3", "openai/gpt-oss-120b", "google/gemma-2-27b-it"]
        .into_iter()
        .map(spec)
        .collect()
});
static NODES: LazyLock<Vec<NodeShape>> =
    LazyLock::new(|| ["8xh100-sxm", "8xrtx-4090", "8xmi300x", "8xb200-sxm"].into_iter().map(node).collect());

fn step(model: usize, node: usize, layout: Layout, engine: Engine) -> Option<StepModel> {
    let spec = &MODELS[model];
    let formats = Formats { weights: spec.weights, kv: KvFormat::Bf16 };
    StepModel::compile(spec, &layout, &NODES[node], 1, engine, &formats, Curves::embedded()).ok()
}

fn layouts() -> impl Strategy<Value = Layout> {
    prop_oneof![
        (0u32..4).prop_map(|p| Layout::tensor(1 << p)),
        (0u32..3).prop_map(|p| Layout { pp: 2, ..Layout::tensor(1 << p) }),
        (0u32..4).prop_map(|p| Layout { tp: 1, pp: 1, dp: 1 << p, ep: 1 << p }),
        (0u32..3).prop_map(|p| Layout { tp: 1 << p, pp: 1, dp: 2, ep: 2 }),
    ]
}

fn time_of(term: &Term) -> f64 {
    match term.value {
        Value::Time(Seconds(s)) => s,
        _ => f64::NAN,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_step_is_the_sum_of_its_parts_and_grows(
        model in 0usize..4, node in 0usize..4, layout in layouts(), engine in 0usize..4,
        decodes in 1.0f64..600.0, more in 0.0f64..64.0, context in 1.0f64..60_000.0, q in 1.0f64..9000.0,
    ) {
        let Some(step) = step(model, node, layout, Engine::ALL[engine]) else { return Ok(()) };
        let chunks = [Chunk { q, kv: context }, Chunk { q: 0.5 * q, kv: 0.0 }];
        for prefill in [&chunks[..0], &chunks[..]] {
            let batch = Batch { prefill, decodes, decode_kv_total: decodes * context };
            let total = step.time(&batch).0;
            prop_assert!(total.is_finite() && total > 0.0);
            let term = step.explain(&batch);
            let parts: Vec<f64> = term.parts.iter().map(time_of).collect();
            prop_assert!((parts.iter().sum::<f64>() / total - 1.0).abs() < 1e-9);
            prop_assert!(parts.iter().all(|p| *p >= 0.0 && *p <= total));
            let larger = Batch { decodes: decodes + more, decode_kv_total: (decodes + more) * context, ..batch };
            prop_assert!(step.time(&larger).0 >= total * (1.0 - 1e-9));
        }
    }

    #[test]
    fn one_rank_exchanges_nothing(model in 0usize..4, node in 0usize..4, decodes in 1.0f64..300.0) {
        let Some(step) = step(model, node, Layout::tensor(1), Engine::Vllm) else { return Ok(()) };
        let term = step.explain(&Batch::decode(decodes, 1000.0));
        let names = ["collectives", "expert_exchange", "pipeline_transfers"];
        prop_assert!(term.parts.iter().all(|t| !names.contains(&t.name.as_str())));
    }

    #[test]
    fn more_memory_never_fits_less_and_more_context_never_frees(
        model in 0usize..4, engine in 0usize..4, layout in layouts(),
        gib in prop_oneof![8u64..300, 40u64..75], more in 0u64..64, tokens in 0u64..100_000, longer in 0u64..100_000, sequences in 0u64..600,
    ) {
        let spec = &MODELS[model];
        let formats = Formats { weights: spec.weights, kv: KvFormat::Bf16 };
        let with = |gib: u64, tokens: u64| {
            let mut shape = NODES[0].clone();
            shape.gpu.memory.cuda_total.value = Bytes(gib << 30);
            let load = MemoryLoad { sequences, tokens, ..MemoryLoad::default() };
            memory(spec, &layout, &shape, Engine::ALL[engine], &formats, &load, Capacity::CudaTotal)
        };
        let (small, large) = (with(gib, tokens), with(gib + more, tokens));
        prop_assert!(!small.fits || large.fits);
        prop_assert!(large.kv_tokens_max >= small.kv_tokens_max);
        prop_assert!(large.sequences_max >= small.sequences_max);
        let long = with(gib, tokens + longer);
        prop_assert!(long.kv >= small.kv);
        prop_assert!(long.free <= small.free);
        prop_assert!(long.sequences_max <= small.sequences_max);
        for p in [small, large, long] {
            let sum = p.weights + p.kv + p.activations + p.runtime + p.reserve;
            prop_assert_eq!(p.fits, p.shortfall == Bytes::ZERO);
            prop_assert_eq!(if p.fits { sum + p.free } else { sum.saturating_sub(p.shortfall) }, p.capacity);
        }
    }

    #[test]
    fn a_closed_loop_obeys_littles_law(
        model in 0usize..4, node in 0usize..4, layout in layouts(), concurrency in 1.0f64..3000.0,
        input in 1.0f64..50_000.0, output in 0.0f64..5000.0, share in 0.0f64..1.0, pool in 0u64..2_000_000,
    ) {
        let Some(step) = step(model, node, layout, Engine::Vllm) else { return Ok(()) };
        let load = ServingLoad { input, output, prefix_share: share, arrival: Arrival::Concurrency(concurrency) };
        let e = serving(&step, pool, &load);
        for v in [e.ttft.0, e.tpot.0, e.requests_per_s, e.output_tokens_per_s, e.utilisation] {
            prop_assert!(v.is_finite() && v >= 0.0, "{:?}", e);
        }
        prop_assert!(e.admitted <= e.in_flight + 1e-9);
        if output > 1.0 {
            let life = e.ttft.0 + (output - 1.0) * e.tpot.0;
            prop_assert!((e.requests_per_s * life / e.in_flight - 1.0).abs() < 1e-6, "{:?}", e);
            prop_assert!(e.tpot.0 >= e.decode_step.0 * (1.0 - 1e-9));
        }
    }

    #[test]
    fn a_rate_is_met_or_saturates(
        model in 0usize..4, rate in 0.0f64..500.0, input in 1.0f64..8000.0, output in 0.0f64..2000.0,
    ) {
        let Some(step) = step(model, 0, Layout::tensor(8), Engine::Sglang) else { return Ok(()) };
        let load = ServingLoad { input, output, prefix_share: 0.0, arrival: Arrival::Rate(rate) };
        let e = serving(&step, 1_000_000, &load);
        prop_assert!(e.ttft.0.is_finite() && e.tpot.0.is_finite());
        prop_assert_eq!(e.saturated, e.utilisation > 1.0, "{:?}", e);
        if !e.saturated {
            prop_assert!((e.requests_per_s - rate).abs() < 1e-9);
        }
    }
}
