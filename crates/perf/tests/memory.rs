//! Memory per GPU: the plain table, the engines' own start-up logs, the layout rules.
#![allow(clippy::unwrap_used, reason = "a failed set-up fails the test")]

mod common;

use common::{measured, median, node, number, spec, text, try_spec};
use model::{KvFormat, ModelSpec, WeightFormat};
use perf::{Capacity, Engine, Formats, Layout, MemoryLoad, MemoryPlan, memory};
use units::{Bytes, Params};

fn plan(spec: &ModelSpec, on: &str, layout: Layout, weights: WeightFormat, load: &MemoryLoad) -> MemoryPlan {
    let formats = Formats { weights, kv: KvFormat::Bf16 };
    memory(spec, &layout, &node(on), Engine::Vllm, &formats, load, Capacity::CudaTotal)
}

#[test]
fn the_plain_table_of_a_744b_model() {
    let only = MemoryLoad { weights_only: true, ..MemoryLoad::default() };
    let check = |weights, gpus: u32, on: &str, free: Option<f64>| {
        let spec = ModelSpec::bare("744B", Params(744_000_000_000), None, weights);
        let formats = Formats { weights, kv: KvFormat::Bf16 };
        let tp = gpus.min(8);
        let layout = Layout { pp: gpus / tp, ..Layout::tensor(tp) };
        let p = memory(&spec, &layout, &node(on), Engine::Vllm, &formats, &only, Capacity::Nominal);
        assert_eq!(p.activations + p.runtime + p.reserve + p.kv, Bytes::ZERO);
        match free {
            Some(gb) => {
                assert!(p.fits, "{on}: {p:?}");
                let left = p.free.gb() * f64::from(gpus);
                assert!((left - gb).abs() < 0.6, "{on}: {left} GB left, not {gb}");
            }
            None => assert!(!p.fits, "{on}"),
        }
    };
    let fp8 = WeightFormat::Fp8Block;
    check(fp8, 8, "8xh100-sxm", None);
    check(fp8, 16, "8xh100-sxm", Some(536.0));
    check(fp8, 8, "8xh200-sxm", Some(384.0));
    check(fp8, 8, "8xb200-sxm", Some(696.0));
    let bf16 = WeightFormat::Bf16;
    check(bf16, 16, "8xh100-sxm", None);
    check(bf16, 24, "8xh100-sxm", Some(432.0));
    check(bf16, 8, "8xh200-sxm", None);
    check(bf16, 16, "8xh200-sxm", Some(768.0));
}

#[test]
fn known_sizes() {
    let l8 = spec("meta-llama/Llama-3.1-8B-Instruct");
    let l70 = spec("meta-llama/Llama-3.1-70B");
    let load = MemoryLoad::default();
    let one = plan(&l8, "1xh100-sxm", Layout::tensor(1), WeightFormat::Bf16, &load);
    assert_eq!(one.weights, Bytes(16_060_522_496));
    assert_eq!(one.kv_bytes_per_token, 131_072.0);
    assert!(!plan(&l70, "1xh100-sxm", Layout::tensor(1), WeightFormat::Bf16, &load).fits);
    assert!(plan(&l70, "4xh100-sxm", Layout::tensor(4), WeightFormat::Bf16, &load).fits);
    assert!(plan(&l70, "1xa100-sxm-80gb", Layout::tensor(1), WeightFormat::Awq { group: 128 }, &load).fits);
    let l405 = spec("meta-llama/Llama-3.1-405B");
    let refused = plan(&l405, "8xh100-sxm", Layout::tensor(8), WeightFormat::Bf16, &load);
    assert!(!refused.fits && refused.shortfall > Bytes::from_gib(20.0), "{}", refused.shortfall);
}

#[test]
fn key_value_heads_repeat_and_latents_are_whole() {
    let load = MemoryLoad::default();
    // 4 key-value heads over 8 ranks: one each, so the ranks together hold twice the cache
    let qwen = spec("Qwen/Qwen3-235B-A22B");
    let rate = |tp| plan(&qwen, "8xh200-sxm", Layout::tensor(tp), qwen.weights, &load).kv_bytes_per_token;
    assert_eq!(rate(4), 94.0 * 2.0 * 128.0 * 2.0);
    assert_eq!(rate(8), rate(4));
    let v3 = spec("deepseek-ai/DeepSeek-V3");
    let tp8 = plan(&v3, "8xh200-sxm", Layout::tensor(8), v3.weights, &load);
    assert_eq!(tp8.kv_bytes_per_token, 70_272.0);
    let dp8 = plan(&v3, "8xh200-sxm", Layout { tp: 1, pp: 1, dp: 8, ep: 8 }, v3.weights, &load);
    assert_eq!(dp8.kv_bytes_per_token, 70_272.0);
    // attention is repeated on every rank, yet the sequences are spread: the replica holds several times more
    assert!(dp8.weights > tp8.weights);
    assert!(dp8.kv_tokens_max > 5 * tp8.kv_tokens_max, "{} {}", dp8.kv_tokens_max, tp8.kv_tokens_max);
}

