//! The traps that public pages fall into, held against the embedded catalog.

#![allow(clippy::unwrap_used)]

use hardware::memory::{SHARE_GDDR, SHARE_GDDR_ECC, SHARE_HBM};
use hardware::{ComputeType, Gpu, Hardware, LinkKind, NodeShape, Topology, Vendor};
use units::{Basis, Bytes, BytesPerSec, FlopPerSec};

fn gpu(id: &str) -> Gpu {
    Hardware::embedded().find_gpu(id).unwrap().clone()
}

fn near(have: BytesPerSec, gb: f64) {
    assert!((have.0 / 1e9 - gb).abs() < 0.01 * gb, "{} GB/s, not {gb}", have.0 / 1e9);
}

#[test]
fn nvlink4_is_seven_times_pcie5_not_fourteen() {
    let h100 = gpu("h100-sxm");
    let link = h100.link.unwrap().per_direction;
    let pcie = h100.pcie.unwrap().per_direction();
    near(link, 450.0);
    near(pcie, 63.0);
    assert!((link / pcie - 7.14).abs() < 0.02, "{}", link / pcie);
}

#[test]
fn peaks_are_dense_and_sparse_is_kept_apart() {
    let h100 = gpu("h100-sxm");
    assert_eq!(h100.peaks.dense(ComputeType::Fp8), Some(FlopPerSec(1978.9e12)));
    assert_eq!(h100.peaks.sparse(ComputeType::Fp8), Some(FlopPerSec(3957.8e12)));
    assert_eq!(h100.peaks.dense(ComputeType::Bf16).unwrap().0 * 8.0, 7915.2e12);
    // Volta and Turing have no 2:4 sparsity, Blackwell Ultra's FP4 is not doubled by it
    assert_eq!(gpu("t4").peaks.sparse(ComputeType::Fp16), None);
    assert_eq!(gpu("gb300").peaks.sparse(ComputeType::Fp4), Some(FlopPerSec(20000e12)));
    assert_eq!(gpu("mi300x").peaks.sparse(ComputeType::Fp8), Some(FlopPerSec(5229.8e12)));
    assert_eq!(gpu("mi355x").peaks.sparse(ComputeType::Fp4), None);
    let hardware = Hardware::embedded();
    for gpu in hardware.gpus() {
        for kind in ComputeType::ALL {
            if let Some(sparse) = gpu.peaks.sparse(kind) {
                assert!(sparse > gpu.peaks.dense(kind).unwrap(), "{} {}", gpu.id, kind.name());
            }
        }
    }
}

#[test]
fn memory_three_ways() {
    let h100 = gpu("h100-sxm");
    assert_eq!(h100.memory.nominal, Bytes::from_gb(80.0));
    assert_eq!((h100.memory.usable.value, h100.memory.usable.basis), (Bytes::from_gib(79.6), Basis::Measured));
    assert_eq!((h100.memory.cuda_total.value, h100.memory.cuda_total.basis), (Bytes::from_gib(79.19), Basis::Measured));
    // the driver's figure is 85.5 decimal GB: more than the label in decimal, less than the label in binary
    assert!((h100.memory.usable.value.gb() - 85.47).abs() < 0.01);
    let h200 = gpu("h200-sxm");
    assert_eq!(h200.memory.usable.value, Bytes::from_gib(140.4));
    assert_eq!(h200.memory.cuda_total.value, Bytes::from_gib(139.8));
    assert_eq!(gpu("a10g").memory.usable.value, Bytes::from_gib(22.4));
    assert_eq!(gpu("rtx-3090").memory.cuda_total.value, Bytes::from_gib(23.58));
    // the source repeats "80": that is no driver figure
    let a100 = gpu("a100-sxm-80gb");
    assert_eq!((a100.memory.usable.value, a100.memory.usable.basis), (Bytes::from_gib(79.6), Basis::Assumed));
    assert_eq!((a100.memory.cuda_total.value, a100.memory.cuda_total.basis), (Bytes::from_gib(79.1), Basis::Assumed));
    // measured on the engine though the driver's figure is assumed
    let mi300x = gpu("mi300x");
    assert_eq!((mi300x.memory.usable.basis, mi300x.memory.cuda_total.basis), (Basis::Assumed, Basis::Measured));
    for gpu in Hardware::embedded().gpus() {
        let m = &gpu.memory;
        assert!(m.cuda_total.value <= m.usable.value, "{}", gpu.id);
        assert!(m.usable.value.gib() <= m.nominal.gb() + 1e-6, "{}", gpu.id);
    }
    assert!(gpu("gb10").memory.unified && gpu("apple-m3-ultra").memory.unified && gpu("mi300a").memory.unified);
    assert!(!h100.memory.unified);
    assert!(gpu("mi455x").preliminary && gpu("rubin-vr200").preliminary && !h100.preliminary);
}

