//! llama.cpp reads weights with kernels of its own: their share of the bandwidth and its time per layer, by memory kind.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use model::{Catalog, GgufMix, WeightFormat};
use perf::{Curves, Engine};

use crate::read::{Gpu, csv, number, text};
use crate::simplex::{cost, errors, minimise};

struct Sample {
    bytes: f64,
    bandwidth: f64,
    kernels: f64,
    seconds: f64,
}

fn gpu_of<'a>(gpus: &'a [Gpu], name: &str) -> Option<&'a Gpu> {
    let plain = name.to_lowercase().replace(' ', "-");
    let id = match plain.as_str() {
        "a100-pcie" => "nvidia-a100-pcie-80gb".to_owned(),
        "rtx-6000-ada" | "rtx-5000-ada" | "rtx-4000-ada" => format!("nvidia-{plain}"),
        apple if apple.starts_with("apple-") => apple.split('-').take(3).collect::<Vec<_>>().join("-"),
        other => format!("nvidia-{other}"),
    };
    gpus.iter().find(|g| g.id == id)
}

/// The text of `streams.csv`.
pub(crate) fn table(dir: &Path, gpus: &[Gpu]) -> Result<String> {
    let profile = Curves::embedded().engine(Engine::LlamaCpp);
    let quantised = Curves::embedded().kernels().quantised;
    let mut groups: BTreeMap<&str, Vec<Sample>> = BTreeMap::new();
    for row in csv(&dir.join("measured/inference.csv"))? {
        let wanted = text(&row, "engine_version").starts_with("llama-bench") && text(&row, "num_gpus") == "1";
        let decode = number(&row, "osl") == Some(512.0) && number(&row, "isl") == Some(0.0);
        if !wanted || !decode {
            continue;
        }
        let (format, kernels) = match text(&row, "precision_weights") {
            "gguf-q4_k_m" => (WeightFormat::Gguf(GgufMix::Q4KM), 1.0 + quantised),
            "gguf-f16" => (WeightFormat::Fp16, 1.0),
            _ => continue,
        };
        let (Some(gpu), Some(speed)) = (gpu_of(gpus, text(&row, "gpu")), number(&row, "output_tok_s_total")) else {
            continue;
        };
        let Some(spec) = Catalog::embedded().find(text(&row, "model")).ok().and_then(|e| e.spec().ok()) else {
            continue;
        };
        // one row of the embedding is read, not the matrix
        let embedding: units::Bytes =
            spec.embedding.iter().map(|m| format.matrix_bytes(m, &[], spec.dtype_bytes)).sum();
        let bytes = spec.weights_bytes(format).as_f64() - embedding.as_f64();
        let seconds = 1.0 / speed - (profile.step + profile.sequence).0;
        let kernels = kernels * spec.layer_count() as f64;
        groups.entry(gpu.memory).or_default().push(Sample { bytes, bandwidth: gpu.bandwidth, kernels, seconds });
    }
    let mut out = String::from(
        "# Written by `cargo run --release -p nodewise-perf --example fit_curves`: do not edit by hand.\n\
         engine,memory,e_m,layer_us,rows,median_error,p90_error,basis,origin\n",
    );
    for (memory, samples) in &groups {
        let predict = |p: &[f64], s: &Sample| s.bytes / (s.bandwidth * p[0]) + s.kernels * p[1] * 1e-6;
        let bounds = [(0.7, 0.1, 0.97), (20.0, 0.0, 200.0)];
        let best = minimise(&bounds, |p| cost(samples.iter().map(|s| (predict(p, s), s.seconds))));
        let (median, p90) = errors(samples.iter().map(|s| (predict(&best, s), s.seconds)));
        out += &format!(
            "llama.cpp,{memory},{:.3},{:.1},{},{median:.3},{p90:.3},calibrated,\
             \"XiongjieDai/GPU-Benchmarks-on-LLM-Inference: llama-bench tg 512, May 2024 builds (newer ones are faster)\"\n",
            best[0],
            best[1],
            samples.len()
        );
    }
    Ok(out)
}
