//! Matrix products: one curve per GPU and type, per architecture and memory kind, and per memory kind.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use perf::{GemmCurve, product_time};
use units::Basis;

use crate::read::{Gpu, csv, gpu_id, number, profiles, text};
use crate::simplex::{cost, errors, minimise};

/// Weights below this stay in the last-level cache between repetitions of a benchmark, which no server enjoys.
const CACHED_BYTES: f64 = 32e6;

#[derive(Clone, Debug)]
struct Sample {
    m: f64,
    n: f64,
    k: f64,
    bytes: f64,
    peak: f64,
    bandwidth: f64,
    seconds: f64,
    source: String,
}

fn bytes_per_weight(dtype: &str) -> f64 {
    match dtype {
        "nvfp4" => 9.0 / 16.0,
        "weight_only4" => 0.53,
        "fp8" | "fp8_block" | "int8" | "weight_only8" => 1.0,
        _ => 2.0,
    }
}

fn dtype_of(text: &str) -> Option<&'static str> {
    Some(match text {
        "bfloat16" | "bf16" => "bits16",
        "fp8" | "fp8_e4m3" => "fp8",
        "fp8_block" => "fp8_block",
        "nvfp4" => "nvfp4",
        "int8_wo" => "weight_only8",
        "int4_wo" => "weight_only4",
        _ => return None,
    })
}

type Groups = BTreeMap<(String, String, &'static str, &'static str), Vec<Sample>>;

fn collect(dir: &Path, gpus: &[Gpu]) -> Result<(Groups, Vec<String>)> {
    let mut groups: Groups = BTreeMap::new();
    let mut best_shapes = Vec::new();
    let find = |name: &str| gpu_id(name).and_then(|id| gpus.iter().find(|g| g.id == id));
    let mut fastest: BTreeMap<(String, &'static str, [u64; 3]), usize> = BTreeMap::new();
    let mut add = |gpu: &Gpu, dtype: &'static str, m: f64, n: f64, k: f64, seconds: f64, source: &str| {
        let Some(peak) = gpu.peak(dtype) else { return };
        let bytes = n * k * bytes_per_weight(dtype);
        if m <= 64.0 && bytes < CACHED_BYTES {
            return;
        }
        let key = (gpu.id.clone(), gpu.architecture.clone(), gpu.memory, dtype);
        let source = source.to_owned();
        let bandwidth = gpu.bandwidth;
        let samples = groups.entry(key).or_default();
        // engines ship several kernels for a type: the curve is that of the fastest one for each shape
        let shape = [m as u64, n as u64, k as u64];
        let place = *fastest.entry((gpu.id.clone(), dtype, shape)).or_insert(samples.len());
        let sample = Sample { m, n, k, bytes, peak, bandwidth, seconds, source };
        match samples.get_mut(place) {
            Some(old) if old.seconds <= sample.seconds => {}
            Some(old) => *old = sample,
            None => samples.push(sample),
        }
    };
    for row in csv(&dir.join("measured/kernels_and_fabric.csv"))? {
        if text(&row, "kind") != "gemm" {
            continue;
        }
        let (Some(gpu), Some(dtype)) = (find(text(&row, "gpu")), dtype_of(text(&row, "dtype"))) else { continue };
        let op = text(&row, "op");
        if op.contains("MAMF") {
            if let (Some(achieved), Some(peak)) = (number(&row, "achieved_tflops"), gpu.peak(dtype)) {
                let share = (achieved * 1e12 / peak).min(1.0);
                best_shapes.push(format!("{},{},{dtype},{share:.3},", gpu.id, gpu.memory));
            }
            continue;
        }
        let shape: Vec<f64> = text(&row, "shape_or_bytes").split('x').filter_map(|v| v.parse().ok()).collect();
        let (&[m, n, k], Some(us)) = (shape.as_slice(), number(&row, "time_us")) else { continue };
        let name = op.trim_start_matches("gemm (").trim_end_matches(')');
        add(gpu, dtype, m, n, k, us * 1e-6, &format!("aiconfigurator {name}"));
    }
    for profile in profiles(dir) {
        let Some(gpu) = find(profile.gpu) else { continue };
        for row in csv(&profile.dir.join("dense.csv"))? {
            let (Some(m), Some(us)) = (number(&row, "tokens"), number(&row, "time_us")) else { continue };
            // the profile has every 16th count: a logarithmic selection weighs small and large alike
            if m > 64.0 && !(m as u64).is_multiple_of(256) {
                continue;
            }
            if let Some((_, n, k)) = profile.shapes.iter().find(|s| s.0 == text(&row, "layer")) {
                add(gpu, "bits16", m, *n, *k, us * 1e-6, profile.source);
            }
        }
    }
    for (file, name) in [("a100_Llama-2-70b_mlp.csv", "A100 SXM 80GB"), ("h100_Llama-2-70b_mlp.csv", "H100 SXM")] {
        let Some(gpu) = find(name) else { continue };
        for row in csv(&dir.join("traces/vidur/compute").join(file))? {
            let (Some(m), Some(tp)) = (number(&row, "num_tokens"), number(&row, "num_tensor_parallel_workers")) else {
                continue;
            };
            if m < 32.0 || !(m as u64).is_power_of_two() {
                continue;
            }
            for (op, n, k) in [
                ("attn_pre_proj", 10_240.0 / tp, 8192.0),
                ("attn_post_proj", 8192.0, 8192.0 / tp),
                ("mlp_up_proj", 57_344.0 / tp, 8192.0),
                ("mlp_down_proj", 8192.0, 28_672.0 / tp),
            ] {
                if let Some(ms) = number(&row, &format!("time_stats.{op}.median")) {
                    add(gpu, "bits16", m, n, k, ms * 1e-3, "vidur Llama-2-70b profiles");
                }
            }
        }
    }
    Ok((groups, best_shapes))
}

