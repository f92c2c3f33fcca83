//! What ranks exchange, and over which link.

use hardware::{LinkKind, NodeShape, Topology};
use units::{Basis, Seconds};

use crate::curves::{CollectiveCurve, Curves};

/// A group of ranks and the link that joins them.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    ranks: u32,
    /// Ranks that reach each other inside a node or NVLink domain.
    inner: u32,
    inner_bandwidth: f64,
    inner_link: String,
    /// Rate of one rank's share of the node's NICs; unused where all ranks are inside.
    outer_bandwidth: f64,
    /// Assumed where a rate is not known; how the node is wired stands in its shape.
    pub(crate) basis: Basis,
}

/// Rate of a node's fabric where no source gives it: one 100 Gb/s port, a guess on the low side.
const UNKNOWN_FABRIC_BYTES_PER_S: f64 = 12.5e9;

impl Group {
    /// `ranks` consecutive GPUs over nodes of this shape.
    pub(crate) fn new(node: &NodeShape, ranks: u32, notes: &mut Vec<String>) -> Self {
        let ranks = ranks.max(1);
        let per_node = node.gpus.max(1);
        let inner = match node.topology {
            // the domain of a rack spans nodes
            Topology::NvSwitch { domain } if ranks <= domain => ranks,
            _ => ranks.min(per_node),
        };
        let (rate, kind) = node.peer_bandwidth(inner);
        let generation = node.gpu.link.as_ref().and_then(|l| l.nvlink_generation);
        let inner_link = match (kind, generation) {
            (LinkKind::NvSwitch | LinkKind::NvLink, Some(g)) => format!("nvlink-{g}"),
            (LinkKind::NvSwitch | LinkKind::NvLink, None) => "nvlink-other".to_owned(),
            (LinkKind::InfinityFabric, _) => "mesh-infinity_fabric".to_owned(),
            (LinkKind::RoCE, _) => "mesh-roce".to_owned(),
            _ => format!("pcie-{}", node.gpu.pcie.map_or(3, |p| p.generation)),
        };
        let mut basis = Basis::Measured;
        if inner > 1 && kind == LinkKind::Pcie && node.gpu.pcie.is_none() {
            basis = Basis::Assumed;
            notes.push(format!("PCIe of `{}` is not known: the slowest in service assumed", node.gpu.id));
        }
        let mut outer_bandwidth = f64::INFINITY;
        if ranks > inner {
            let known = node.inter_node_bandwidth_per_gpu().map(|r| r.0).filter(|r| *r > 0.0);
            outer_bandwidth = known.unwrap_or_else(|| {
                basis = Basis::Assumed;
                notes.push(format!("the fabric of `{}` is not known: 100 Gb/s per node assumed", node.id));
                UNKNOWN_FABRIC_BYTES_PER_S / f64::from(per_node)
            });
        }
        Self { ranks, inner, inner_bandwidth: rate.0, inner_link, outer_bandwidth, basis }
    }

    fn nodes(&self) -> u32 {
        self.ranks.div_ceil(self.inner)
    }

    /// Prepares the curves of the collectives of this group.
    pub(crate) fn collectives(&self, curves: &Curves, fused: bool) -> Collectives {
        let (inner, nodes) = (self.inner, self.nodes());
        // what a single rank never runs needs no curve
        let inside = |op: &str| if inner > 1 { curves.collective(op, &self.inner_link, inner) } else { SILENT };
        let across = |op: &str| if nodes > 1 { curves.collective(op, "fabric", nodes) } else { SILENT };
        Collectives {
            ranks: f64::from(self.ranks),
            inner: f64::from(inner),
            nodes: f64::from(nodes),
            all_reduce: inside("all_reduce"),
            fused: if fused { curves.fused_all_reduce(&self.inner_link, inner) } else { None },
            gather: inside("all_gather"),
            exchange: inside("all_to_all"),
            outer_reduce: across("all_reduce"),
            outer_gather: across("all_gather"),
            outer_exchange: across("all_to_all"),
            inner_bandwidth: self.inner_bandwidth,
            outer_bandwidth: self.outer_bandwidth,
        }
    }
}

/// Timed collectives of one group; all are zero for a single rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Collectives {
    ranks: f64,
    inner: f64,
    nodes: f64,
    all_reduce: CollectiveCurve,
    fused: Option<CollectiveCurve>,
    gather: CollectiveCurve,
    outer_gather: CollectiveCurve,
    exchange: CollectiveCurve,
    outer_reduce: CollectiveCurve,
    outer_exchange: CollectiveCurve,
    inner_bandwidth: f64,
    outer_bandwidth: f64,
}

/// Stands where a group has no such collective.
const SILENT: CollectiveCurve =
    CollectiveCurve { alpha: Seconds::ZERO, ramp: Seconds::ZERO, efficiency: 1.0, basis: Basis::Measured };

const MEGABYTE: f64 = 1e6;

