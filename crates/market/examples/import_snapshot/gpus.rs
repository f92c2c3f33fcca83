//! GPUs: dense and sparse apart, links per direction, memory three ways.

use std::collections::HashMap;
use std::path::Path;

use super::{Cells, Result, Rows, Texts, plain, public, write};

const HEADER: &[&str] = &[
    "id",
    "vendor",
    "name",
    "architecture",
    "form_factor",
    "memory_nominal_gb",
    "memory_usable_gib",
    "memory_cuda_total_gib",
    "memory_source",
    "memory_kind",
    "memory_bandwidth_gb_per_s",
    "fp64_dense_tflops",
    "fp64_tensor_dense_tflops",
    "fp32_dense_tflops",
    "tf32_dense_tflops",
    "bf16_dense_tflops",
    "fp16_dense_tflops",
    "fp8_dense_tflops",
    "fp4_dense_tflops",
    "int8_dense_tops",
    "tf32_sparse_tflops",
    "bf16_sparse_tflops",
    "fp16_sparse_tflops",
    "fp8_sparse_tflops",
    "fp4_sparse_tflops",
    "int8_sparse_tops",
    "tdp_w",
    "link_name",
    "nvlink_generation",
    "link_gb_per_s_per_direction",
    "link_bridge_gpus",
    "pcie_generation",
    "pcie_lanes",
    "mig_slices",
    "launch_year",
    "compute_capability",
    "preliminary",
    "source",
    "cross_check",
    "notes",
];

/// How the start-up logs name a GPU, and which row that is. Labels that fit several rows are left out.
const LOGGED: &[(&str, &str)] = &[
    ("H100 80GB", "nvidia-h100-sxm"),
    ("A100 40GB", "nvidia-a100-sxm-40gb"),
    ("H200", "nvidia-h200-sxm"),
    ("MI300X", "amd-mi300x"),
    ("T4", "nvidia-t4"),
    ("RTX 3090", "nvidia-rtx-3090"),
    ("RTX 5090", "nvidia-rtx-5090"),
    ("GB10 (DGX Spark)", "nvidia-gb10"),
];

/// Median of what engines logged as total device memory, with how many logs and which.
fn logged_memory(folder: &Path) -> Result<HashMap<&'static str, (f64, String)>> {
    let logs = Rows::read(&folder.join("measured/engine_memory.csv"))?;
    let mut found = HashMap::new();
    for (label, id) in LOGGED {
        let mut values: Vec<f64> = Vec::new();
        let mut places: Vec<String> = Vec::new();
        for log in logs.cells().filter(|l| l.get("gpu") == *label) {
            let Some(gib) = log.number("total_gpu_memory_gib") else { continue };
            values.push(gib);
            let source = log.get("source").split(": ").next().unwrap_or_default();
            let source = if source.starts_with("public file index") { "a public repository" } else { source };
            let place = format!("{} log, {source}", log.get("engine"));
            if !places.contains(&place) {
                places.push(place);
            }
        }
        values.sort_by(f64::total_cmp);
        let median = match values.len() {
            0 => continue,
            n if n % 2 == 1 => values[n / 2],
            n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
        };
        let count = values.len();
        let logs = if count == 1 { "1 engine log".to_owned() } else { format!("median of {count} engine logs") };
        found.insert(*id, (median, format!("{logs} ({})", places.join("; "))));
    }
    Ok(found)
}

/// Printed 2:4 figures that are not twice the dense one, and cells left blank because sources disagree (0).
const SPARSE_EXCEPTIONS: &[(&str, &str, f64)] = &[
    // the datasheet rounds
    ("nvidia-l40s", "bf16", 733.0),
    ("nvidia-l40s", "fp16", 733.0),
    // Blackwell Ultra raised dense FP4 only
    ("nvidia-gb300", "fp4", 20000.0),
    ("nvidia-b300-sxm", "fp4", 0.0),
    ("nvidia-gb300", "int8", 0.0),
    ("nvidia-b300-sxm", "int8", 0.0),
    // AMD prints one FP4 figure
    ("amd-mi355x", "fp4", 0.0),
    ("amd-mi350x", "fp4", 0.0),
    ("amd-r9700", "int8", 766.0),
];