#[test]
fn terms_add_up_to_the_capacity() {
    let gpt = spec("openai/gpt-oss-120b");
    for engine in Engine::ALL {
        let formats = Formats { weights: gpt.weights, kv: KvFormat::Bf16 };
        let p = memory(
            &gpt,
            &Layout::tensor(2),
            &node("2xh100-sxm"),
            engine,
            &formats,
            &MemoryLoad::default(),
            Capacity::CudaTotal,
        );
        assert!(p.fits);
        assert_eq!(p.capacity, p.weights + p.kv + p.activations + p.runtime + p.reserve + p.free, "{engine}");
        let parts: Bytes = p
            .term
            .parts
            .iter()
            .map(|t| match t.value {
                units::Value::Bytes(b) => b,
                _ => Bytes::ZERO,
            })
            .sum();
        assert_eq!(parts, p.capacity, "{engine}");
    }
}

/// Pools that vLLM and SGLang printed at start-up, against the plan with the row's own fraction.
#[test]
fn cache_pools_of_start_up_logs() {
    let Some(rows) = measured("engine_memory.csv") else { return };
    let mut errors = Vec::new();
    for row in &rows {
        let engine = match text(row, "engine") {
            "vLLM" => Engine::Vllm,
            "SGLang" => Engine::Sglang,
            _ => continue,
        };
        let gpu = match text(row, "gpu") {
            "H100 80GB" => "h100-sxm",
            "H200" => "h200-sxm",
            "L40S" => "l40s",
            "RTX 3090" => "rtx-3090",
            "RTX PRO 6000 Blackwell" => "rtx-pro-6000-server",
            _ => continue,
        };
        let (Some(pool), Some(fraction)) = (number(row, "available_kv_gib"), number(row, "gpu_memory_fraction")) else {
            continue;
        };
        let (tp, pp) = (number(row, "tp").unwrap_or(1.0) as u32, number(row, "pp").unwrap_or(1.0) as u32);
        // versions before 0.17 and after 0.20 warm up and count graphs otherwise; V0 profiles another way
        if engine == Engine::Vllm && !matches!(text(row, "engine_version"), "0.17.0" | "0.18.0" | "0.19.0") {
            continue;
        }
        let Some(spec) = try_spec(text(row, "model")) else { continue };
        let layout = Layout { pp, ..Layout::tensor(tp) };
        if layout.check(&spec).is_err() {
            continue;
        }
        let format = text(row, "weights_format");
        let weights = match () {
            () if format.starts_with("fp8") => WeightFormat::Fp8Channel,
            () if format.starts_with("int8") || format.contains("w8a8") => WeightFormat::Int8,
            () if format.contains("w4a16") || format.contains("int4") => WeightFormat::Int4 { group: 128 },
            () if format.starts_with("bf16") || format.starts_with("fp16") => WeightFormat::Bf16,
            () if format.starts_with("fp32") => WeightFormat::Fp32,
            () => spec.weights,
        };
        let formats = Formats { weights, kv: KvFormat::Bf16 };
        let load = MemoryLoad {
            sequences: 1,
            tokens: 2048,
            fraction: Some(fraction),
            chunk_tokens: number(row, "max_num_batched_tokens").map(|t| t as u64),
            ..MemoryLoad::default()
        };
        let shape = node(&format!("{}x{gpu}", layout.gpus()));
        let p = memory(&spec, &layout, &shape, engine, &formats, &load, Capacity::CudaTotal);
        // these versions capture graphs outside the budget
        let predicted = (p.free + p.kv).gib() + if engine == Engine::Vllm { 0.9 } else { 0.0 };
        let error = predicted / pool - 1.0;
        println!(
            "{:14} {:45} {:12} tp{tp} pp{pp} pool {pool:6.2} predicted {predicted:6.2} ({:+.1} %) weights {:6.2} / {} act {:.2} / {}",
            text(row, "id"),
            text(row, "model"),
            gpu,
            100.0 * error,
            p.weights.gib(),
            text(row, "weights_gib_per_gpu"),
            p.activations.gib(),
            text(row, "activation_peak_gib"),
        );
        errors.push(error.abs());
    }
    assert!(errors.len() >= 30, "{} rows", errors.len());
    let mid = median(&mut errors);
    let p90 = errors[errors.len() * 9 / 10];
    println!("{} rows, median error {:.1} %, p90 {:.1} %", errors.len(), 100.0 * mid, 100.0 * p90);
    assert!(mid < 0.03 && p90 < 0.10, "median {mid}, p90 {p90}");
}