#[test]
fn assumed_shares_are_the_medians_of_the_known_ones() {
    let hardware = Hardware::embedded();
    let median = |pick: &dyn Fn(&Gpu) -> bool| {
        let mut shares: Vec<f64> = hardware
            .gpus()
            .iter()
            .filter(|g| g.memory.usable.basis == Basis::Measured && g.vendor == Vendor::Nvidia && pick(g))
            .map(|g| g.memory.usable.value.gib() / g.memory.nominal.gb())
            .collect();
        shares.sort_by(f64::total_cmp);
        (shares[shares.len() / 2], shares.len())
    };
    let hbm = median(&|g| g.memory.kind.starts_with("HBM"));
    let ecc = median(&|g| g.memory.kind == "GDDR6" && !g.name.contains("RTX"));
    let plain = median(&|g| g.memory.kind.starts_with("GDDR") && g.name.contains("RTX"));
    for (share, (want, rows)) in [(SHARE_HBM, hbm), (SHARE_GDDR_ECC, ecc), (SHARE_GDDR, plain)] {
        assert!(rows >= 3 && (share - want).abs() < 0.0012, "{share} against {want} of {rows}");
    }
}

#[test]
fn cards_have_pcie_unless_a_bridge_is_stated() {
    let hardware = Hardware::embedded();
    let card = gpu("h100-pcie");
    assert!(card.link.as_ref().is_some_and(|l| l.needs_bridge && l.bridge_gpus == 2));
    assert_eq!(gpu("h200-nvl").link.unwrap().bridge_gpus, 4);
    let generic = NodeShape::generic(&card, 8);
    assert_eq!((generic.topology.clone(), generic.topology_basis), (Topology::Pcie, Basis::Assumed));
    assert_eq!(generic.id, "generic/8xh100-pcie");
    let (rate, kind) = generic.peer_bandwidth(2);
    near(rate, 63.0);
    assert_eq!(kind, LinkKind::Pcie);

    let bridged = hardware.shape(hardware.find_node("hyperstack/n3-H100x8-NVLink").unwrap()).unwrap();
    assert_eq!((bridged.topology.clone(), bridged.domain()), (Topology::Bridges { group: 2 }, 2));
    let (rate, kind) = bridged.peer_bandwidth(2);
    near(rate, 300.0);
    assert_eq!(kind, LinkKind::NvLink);
    let (rate, kind) = bridged.peer_bandwidth(4);
    near(rate, 63.0);
    assert_eq!(kind, LinkKind::Pcie);
}

#[test]
fn one_peer_of_a_mesh_gets_a_seventh() {
    let hardware = Hardware::embedded();
    let node = hardware.shape(hardware.find_node("mi300x-8-oam").unwrap()).unwrap();
    assert_eq!(node.topology, Topology::Mesh);
    near(node.peer_bandwidth(8).0, 448.0);
    near(node.peer_bandwidth(2).0, 64.0);
    near(node.peer_bandwidth(4).0, 192.0);
    assert_eq!(node.peer_bandwidth(8).1, LinkKind::InfinityFabric);
    // four H100 on a board without switches: a third each
    let four = hardware.shape(hardware.find_node("hgx-h100-4").unwrap()).unwrap();
    near(four.peer_bandwidth(2).0, 150.0);
    near(four.peer_bandwidth(4).0, 450.0);
    // Gaudi 3: 21 of its 24 ports reach the other seven
    let gaudi = hardware.shape(hardware.find_node("gaudi3-8").unwrap()).unwrap();
    near(gaudi.peer_bandwidth(8).0, 525.0);
    assert_eq!(gaudi.peer_bandwidth(8).1, LinkKind::RoCE);
}

