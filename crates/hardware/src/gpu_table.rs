//! The GPU table: one row, one GPU model.

use units::{Bytes, BytesPerSec, FlopPerSec, Watts};

use crate::finding::Finding;
use crate::gpu::{ComputeType, Gpu, GpuMemory, LinkPort, PciePort, Peaks, Vendor};
use crate::memory::MemoryFacts;
use crate::sources::Sources;
use crate::table::{Row, read_table, shorten};

crate::columns!(
    id,
    vendor,
    name,
    memory_nominal_gb,
    architecture,
    form_factor,
    memory_usable_gib,
    memory_cuda_total_gib,
    memory_source,
    memory_kind,
    memory_bandwidth_gb_per_s,
    fp64_dense_tflops,
    fp64_tensor_dense_tflops,
    fp32_dense_tflops,
    tf32_dense_tflops,
    bf16_dense_tflops,
    fp16_dense_tflops,
    fp8_dense_tflops,
    fp4_dense_tflops,
    int8_dense_tops,
    tf32_sparse_tflops,
    bf16_sparse_tflops,
    fp16_sparse_tflops,
    fp8_sparse_tflops,
    fp4_sparse_tflops,
    int8_sparse_tops,
    tdp_w,
    link_name,
    nvlink_generation,
    link_gb_per_s_per_direction,
    link_bridge_gpus,
    pcie_generation,
    pcie_lanes,
    mig_slices,
    launch_year,
    compute_capability,
    preliminary,
    source,
    cross_check,
    notes,
);

const DENSE: [(Col, ComputeType); 9] = [
    (Col::fp64_dense_tflops, ComputeType::Fp64),
    (Col::fp64_tensor_dense_tflops, ComputeType::Fp64Tensor),
    (Col::fp32_dense_tflops, ComputeType::Fp32),
    (Col::tf32_dense_tflops, ComputeType::Tf32),
    (Col::bf16_dense_tflops, ComputeType::Bf16),
    (Col::fp16_dense_tflops, ComputeType::Fp16),
    (Col::fp8_dense_tflops, ComputeType::Fp8),
    (Col::fp4_dense_tflops, ComputeType::Fp4),
    (Col::int8_dense_tops, ComputeType::Int8),
];

const SPARSE: [(Col, ComputeType); 6] = [
    (Col::tf32_sparse_tflops, ComputeType::Tf32),
    (Col::bf16_sparse_tflops, ComputeType::Bf16),
    (Col::fp16_sparse_tflops, ComputeType::Fp16),
    (Col::fp8_sparse_tflops, ComputeType::Fp8),
    (Col::fp4_sparse_tflops, ComputeType::Fp4),
    (Col::int8_sparse_tops, ComputeType::Int8),
];

/// Reads GPU rows; rows with errors in what identifies a GPU or in its memory are left out, each with a finding.
pub(crate) fn read_gpus(file: &str, csv: &str, sources: &Sources, findings: &mut Vec<Finding>) -> Vec<(Gpu, u64)> {
    let mut gpus: Vec<(Gpu, u64)> = Vec::new();
    let mut seen: std::collections::HashSet<String> = std::collections::HashSet::new();
    read_table(file, csv, COLUMNS, 4, findings, |row| {
        let Some(gpu) = read_gpu(row, sources) else { return };
        if !seen.insert(gpu.id.clone()) {
            row.error(format!("gpu `{}` stands twice in this file", shorten(&gpu.id)));
            return;
        }
        gpus.push((gpu, row.line));
    });
    gpus
}

/// True where a text can be an id: lower-case letters, digits, `-`, `.`; at most 80 long.
fn is_gpu_id(text: &str) -> bool {
    text.len() <= 80 && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.'))
}

