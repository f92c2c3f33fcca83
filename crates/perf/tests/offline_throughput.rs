//! Published maximum throughput of TensorRT-LLM (in-flight batching, all requests at once) against the closed form:
//! GPUs and models that no curve or engine cost was fitted on with these rows.
#![allow(clippy::unwrap_used, reason = "a failed set-up fails the test")]

mod common;

use std::collections::BTreeMap;

use common::{measured, median, node, number, text, try_spec};
use model::{KvFormat, Role, WeightFormat};
use perf::{Arrival, Capacity, Curves, Engine, Formats, Layout, MemoryLoad, ServingLoad, StepModel, memory, serving};

#[test]
fn tensorrt_llm_at_full_load() {
    let Some(rows) = measured("inference.csv") else { return };
    let mut groups: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in &rows {
        let wanted = text(row, "source").contains("TensorRT-LLM")
            && text(row, "mode") == "offline"
            && text(row, "concurrency_or_batch").is_empty()
            && !text(row, "engine_version").is_empty();
        if !wanted {
            continue;
        }
        let gpu = match text(row, "gpu") {
            "H100 SXM" => "h100-sxm",
            "H200 SXM" => "h200-sxm",
            "B200 SXM" => "b200-sxm",
            "GB200" => "gb200",
            "GH200" => "gh200-96gb",
            "A100 SXM 80GB" => "a100-sxm-80gb",
            "L40S" => "l40s",
            "RTX PRO 6000 Blackwell" => "rtx-pro-6000-server",
            _ => continue,
        };
        let get = |c| number(row, c).filter(|v| *v > 0.0);
        let (Some(input), Some(output), Some(speed), Some(gpus)) =
            (get("isl"), get("osl"), get("output_tok_s_total"), get("num_gpus"))
        else {
            continue;
        };
        let Some(mut spec) = try_spec(text(row, "model")) else { continue };
        let (dp, pp) = (get("dp").unwrap_or(1.0) as u32, get("pp").unwrap_or(1.0) as u32);
        let tp = get("tp").unwrap_or(gpus / f64::from(dp * pp)) as u32;
        let layout = Layout { tp, pp, dp, ep: get("ep").unwrap_or(1.0) as u32 };
        if layout.check(&spec).is_err() || f64::from(layout.gpus()) != gpus {
            continue;
        }
        let weights = match text(row, "precision_weights") {
            "fp8" if spec.weights == WeightFormat::Fp8Block => WeightFormat::Fp8Block,
            "fp8" => WeightFormat::Fp8Tensor,
            "fp16" => WeightFormat::Fp16,
            "mxfp4" => WeightFormat::Mxfp4,
            "fp4" => {
                spec.weights = WeightFormat::Nvfp4;
                spec.unquantised = if spec.is_moe() { vec![Role::Attention, Role::Indexer] } else { Vec::new() };
                WeightFormat::Nvfp4
            }
            _ => continue,
        };
        let kv = if weights == WeightFormat::Fp16 { KvFormat::Bf16 } else { KvFormat::Fp8 };
        let formats = Formats { weights, kv };
        let Ok(shape) = std::panic::catch_unwind(|| node(&format!("{gpus}x{gpu}"))) else { continue };
        let engine = Engine::TrtLlm;
        let Ok(step) = StepModel::compile(&spec, &layout, &shape, 1, engine, &formats, Curves::embedded()) else {
            continue;
        };
        let load = MemoryLoad { tokens: (input + output) as u64, ..MemoryLoad::default() };
        let plan = memory(&spec, &layout, &shape, engine, &formats, &load, Capacity::CudaTotal);
        let arrival = Arrival::Concurrency(1e5);
        let load = ServingLoad { input, output, prefix_share: 0.0, arrival };
        let e = serving(&step, plan.kv_tokens_max, &load);
        if e.saturated {
            continue;
        }
        let name = text(row, "model").split('/').next_back().unwrap_or_default();
        let ratio = e.output_tokens_per_s / speed;
        groups
            .entry(format!("{name} {} {weights} v{}", text(row, "gpu"), text(row, "engine_version")))
            .or_default()
            .push(ratio);
        groups.entry(format!("~ {}", text(row, "gpu"))).or_default().push(ratio);
        groups.entry(format!("~ v{}", text(row, "engine_version"))).or_default().push(ratio);
        groups.entry(format!("~ gpus {gpus}")).or_default().push(ratio);
        groups.entry("~ all".into()).or_default().push(ratio);
    }
    for (name, ratios) in &mut groups {
        let mid = median(ratios);
        println!(
            "{name:70} n {:3} predicted / measured {mid:.2} [{:.2} {:.2}]",
            ratios.len(),
            ratios[0],
            ratios[ratios.len() - 1]
        );
    }
    let all = groups.get_mut("~ all").unwrap();
    let mut errors: Vec<f64> = all.iter().map(|r| (r - 1.0).abs()).collect();
    let error = median(&mut errors);
    println!(
        "{} rows, median error {:.1} %, p90 {:.0} %",
        errors.len(),
        100.0 * error,
        100.0 * errors[errors.len() * 9 / 10]
    );
    assert!(error < 0.25, "{error}");
    assert!(all.len() > 200, "{}", all.len());
    let mid = median(all);
    assert!((0.6..1.7).contains(&mid), "{mid}");
}
