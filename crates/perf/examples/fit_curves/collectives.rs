//! Collectives: latency, ramp and share of the link per kind of link, operation and rank count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;

use crate::read::{Gpu, csv, gpu_id, number, text};
use crate::simplex::{cost, errors, minimise};

struct Sample {
    size: f64,
    wire: f64,
    bandwidth: f64,
    seconds: f64,
    source: String,
}

/// Bytes of a port of one direction of a PCIe x16 slot.
fn pcie(generation: u32) -> f64 {
    8e9 * f64::from(1u32 << (generation.clamp(3, 7) - 3)) * 16.0 * 128.0 / 130.0 / 8.0
}

/// Share of a PCIe port below which a sweep went through host memory instead of from card to card.
const HOST_PATH: f64 = 0.2;

/// The text of `collectives.csv`.
pub(crate) fn table(dir: &Path, gpus: &[Gpu]) -> Result<String> {
    let mut groups: BTreeMap<(String, String, u32), Vec<Sample>> = BTreeMap::new();
    for row in csv(&dir.join("measured/kernels_and_fabric.csv"))? {
        let op = text(&row, "op");
        if text(&row, "kind") != "collective"
            || !matches!(op, "all_reduce" | "alltoall" | "all_gather" | "reduce_scatter")
        {
            continue;
        }
        let Some(gpu) = gpu_id(text(&row, "gpu")).and_then(|id| gpus.iter().find(|g| g.id == id)) else { continue };
        let (Some(size), Some(us), Some(ranks)) =
            (number(&row, "shape_or_bytes"), number(&row, "time_us"), number(&row, "num_gpus"))
        else {
            continue;
        };
        let fabric = text(&row, "fabric");
        let (link, bandwidth) = match (fabric, gpu.nvlink, gpu.pcie) {
            ("NVLink" | "NVLink NVL72", Some((generation, rate)), _) => (format!("nvlink-{generation}"), rate),
            ("PCIe Gen4" | "PCIe Gen5", _, Some(generation)) => (format!("pcie-{generation}"), pcie(generation)),
            _ => continue,
        };
        let share = (ranks - 1.0) / ranks;
        let (name, wire) = match op {
            "all_reduce" => ("all_reduce", 2.0 * share * size),
            "alltoall" => ("all_to_all", share * size),
            _ => ("all_gather", share * size),
        };
        let source = text(&row, "source").split(':').next().unwrap_or_default().to_owned();
        let source =
            format!("{source} {} {}", text(&row, "gpu"), if name == "all_gather" { "gather and scatter" } else { "" });
        let source = source.trim().to_owned();
        let key = (name.to_owned(), link, ranks as u32);
        groups.entry(key).or_default().push(Sample { size, wire, bandwidth, seconds: us * 1e-6, source });
    }
    let mut out = String::from(
        "# Written by `cargo run --release -p nodewise-perf --example fit_curves`: do not edit by hand.\n\
         op,link,ranks,alpha_us,ramp_us,efficiency,rows,median_error,p90_error,size_min,size_max,basis,origin\n",
    );
    let mut left_out = Vec::new();
    for ((op, link, ranks), samples) in &groups {
        let predict = |p: &[f64], s: &Sample| {
            (p[0] + p[1] * (s.size.min(1e6) / 1e6).sqrt()) * 1e-6 + s.wire / (s.bandwidth * p[2])
        };
        let bounds = [(10.0, 1.0, 60.0), (5.0, 0.0, 200.0), (0.6, 0.005, 1.0)];
        let best = minimise(&bounds, |p| cost(samples.iter().map(|s| (predict(p, s), s.seconds))));
        // a sweep through host memory: such a machine cannot have made the published throughputs of its GPU
        if link.starts_with("pcie") && best[2] < HOST_PATH {
            left_out.push((op.clone(), link.clone(), *ranks));
            continue;
        }
        let (median, p90) = errors(samples.iter().map(|s| (predict(&best, s), s.seconds)));
        let sources: BTreeSet<&str> = samples.iter().map(|s| s.source.as_str()).collect();
        let least = samples.iter().map(|s| s.size).fold(f64::INFINITY, f64::min);
        let most = samples.iter().map(|s| s.size).fold(0.0, f64::max);
        out += &format!(
            "{op},{link},{ranks},{:.2},{:.2},{:.4},{},{median:.3},{p90:.3},{least},{most},calibrated,\"{}\"\n",
            best[0],
            best[1],
            best[2],
            samples.len(),
            sources.into_iter().collect::<Vec<_>>().join("; ")
        );
    }
    for (op, link, ranks) in &left_out {
        let other = out.lines().find(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            cells.len() > 3 && cells[0] == op && cells[1].starts_with("pcie-") && cells[2] == ranks.to_string()
        });
        let figures: Vec<&str> = other.unwrap_or_default().split(',').skip(3).take(3).collect();
        if let &[alpha, ramp, efficiency] = figures.as_slice() {
            out += &format!(
                "{op},{link},{ranks},{alpha},{ramp},{efficiency},0,,,,,derived,\"as the other PCIe generation: the one sweep \
                 ran through host memory\"\n"
            );
        }
    }
    // a ring all-reduce is a scatter and a gather: where only those were measured it follows from them
    for ((op, link, ranks), _) in groups.iter().filter(|(key, _)| key.0 == "all_gather") {
        if groups.contains_key(&("all_reduce".to_owned(), link.clone(), *ranks)) {
            continue;
        }
        let prefix = format!("{op},{link},{ranks},");
        let cells: Vec<f64> = out
            .lines()
            .find_map(|l| l.strip_prefix(&prefix))
            .into_iter()
            .flat_map(|l| l.split(',').take(3))
            .filter_map(|v| v.parse().ok())
            .collect();
        if let &[alpha, ramp, efficiency] = cells.as_slice() {
            out += &format!(
                "all_reduce,{link},{ranks},{:.2},{:.2},{efficiency},0,,,,,derived,\"scatter and gather of the same link\"\n",
                2.0 * alpha,
                2.0 * ramp
            );
        }
    }
    out += FABRIC;
    Ok(out)
}

/// Across nodes no sweep states its fabric: latency from the small messages of DeepEP's low-latency kernels and of
/// two-node NCCL runs, efficiency from DeepEP's large ones.
const FABRIC: &str = "\
all_reduce,fabric,2,40,60,0.7,0,,,,,assumed,\"microsoft/vidur two-node all-reduce: 41 us at 18 kB; share of the port assumed\"
all_gather,fabric,2,30,40,0.7,0,,,,,assumed,\"as all-reduce, one direction of two\"
all_to_all,fabric,2,80,40,0.8,0,,,,,assumed,\"deepseek-ai/DeepEP: 43-62 GB/s a GPU on 50 GB/s ports over 16-64 GPUs; 163-194 us for 128 tokens\"
all_reduce,mesh-infinity_fabric,8,18,15,0.6,0,,,,,assumed,\"no sweep of this link\"
all_gather,mesh-infinity_fabric,8,12,10,0.6,0,,,,,assumed,\"no sweep of this link\"
all_to_all,mesh-infinity_fabric,8,12,10,0.6,0,,,,,assumed,\"no sweep of this link\"
";