#[test]
fn switches_give_the_whole_port_and_racks_span_nodes() {
    let hardware = Hardware::embedded();
    let dgx = hardware.shape(hardware.find_node("dgx-h100").unwrap()).unwrap();
    for ranks in 2..=8 {
        near(dgx.peer_bandwidth(ranks).0, 450.0);
    }
    assert_eq!(dgx.peer_bandwidth(1), (BytesPerSec::ZERO, LinkKind::None));
    // 8 x 400 Gbit/s: 50 GB/s per GPU
    near(dgx.inter_node_bandwidth_per_gpu().unwrap(), 50.0);
    let (rate, kind) = dgx.peer_bandwidth(16);
    near(rate, 50.0);
    assert_eq!(kind, LinkKind::Network);
    assert!(dgx.crosses_node(9) && !dgx.crosses_node(8));

    let tray = hardware.shape(hardware.find_node("gb200-nvl72-tray").unwrap()).unwrap();
    assert_eq!((tray.gpus, tray.domain()), (4, 72));
    near(tray.peer_bandwidth(72).0, 900.0);
    assert_eq!(tray.peer_bandwidth(72).1, LinkKind::NvSwitch);
    assert!(tray.crosses_node(8) && !tray.crosses_domain(8) && tray.crosses_domain(73));
    near(tray.peer_bandwidth(144).0, 50.0);

    let generic = NodeShape::generic(&gpu("h100-sxm"), 8);
    assert_eq!((generic.topology.clone(), generic.topology_basis), (Topology::NvSwitch { domain: 8 }, Basis::Assumed));
    assert_eq!(generic.inter_node_bandwidth_per_gpu(), None);
    assert_eq!(NodeShape::generic(&gpu("gb200"), 4).domain(), 72);
    assert_eq!(NodeShape::generic(&gpu("mi300x"), 8).topology, Topology::Mesh);
    assert_eq!(NodeShape::generic(&gpu("v100-sxm2-16gb"), 8).topology, Topology::Mesh);
    assert_eq!(NodeShape::generic(&gpu("rtx-4090"), 1).topology, Topology::Single);
    assert_eq!(NodeShape::generic(&gpu("rtx-4090"), 2).topology, Topology::Pcie);
    assert_eq!(NodeShape::generic(&gpu("gh200-96gb"), 2).domain(), 32);
}

#[test]
fn per_node_and_per_gpu_do_not_mix() {
    let hardware = Hardware::embedded();
    let b200 = hardware.find_node("dgx-b200").unwrap();
    let shape = hardware.shape(b200).unwrap();
    // the datasheet's 1,440 GB and 64 TB/s are of eight
    assert_eq!(shape.gpu.memory.nominal * u64::from(shape.gpus), Bytes::from_gb(1440.0));
    near(shape.gpu.memory.bandwidth, 8000.0);
    // a host NIC in the total is not for GPUs: 4 x 200, not 1,000 Gbit/s
    let a3 = hardware.find_node("gcp/a3-highgpu-8g").unwrap();
    near(a3.fabric.as_ref().unwrap().node_rate.unwrap(), 100.0);
    // partitioned instances have no shape
    let part = hardware.find_node("aws/g6f.xlarge").unwrap();
    assert_eq!((part.whole_gpus(), hardware.shape(part)), (None, None));
}

#[test]
fn bridges_of_four_split_the_port_and_unified_memory_is_what_engines_see() {
    let nvl = gpu("h200-nvl");
    let mut node = NodeShape::generic(&nvl, 8);
    node.topology = Topology::Bridges { group: 4 };
    near(node.peer_bandwidth(4).0, 450.0);
    near(node.peer_bandwidth(2).0, 150.0);
    near(node.peer_bandwidth(8).0, 63.0);
    // a single-GPU node of a gang has nothing inside; without a known fabric nothing is promised
    let single = NodeShape::generic(&gpu("h100-sxm"), 1);
    assert_eq!(single.peer_bandwidth(2), (BytesPerSec::ZERO, LinkKind::Network));
    let spark = gpu("gb10");
    assert_eq!(spark.memory.cuda_total.value, Bytes::from_gib(120.695));
    assert_eq!((spark.memory.usable.value, spark.memory.usable.basis), (Bytes::from_gib(121.195), Basis::Assumed));
    assert_eq!(gpu("apple-m3-ultra").memory.usable.value, Bytes::from_gib(384.0));
    assert_eq!(Hardware::embedded().as_of(), Some("2026-11-30"));
}