struct Fit {
    curve: GemmCurve,
    launch: f64,
    rows: usize,
    median: f64,
    p90: f64,
    m_range: (f64, f64),
    sources: String,
}

/// Fits one curve. `stream` holds the share of the bandwidth at what 16-bit products of the same GPU reach: streaming
/// weights does not depend on what they encode, while the small matrices of the tables cannot tell a low share from the
/// fixed time of a narrow type's kernel.
fn fit(samples: &[&Sample], stream: Option<f64>) -> Fit {
    let curve =
        |p: &[f64]| GemmCurve { e_c: p[0], e_m: p[1], wave: p[2] * 1e6, k_half: p[3] * 1e3, basis: Basis::Calibrated };
    let predict =
        |p: &[f64], s: &Sample| product_time(s.m, s.n, s.k, s.bytes, s.peak, s.bandwidth, &curve(p)).0 + p[4] * 1e-6;
    let memory = stream.map_or((0.8, 0.2, 0.97), |e| (e, e, e));
    let bounds = [(0.65, 0.15, 1.0), memory, (0.2, 0.0, 4.0), (0.2, 0.0, 2.0), (3.0, 0.0, 25.0)];
    let best = minimise(&bounds, |p| cost(samples.iter().map(|s| (predict(p, s), s.seconds))));
    let (median, p90) = errors(samples.iter().map(|s| (predict(&best, s), s.seconds)));
    let sources: BTreeSet<&str> = samples.iter().map(|s| s.source.as_str()).collect();
    let least = samples.iter().map(|s| s.m).fold(f64::INFINITY, f64::min);
    let most = samples.iter().map(|s| s.m).fold(0.0, f64::max);
    Fit {
        curve: curve(&best),
        launch: best[4],
        rows: samples.len(),
        median,
        p90,
        m_range: (least, most),
        sources: sources.into_iter().collect::<Vec<_>>().join("; "),
    }
}

