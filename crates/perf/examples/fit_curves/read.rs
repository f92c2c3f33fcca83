//! Reading the measurement files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A CSV row by column name.
pub(crate) type Row = HashMap<String, String>;

pub(crate) fn csv(path: &Path) -> Result<Vec<Row>> {
    let mut reader = ::csv::Reader::from_path(path).with_context(|| format!("cannot read {}", path.display()))?;
    reader.deserialize().map(|r| r.with_context(|| format!("bad row in {}", path.display()))).collect()
}

pub(crate) fn text<'a>(row: &'a Row, column: &str) -> &'a str {
    row.get(column).map_or("", String::as_str)
}

pub(crate) fn number(row: &Row, column: &str) -> Option<f64> {
    text(row, column).parse().ok()
}

/// What the fit needs of a GPU: id, architecture, memory kind, bandwidth in B/s, peaks in FLOP/s by type.
#[derive(Clone, Debug)]
pub(crate) struct Gpu {
    pub(crate) id: String,
    pub(crate) architecture: String,
    pub(crate) memory: &'static str,
    pub(crate) bandwidth: f64,
    peaks: HashMap<&'static str, f64>,
    pub(crate) nvlink: Option<(u32, f64)>,
    pub(crate) pcie: Option<u32>,
}

impl Gpu {
    pub(crate) fn peak(&self, dtype: &str) -> Option<f64> {
        let key = match dtype {
            "fp8" | "fp8_block" => "fp8",
            "nvfp4" => "fp4",
            "int8" => "int8",
            _ => "bf16",
        };
        self.peaks.get(key).copied()
    }
}

pub(crate) fn gpus(dir: &Path) -> Result<Vec<Gpu>> {
    let tera = |row: &Row, column| number(row, column).map(|v| v * 1e12);
    Ok(csv(&dir.join("gpus.csv"))?
        .iter()
        .filter_map(|row| {
            let kind = text(row, "memory_type");
            let mut peaks = HashMap::new();
            for (key, column) in
                [("bf16", "bf16_tflops"), ("fp8", "fp8_tflops"), ("fp4", "fp4_tflops"), ("int8", "int8_tops")]
            {
                if let Some(v) = tera(row, column) {
                    peaks.insert(key, v);
                }
            }
            let generation = number(row, "nvlink_gen").map(|g| g as u32);
            Some(Gpu {
                id: text(row, "id").to_owned(),
                architecture: text(row, "architecture").to_owned(),
                memory: if kind.starts_with("HBM") {
                    "hbm"
                } else if kind.starts_with("GDDR") {
                    "gddr"
                } else {
                    "other"
                },
                bandwidth: number(row, "memory_bandwidth_gb_s")? * 1e9,
                peaks,
                nvlink: generation.zip(number(row, "interconnect_gb_s_bidir").map(|b| b * 0.5e9)),
                pcie: number(row, "pcie_gen").map(|g| g as u32),
            })
        })
        .collect())
}

/// The catalog id of the GPU that a measurement names.
pub(crate) fn gpu_id(name: &str) -> Option<&'static str> {
    Some(match name {
        "A100 SXM 80GB" | "A100 SXM (DGX)" | "A100 SXM" => "nvidia-a100-sxm-80gb",
        "H100 SXM" => "nvidia-h100-sxm",
        "H200 SXM" => "nvidia-h200-sxm",
        "B200 SXM" => "nvidia-b200-sxm",
        "B300 SXM" => "nvidia-b300-sxm",
        "GB200" => "nvidia-gb200",
        "GB300" => "nvidia-gb300",
        "L40S" => "nvidia-l40s",
        "RTX PRO 6000 Blackwell" => "nvidia-rtx-pro-6000-server",
        "Arc Pro B60" => "intel-arc-pro-b60",
        "Intel Gaudi 2" => "intel-gaudi2",
        "Intel Gaudi 3" => "intel-gaudi3",
        "MI325X" => "amd-mi325x",
        "MI355X" => "amd-mi355x",
        "RTX4090" => "nvidia-rtx-4090",
        _ => return None,
    })
}

/// Profiles of one model on one GPU: directory, catalog id, query heads, key-value heads per rank, and the rank's
/// matrix shapes by layer name.
pub(crate) struct Profile {
    pub(crate) dir: PathBuf,
    pub(crate) gpu: &'static str,
    pub(crate) heads: f64,
    pub(crate) kv_heads: f64,
    pub(crate) shapes: Vec<(&'static str, f64, f64)>,
    pub(crate) source: &'static str,
}

pub(crate) fn profiles(dir: &Path) -> Vec<Profile> {
    let base = dir.join("traces/llmservingsim_vllm/profiles");
    let llama = || {
        vec![
            ("qkv_proj", 6144.0, 4096.0),
            ("o_proj", 4096.0, 4096.0),
            ("gate_up_proj", 28_672.0, 4096.0),
            ("down_proj", 4096.0, 14_336.0),
        ]
    };
    vec![
        Profile {
            dir: base.join("RTX4090/meta-llama/Llama-3.1-8B/bf16/tp1"),
            gpu: "RTX4090",
            heads: 32.0,
            kv_heads: 8.0,
            shapes: llama(),
            source: "LLMServingSim vLLM 0.19 profiles RTX4090",
        },
        Profile {
            dir: base.join("RTXPRO6000/meta-llama/Llama-3.1-8B/bf16/tp1"),
            gpu: "RTX PRO 6000 Blackwell",
            heads: 32.0,
            kv_heads: 8.0,
            shapes: llama(),
            source: "LLMServingSim vLLM 0.19 profiles RTXPRO6000",
        },
        Profile {
            dir: base.join("RTXPRO6000/Qwen/Qwen3-32B/bf16/tp2"),
            gpu: "RTX PRO 6000 Blackwell",
            heads: 32.0,
            kv_heads: 4.0,
            shapes: vec![
                ("qkv_proj", 5120.0, 5120.0),
                ("o_proj", 5120.0, 4096.0),
                ("gate_up_proj", 25_600.0, 5120.0),
                ("down_proj", 5120.0, 12_800.0),
            ],
            source: "LLMServingSim vLLM 0.19 profiles RTXPRO6000",
        },
        Profile {
            dir: base.join("RTXPRO6000/Qwen/Qwen3-30B-A3B-Instruct-2507/bf16/tp1"),
            gpu: "RTX PRO 6000 Blackwell",
            heads: 32.0,
            kv_heads: 4.0,
            shapes: vec![("qkv_proj", 5120.0, 2048.0), ("o_proj", 2048.0, 4096.0)],
            source: "LLMServingSim vLLM 0.19 profiles RTXPRO6000",
        },
    ]
}
