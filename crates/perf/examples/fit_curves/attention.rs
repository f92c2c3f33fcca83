//! Attention and experts from kernel profiles.

use std::path::Path;

use anyhow::Result;

use crate::read::{Gpu, Profile, Row, csv, gpu_id, number, profiles};
use crate::simplex::{cost, errors, minimise};

struct Sample {
    bytes: f64,
    flop: f64,
    seconds: f64,
}

const HEAD: f64 = 128.0;

struct Fitted {
    bandwidth: f64,
    compute: f64,
    rows: usize,
    errors: (f64, f64),
}

/// Decoding gives the bandwidth share, prefill the compute share; each with its own launch time.
fn fit(decode: &[Sample], prefill: &[Sample], gpu: &Gpu) -> Fitted {
    let peak = gpu.peak("bits16").unwrap_or(1e15);
    let mean = |a: f64, b: f64| (a.powi(4) + b.powi(4)).powf(0.25);
    let bounds = [(5.0, 0.0, 50.0), (0.7, 0.1, 0.97)];
    let read = |p: &[f64], s: &Sample| p[0] * 1e-6 + s.bytes / (gpu.bandwidth * p[1]);
    let d = minimise(&bounds, |p| cost(decode.iter().map(|s| (read(p, s), s.seconds))));
    let multiply = |p: &[f64], s: &Sample| p[0] * 1e-6 + mean(s.flop / (peak * p[1]), s.bytes / (gpu.bandwidth * d[1]));
    let c = minimise(&bounds, |p| cost(prefill.iter().map(|s| (multiply(p, s), s.seconds))));
    let pairs = decode.iter().map(|s| (read(&d, s), s.seconds));
    let pairs = pairs.chain(prefill.iter().map(|s| (multiply(&c, s), s.seconds)));
    Fitted { bandwidth: d[1], compute: c[1], rows: decode.len() + prefill.len(), errors: errors(pairs) }
}

/// Caches of fewer bytes than this sit in the last-level cache of the benchmark.
const CACHED_BYTES: f64 = 150e6;
/// Smaller chunks are all launch.
const LEAST_FLOP: f64 = 2e9;
/// Chunks below a tile of queries waste the rest of it.
const LEAST_CHUNK: f64 = 128.0;

fn samples(rows: &[Row], p: &Profile) -> (Vec<Sample>, Vec<Sample>) {
    let (mut decode, mut prefill) = (Vec::new(), Vec::new());
    for row in rows {
        let get = |c| number(row, c).unwrap_or(0.0);
        let (q, kv, n, nkv) = (get("prefill_chunk"), get("kv_prefill"), get("n_decode"), get("kv_decode"));
        let seconds = get("time_us") * 1e-6;
        if seconds <= 0.0 {
            continue;
        }
        let per_token = 2.0 * p.kv_heads * HEAD * 2.0;
        if q == 0.0 && n * nkv * per_token >= CACHED_BYTES {
            decode.push(Sample { bytes: n * nkv * per_token, flop: 4.0 * p.heads * HEAD * n * nkv, seconds });
        }
        let flop = 4.0 * p.heads * HEAD * q * (kv + 0.5 * q);
        if n == 0.0 && q >= LEAST_CHUNK && flop >= LEAST_FLOP {
            prefill.push(Sample { bytes: (kv + q) * per_token, flop, seconds });
        }
    }
    (decode, prefill)
}

/// Shares of the peak and the bandwidth that plain 16-bit products reach on a GPU, from the text of `gemm.csv`.
fn plain(gemm: &str, gpu: &Gpu) -> (f64, f64) {
    let row = gemm.lines().find_map(|l| l.strip_prefix(&format!("{},{},bits16,", gpu.id, gpu.memory)));
    let mut cells = row.unwrap_or_default().split(',').filter_map(|v| v.parse().ok());
    (cells.next().unwrap_or(1.0), cells.next().unwrap_or(1.0))
}