fn timed(curve: &CollectiveCurve, wire: f64, size: f64, bandwidth: f64) -> f64 {
    curve.alpha.0
        + curve.ramp.0 * (size.min(MEGABYTE) / MEGABYTE).sqrt()
        + wire / (bandwidth * curve.efficiency).max(1.0)
}

impl Collectives {
    /// All-reduce of `bytes` on every rank: `2 (g − 1) / g` of them cross each rank's link; across nodes the inner
    /// ranks reduce first and each sends its share.
    pub(crate) fn all_reduce(&self, bytes: f64) -> f64 {
        let mut time = 0.0;
        if self.inner > 1.0 {
            let wire = 2.0 * (self.inner - 1.0) / self.inner * bytes;
            let plain = timed(&self.all_reduce, wire, bytes, self.inner_bandwidth);
            let fused = self.fused.map_or(plain, |curve| timed(&curve, wire, bytes, self.inner_bandwidth));
            time += plain.min(fused);
        }
        if self.nodes > 1.0 {
            let share = bytes / self.inner;
            let wire = 2.0 * (self.nodes - 1.0) / self.nodes * share;
            time += timed(&self.outer_reduce, wire, share, self.outer_bandwidth);
        }
        time
    }

    /// All-gather (or reduce-scatter) that leaves `bytes` on every rank: `(g − 1) / g` of them cross its link.
    pub(crate) fn gather(&self, bytes: f64) -> f64 {
        let mut time = 0.0;
        if self.inner > 1.0 {
            let wire = (self.inner - 1.0) / self.inner * bytes;
            time += timed(&self.gather, wire, bytes, self.inner_bandwidth);
        }
        if self.nodes > 1.0 {
            let wire = (self.nodes - 1.0) / self.nodes * bytes / self.inner;
            time += timed(&self.outer_gather, wire, bytes / self.inner, self.outer_bandwidth);
        }
        time
    }

    /// Every rank sends `bytes` spread over all ranks.
    pub(crate) fn all_to_all(&self, bytes: f64) -> f64 {
        let mut time = 0.0;
        if self.inner > 1.0 {
            let wire = (self.inner - 1.0) / self.ranks * bytes;
            time += timed(&self.exchange, wire, bytes, self.inner_bandwidth);
        }
        if self.nodes > 1.0 {
            let wire = (self.ranks - self.inner) / self.ranks * bytes;
            time += timed(&self.outer_exchange, wire, bytes, self.outer_bandwidth);
        }
        time
    }

    /// `bytes` from one rank to its neighbour in the next stage, over the slowest link of the group.
    pub(crate) fn send(&self, bytes: f64) -> f64 {
        if self.nodes > 1.0 {
            timed(&self.outer_exchange, bytes, bytes, self.outer_bandwidth)
        } else if self.ranks > 1.0 {
            timed(&self.exchange, bytes, bytes, self.inner_bandwidth)
        } else {
            0.0
        }
    }

    /// The weakest basis among the curves that count.
    pub(crate) fn basis(&self) -> Basis {
        let mut basis = Basis::Measured;
        if self.inner > 1.0 {
            basis = basis.weakest(self.all_reduce.basis);
        }
        if self.nodes > 1.0 {
            basis = basis.weakest(self.outer_reduce.basis);
        }
        basis
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hardware::{Hardware, OnSpec};

    fn group(on: &str, ranks: u32) -> (Collectives, Vec<String>) {
        let node = on.parse::<OnSpec>().unwrap().resolve(&Hardware::embedded()).unwrap().0;
        let mut notes = Vec::new();
        let group = Group::new(&node, ranks, &mut notes);
        (group.collectives(Curves::embedded(), true), notes)
    }

    #[test]
    fn slower_links_take_longer() {
        let reduce = |on: &str, ranks, bytes| group(on, ranks).0.all_reduce(bytes);
        assert_eq!(reduce("8xh100-sxm", 1, 1e6), 0.0);
        // 16 tokens of a 70B model: the published two-way and eight-way latencies of fused kernels, 7-14 us
        let small = reduce("8xh100-sxm", 8, 16.0 * 8192.0 * 2.0);
        assert!((12e-6..20e-6).contains(&small), "{small}");
        assert!(reduce("8xh100-sxm", 8, 64e6) < reduce("8xh100-pcie", 8, 64e6));
        assert!(reduce("dgx-h100", 8, 64e6) < reduce("dgx-h100", 16, 64e6));
        // a rack of 72 has no slower step at its tray's edge
        let (rack, notes) = group("4xgb200", 72);
        assert!(rack.all_reduce(64e6) < 1e-3 && notes.is_empty(), "{notes:?}");
    }

    #[test]
    fn an_unknown_fabric_is_said() {
        let (_, notes) = group("8xh100-sxm", 16);
        assert_eq!(notes, ["the fabric of `generic/8xh100-sxm` is not known: 100 Gb/s per node assumed"]);
        assert!(group("dgx-h100", 16).1.is_empty());
    }
}