fn line(scope: &str, memory: &str, dtype: &str, f: &Fit, basis: &str, note: &str) -> String {
    format!(
        "{scope},{memory},{dtype},{:.3},{:.3},{:.0},{:.0},{:.1},{},{:.3},{:.3},{},{},{basis},\"{note}{}\"\n",
        f.curve.e_c,
        f.curve.e_m,
        f.curve.wave,
        f.curve.k_half,
        f.launch,
        f.rows,
        f.median,
        f.p90,
        f.m_range.0,
        f.m_range.1,
        f.sources
    )
}

/// The share of the bandwidth that 16-bit products of a group reach, for the group's other types.
fn stream_of(sixteen: Option<&Vec<&Sample>>, dtype: &str) -> Option<f64> {
    sixteen.filter(|_| dtype != "bits16").map(|samples| fit(samples, None).curve.e_m)
}

/// The text of `gemm.csv`.
pub(crate) fn table(dir: &Path, gpus: &[Gpu]) -> Result<String> {
    let (groups, best_shapes) = collect(dir, gpus)?;
    let mut out = String::from(
        "# Written by `cargo run --release -p nodewise-perf --example fit_curves`: do not edit by hand.\n\
         scope,memory,dtype,e_c,e_m,wave_elements,k_half,launch_us,rows,median_error,p90_error,m_min,m_max,basis,origin\n",
    );
    let mut by_architecture: BTreeMap<(&str, &str, &str), Vec<&Sample>> = BTreeMap::new();
    let mut by_memory: BTreeMap<(&str, &str), Vec<&Sample>> = BTreeMap::new();
    for ((_, architecture, memory, dtype), samples) in &groups {
        by_architecture.entry((architecture, memory, dtype)).or_default().extend(samples);
        by_memory.entry((memory, dtype)).or_default().extend(samples);
        by_memory.entry(("other", dtype)).or_default().extend(samples);
    }
    let mut streams: BTreeMap<&str, f64> = BTreeMap::new();
    for pass in [true, false] {
        for ((id, architecture, memory, dtype), samples) in &groups {
            if (*dtype == "bits16") == pass {
                let all: Vec<&Sample> = samples.iter().collect();
                let of_architecture =
                    || stream_of(by_architecture.get(&(architecture.as_str(), *memory, "bits16")), dtype);
                let fitted = fit(&all, streams.get(id.as_str()).copied().or_else(of_architecture));
                if pass {
                    streams.insert(id, fitted.curve.e_m);
                }
                out += &line(id, memory, dtype, &fitted, "calibrated", "");
            }
        }
    }
    for ((architecture, memory, dtype), samples) in &by_architecture {
        let stream = stream_of(by_architecture.get(&(*architecture, *memory, "bits16")), dtype);
        let note = "all GPUs of the architecture: ";
        out += &line(architecture, memory, dtype, &fit(samples, stream), "calibrated", note);
    }
    for ((memory, dtype), samples) in &by_memory {
        let stream = stream_of(by_memory.get(&(*memory, "bits16")), dtype);
        let note = "all fitted GPUs of this memory kind: ";
        out += &line("*", memory, dtype, &fit(samples, stream), "assumed", note);
    }
    let default: Vec<&Sample> = by_memory.get(&("hbm", "bits16")).into_iter().flatten().copied().collect();
    let default = fit(&default, None);
    let fitted: BTreeSet<(&str, &str)> = groups.keys().map(|k| (k.0.as_str(), k.3)).collect();
    for share in best_shapes {
        let cells: Vec<&str> = share.split(',').collect();
        let (&[id, memory, dtype, e_c, ..], c) = (cells.as_slice(), &default.curve) else { continue };
        if fitted.contains(&(id, dtype)) {
            continue;
        }
        out += &format!(
            "{id},{memory},{dtype},{e_c},{:.3},{:.0},{:.0},0,1,,,1024,16384,derived,\
             \"stas00/ml-engineering: best shape of torch.matmul over the dense peak; the rest as other HBM GPUs\"\n",
            c.e_m, c.wave, c.k_half
        );
    }
    Ok(out)
}