/// The text of `attention.csv`. What carries over to GPUs without profiles is the ratio to plain products.
pub(crate) fn table(dir: &Path, gpus: &[Gpu], gemm: &str) -> Result<String> {
    let mut out = String::from(
        "# Written by `cargo run --release -p nodewise-perf --example fit_curves`: do not edit by hand.\n\
         scope,memory,ratio_c,ratio_m,compute,decode_bandwidth,rows,median_error,p90_error,chunk_min,basis,origin\n",
    );
    for name in ["RTX4090", "RTX PRO 6000 Blackwell"] {
        let Some(gpu) = gpu_id(name).and_then(|id| gpus.iter().find(|g| g.id == id)) else { continue };
        let (mut decode, mut prefill) = (Vec::new(), Vec::new());
        let mut origin = "";
        for profile in profiles(dir).iter().filter(|p| p.gpu == name) {
            let (d, p) = samples(&csv(&profile.dir.join("attention.csv"))?, profile);
            decode.extend(d);
            prefill.extend(p);
            origin = profile.source;
        }
        let f = fit(&decode, &prefill, gpu);
        let (plain_c, plain_m) = plain(gemm, gpu);
        let mut line = |scope: &str, memory: &str, basis: &str, note: &str| {
            out += &format!(
                "{scope},{memory},{:.3},{:.3},{:.3},{:.3},{},{:.3},{:.3},{LEAST_CHUNK},{basis},\"{origin}{note}\"\n",
                f.compute / plain_c,
                f.bandwidth / plain_m,
                f.compute,
                f.bandwidth,
                f.rows,
                f.errors.0,
                f.errors.1
            );
        };
        line(&gpu.id, gpu.memory, "calibrated", "");
        line(&gpu.architecture, gpu.memory, "calibrated", "");
        if name == "RTX PRO 6000 Blackwell" {
            line("*", "any", "assumed", ", lent to every GPU");
        }
    }
    Ok(out)
}

/// The text of `experts.csv`: one profile gives the shape of grouped products, other GPUs borrow it as an assumption.
///
/// What carries over is the ratio to plain products of the same GPU and type, which `gemm` holds.
pub(crate) fn experts(dir: &Path, gpus: &[Gpu], gemm: &str) -> Result<String> {
    let mut out = String::from(
        "# Written by `cargo run --release -p nodewise-perf --example fit_curves`: do not edit by hand.\n\
         scope,memory,ratio_c,ratio_m,e_c,e_m,launch_us,rows,median_error,p90_error,basis,origin\n",
    );
    let all = profiles(dir);
    let profile = all.iter().find(|p| p.dir.join("moe.csv").exists());
    let gpu = profile.and_then(|p| gpu_id(p.gpu)).and_then(|id| gpus.iter().find(|g| g.id == id));
    let (Some(profile), Some(gpu)) = (profile, gpu) else { return Ok(out) };
    // Qwen3-30B-A3B: hidden 2048, expert width 768, top 8, bf16
    let one = 3.0 * 2048.0 * 768.0;
    let mut rows = Vec::new();
    for row in csv(&profile.dir.join("moe.csv"))? {
        let get = |c| number(&row, c).unwrap_or(0.0);
        let (tokens, touched) = (get("tokens"), get("activated_experts"));
        if touched >= 16.0 {
            rows.push(Sample {
                bytes: touched * one * 2.0,
                flop: 2.0 * tokens * 8.0 * one,
                seconds: get("time_us") * 1e-6,
            });
        }
    }
    let peak = gpu.peak("bits16").unwrap_or(1e15);
    let predict = |p: &[f64], s: &Sample| {
        let (memory, compute) = (s.bytes / (gpu.bandwidth * p[1]), s.flop / (peak * p[0]));
        p[2] * 1e-6 + (memory.powi(3) + compute.powi(3)).cbrt()
    };
    let (plain_c, plain_m) = plain(gemm, gpu);
    let bounds = [(0.4, 0.1, 1.0), (0.7, 0.1, 0.97), (10.0, 0.0, 60.0)];
    let best = minimise(&bounds, |p| cost(rows.iter().map(|s| (predict(p, s), s.seconds))));
    let (median, p90) = errors(rows.iter().map(|s| (predict(&best, s), s.seconds)));
    for (scope, basis, note) in [
        (gpu.id.as_str(), "calibrated", ""),
        (gpu.architecture.as_str(), "derived", ""),
        ("*", "assumed", ", lent to every GPU"),
    ] {
        let memory = if scope == "*" { "any" } else { gpu.memory };
        out += &format!(
            "{scope},{memory},{:.3},{:.3},{:.3},{:.3},{:.1},{},{median:.3},{p90:.3},{basis},\"{} Qwen3-30B-A3B{note}\"\n",
            best[0] / plain_c,
            best[1] / plain_m,
            best[0],
            best[1],
            best[2],
            rows.len(),
            profile.source
        );
    }
    Ok(out)
}