fn read_gpu(row: &mut Row<'_>, sources: &Sources) -> Option<Gpu> {
    let id = row.required(Col::id as usize)?;
    if !is_gpu_id(id) {
        row.error(format!("gpu id `{}` has other characters than a-z, 0-9, `-` and `.`", shorten(id)));
        return None;
    }
    let vendor_text = row.required(Col::vendor as usize)?;
    let Some(vendor) = Vendor::parse(vendor_text) else {
        row.error(format!("vendor `{}` is none of nvidia, amd, intel, apple", shorten(vendor_text)));
        return None;
    };
    if id.split_once('-').map(|(v, _)| v) != Some(vendor.name()) {
        row.error(format!("gpu id `{id}` does not start with its vendor `{}-`", vendor.name()));
        return None;
    }
    let nominal_gb = row.number(Col::memory_nominal_gb as usize, 0.5, 4096.0);
    let Some(nominal_gb) = nominal_gb else {
        if row.text(Col::memory_nominal_gb as usize).is_empty() {
            row.error(format!("gpu `{id}` has no `memory_nominal_gb`"));
        }
        return None;
    };
    let name = row.filled(Col::name as usize).unwrap_or(id);
    let kind = row.text(Col::memory_kind as usize);
    let facts = MemoryFacts {
        vendor,
        name,
        kind,
        nominal_gb,
        usable_gib: row.number(Col::memory_usable_gib as usize, 0.25, 4096.0),
        cuda_total_gib: row.number(Col::memory_cuda_total_gib as usize, 0.25, 4096.0),
    };
    if let Some(usable) = facts.usable_gib {
        if usable > nominal_gb {
            row.error(format!("usable memory {usable} GiB is more than the label's {nominal_gb} GB"));
        } else if usable < nominal_gb * 0.6 {
            row.warning(format!("usable memory {usable} GiB is less than 60 % of the label's {nominal_gb} GB"));
        }
        if facts.cuda_total_gib.is_some_and(|c| c > usable * 1.005) {
            row.error("an engine sees more memory than the driver reports");
        }
    }
    let (usable, cuda_total) = facts.resolve();
    let bandwidth = row.number(Col::memory_bandwidth_gb_per_s as usize, 1.0, 200_000.0);
    if bandwidth.is_none() && row.text(Col::memory_bandwidth_gb_per_s as usize).is_empty() {
        row.error(format!("gpu `{id}` has no `memory_bandwidth_gb_per_s`"));
    }
    let bandwidth = bandwidth?;
    if kind.starts_with("HBM") && bandwidth < 150.0 {
        row.warning(format!("{bandwidth} GB/s is slow for {kind}; is it in TB/s?"));
    }
    let peaks = read_peaks(row);
    let link = read_link(row, bandwidth);
    let pcie = match (row.count(Col::pcie_generation as usize, 8), row.count(Col::pcie_lanes as usize, 32)) {
        (Some(generation), Some(lanes)) if generation > 0 && lanes > 0 => {
            Some(PciePort { generation: generation as u8, lanes: lanes as u8 })
        }
        // a generation without lanes is a full slot
        (Some(generation), None) if generation > 0 => Some(PciePort { generation: generation as u8, lanes: 16 }),
        _ => None,
    };
    if let (Some(link), Some(pcie)) = (&link, pcie)
        && link.per_direction < pcie.per_direction()
    {
        row.warning(format!("its {} is slower than its PCIe port", link.name));
    }
    Some(Gpu {
        id: id.to_owned(),
        vendor,
        name: name.to_owned(),
        architecture: row.text(Col::architecture as usize).to_owned(),
        form_factor: row.text(Col::form_factor as usize).to_owned(),
        memory: GpuMemory {
            nominal: Bytes::from_gb(nominal_gb),
            usable,
            cuda_total,
            bandwidth: BytesPerSec(bandwidth * 1e9),
            kind: kind.to_owned(),
            unified: kind.contains("unified"),
        },
        peaks,
        tdp: row.number(Col::tdp_w as usize, 1.0, 20_000.0).map(Watts),
        link,
        pcie,
        mig_slices: row.count(Col::mig_slices as usize, 64).map(|n| n as u8),
        launch_year: row.number(Col::launch_year as usize, 2000.0, 2100.0).map(|y| y as u16),
        compute_capability: row.filled(Col::compute_capability as usize).map(str::to_owned),
        preliminary: row.flag(Col::preliminary as usize).unwrap_or(false),
        source: read_source(row, sources),
        cross_check: row.text(Col::cross_check as usize).to_owned(),
        notes: row.text(Col::notes as usize).to_owned(),
    })
}

/// The row's source, and that of its cuda_total where it has one of its own.
fn read_source(row: &Row<'_>, sources: &Sources) -> String {
    let source = sources.text(row.text(Col::source as usize));
    match row.filled(Col::memory_source as usize) {
        Some(memory) => format!("{source}; cuda_total: {}", sources.text(memory)),
        None => source.to_string(),
    }
}

fn read_peaks(row: &mut Row<'_>) -> Peaks {
    let mut peaks = Peaks::default();
    for (column, kind) in DENSE {
        let tera = row.number(column as usize, 0.001, 1_000_000.0);
        peaks.set_dense(kind, tera.map(|t| FlopPerSec(t * 1e12)));
    }
    for (wide, narrow) in [(ComputeType::Bf16, ComputeType::Fp8), (ComputeType::Fp8, ComputeType::Fp4)] {
        if let (Some(slow), Some(fast)) = (peaks.dense(wide), peaks.dense(narrow))
            && fast < slow
        {
            row.warning(format!("dense {} is below dense {}; is one of them sparse?", narrow.name(), wide.name()));
        }
    }
    for (column, kind) in SPARSE {
        let Some(tera) = row.number(column as usize, 0.001, 2_000_000.0) else { continue };
        let sparse = FlopPerSec(tera * 1e12);
        match peaks.dense(kind) {
            Some(dense) if dense >= sparse => row.error(format!(
                "the sparse {} figure {tera} TFLOPS is not above the dense one {}",
                kind.name(),
                dense.0 / 1e12
            )),
            Some(dense) if sparse.0 > 2.06 * dense.0 => row.error(format!(
                "the sparse {} figure {tera} TFLOPS is more than twice the dense one {}",
                kind.name(),
                dense.0 / 1e12
            )),
            Some(_) => peaks.set_sparse(kind, Some(sparse)),
            None => row.error(format!("a sparse {} figure without a dense one", kind.name())),
        }
    }
    peaks
}

fn read_link(row: &mut Row<'_>, memory_gb_per_s: f64) -> Option<LinkPort> {
    let rate = row.number(Col::link_gb_per_s_per_direction as usize, 0.1, 100_000.0)?;
    if rate > memory_gb_per_s {
        row.error(format!(
            "a link of {rate} GB/s per direction is faster than the memory's {memory_gb_per_s} GB/s; is it a sum of both directions?"
        ));
        return None;
    }
    let bridge = row.count(Col::link_bridge_gpus as usize, 16);
    if bridge.is_some_and(|n| n < 2) {
        row.error("a bridge joins at least 2 GPUs");
    }
    let generation = row.count(Col::nvlink_generation as usize, 12).map(|g| g as u8);
    let fallback = generation.map_or_else(|| "link".to_owned(), |g| format!("NVLink {g}"));
    Some(LinkPort {
        name: row.filled(Col::link_name as usize).map_or(fallback, str::to_owned),
        nvlink_generation: generation,
        per_direction: BytesPerSec(rate * 1e9),
        needs_bridge: bridge.is_some(),
        bridge_gpus: bridge.unwrap_or(0),
    })
}