fn sparse(row: &Cells<'_>, kind: &str, dense: Option<f64>) -> String {
    let id = row.get("id");
    let Some(dense) = dense else { return String::new() };
    if let Some((.., value)) = SPARSE_EXCEPTIONS.iter().find(|(i, k, _)| *i == id && *k == kind) {
        return if *value == 0.0 { String::new() } else { plain(*value) };
    }
    let doubled = match row.get("architecture") {
        // export-control parts whose sparse figures nobody prints
        _ if id.starts_with("nvidia-h20") && !id.starts_with("nvidia-h200") => false,
        "Ampere" | "Ada Lovelace" | "Hopper" | "Blackwell" | "Blackwell Ultra" => true,
        "CDNA3" | "CDNA4" => true,
        _ => false,
    };
    if doubled { plain(2.0 * dense) } else { String::new() }
}

/// Link name, rate per direction and GPUs per bridge.
fn link(row: &Cells<'_>) -> (String, String, String) {
    let Some(both) = row.number("interconnect_gb_s_bidir") else { return Default::default() };
    let vendor = row.get("vendor");
    let mut one_way = both / 2.0;
    let name = match (vendor, row.get("nvlink_gen")) {
        ("NVIDIA", generation) if !generation.is_empty() => format!("NVLink {generation}"),
        ("AMD", _) if row.get("form_factor") == "Helios module" => "UALink over Ethernet".into(),
        ("AMD", _) => "Infinity Fabric".into(),
        _ => "RoCE".into(),
    };
    // 24 Ethernet ports, of which 21 reach the other seven and 3 leave the node
    if matches!(row.get("id"), "intel-gaudi2" | "intel-gaudi3") {
        one_way *= 21.0 / 24.0;
    }
    let bridge = match row.get("id") {
        _ if row.get("form_factor") != "PCIe" => "",
        "nvidia-h200-nvl" | "amd-mi210" | "amd-mi100" => "4",
        _ => "2",
    };
    (name, plain(one_way), bridge.into())
}

pub(crate) fn import(folder: &Path, out: &Path, texts: &mut Texts) -> Result<()> {
    let gpus = Rows::read(&folder.join("gpus.csv"))?;
    let logged = logged_memory(folder)?;
    let mut rows = Vec::new();
    for row in gpus.cells() {
        let id = row.get("id");
        let nominal = row.number("memory_gb").ok_or_else(|| format!("{id}: no memory"))?;
        // a driver figure that repeats the label is no driver figure
        let usable = row.number("memory_gib_usable").filter(|gib| (gib - nominal).abs() > 1e-9);
        let (cuda_total, memory_source) = match logged.get(id) {
            Some((gib, source)) => (plain(*gib), texts.id(source)),
            None => Default::default(),
        };
        let (link_name, link_rate, bridge) = link(&row);
        let number = |name: &str| row.number(name).map(plain).unwrap_or_default();
        let notes = row.get("notes");
        let preliminary = notes.contains("PRELIMINARY");
        let mut cells = vec![
            id.to_owned(),
            row.get("vendor").to_lowercase(),
            row.get("name").to_owned(),
            row.get("architecture").to_owned(),
            row.get("form_factor").to_owned(),
            plain(nominal),
            usable.map(plain).unwrap_or_default(),
            cuda_total,
            memory_source,
            row.get("memory_type").to_owned(),
            number("memory_bandwidth_gb_s"),
        ];
        for kind in ["fp64", "fp64_tensor", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4"] {
            cells.push(number(&format!("{kind}_tflops")));
        }
        cells.push(number("int8_tops"));
        for kind in ["tf32", "bf16", "fp16", "fp8", "fp4"] {
            cells.push(sparse(&row, kind, row.number(&format!("{kind}_tflops"))));
        }
        // without tensor cores for INT8 (DP4A) nothing is sparse; the architecture rule covers that
        cells.push(sparse(&row, "int8", row.number("int8_tops")));
        let notes = notes.replace("PRELIMINARY vendor targets", "vendor targets").replace("PRELIMINARY. ", "");
        cells.extend([
            number("tdp_w"),
            link_name,
            row.get("nvlink_gen").to_owned(),
            link_rate,
            bridge,
            row.get("pcie_gen").to_owned(),
            row.get("pcie_lanes").to_owned(),
            row.get("mig_slices").to_owned(),
            row.get("launch_year").to_owned(),
            row.get("compute_capability").to_owned(),
            if preliminary { "yes".into() } else { String::new() },
            texts.id(&public(row.get("source"))),
            row.get("cross_check").to_owned(),
            public(&notes),
        ]);
        rows.push(cells);
    }
    write(&out.join("gpus.csv"), HEADER, &rows)
}
