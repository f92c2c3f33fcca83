//! What ranks exchange, and over which link.

use hardware::{NodeShape, Topology};
use units::Basis;

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
    pub(crate) basis: Basis,
}

/// Rate of a node's fabric where no source gives it: one 100 Gb/s port, a guess on the low side.
const UNKNOWN_FABRIC_BYTES_PER_S: f64 = 12.5e9;

impl Group {
    /// `ranks` consecutive GPUs over nodes of this shape.
    pub(crate) fn new(node: &NodeShape, ranks: u32, notes: &mut Vec<String>) -> Self {
        let per_node = node.gpus.max(1);
        let domain = node.domain().max(1);
        let gpu = &node.gpu;
        let port = gpu.link.as_ref();
        let pcie = gpu.pcie.map(|p| p.per_direction().0);
        let mut basis = node.topology_basis;
        let nvlink = |name: &str, generation: Option<u8>| match generation {
            Some(g) => format!("nvlink-{g}"),
            None => format!("mesh-{}", name.replace(' ', "_").to_lowercase()),
        };
        let (inner, inner_bandwidth, inner_link) = match (port, &node.topology) {
            (Some(port), Topology::NvSwitch { .. }) if domain > 1 => {
                (domain, port.per_direction.0, nvlink(&port.name, port.nvlink_generation))
            }
            (Some(port), Topology::Mesh) => {
                // one peer gets its share; a group uses the links to its own members only
                let peers = f64::from(per_node.saturating_sub(1).max(1));
                let used = f64::from(ranks.min(per_node).saturating_sub(1).max(1));
                (per_node, port.per_direction.0 * used / peers, nvlink(&port.name, port.nvlink_generation))
            }
            (Some(port), Topology::Bridges { group }) if ranks <= *group => {
                (*group, port.per_direction.0, nvlink(&port.name, port.nvlink_generation))
            }
            _ => {
                let generation = gpu.pcie.map_or(4, |p| p.generation);
                let rate = pcie.unwrap_or_else(|| {
                    if ranks > 1 {
                        basis = Basis::Assumed;
                        notes.push(format!("PCIe of `{}` is not known: generation 4 x16 assumed", gpu.id));
                    }
                    31.5e9
                });
                (per_node, rate, format!("pcie-{generation}"))
            }
        };
        let inner = inner.min(ranks.max(1)).max(1);
        let mut outer_bandwidth = f64::INFINITY;
        if ranks > inner {
            let fabric = node.fabric.as_ref();
            let rate =
                fabric.and_then(|f| f.node_rate.map(|r| r.0).or_else(|| Some(f.nic_rate?.0 * f64::from(f.nics?))));
            let rate = rate.filter(|r| *r > 0.0).unwrap_or_else(|| {
                basis = Basis::Assumed;
                notes.push(format!("the fabric of `{}` is not known: 100 Gb/s per node assumed", node.id));
                UNKNOWN_FABRIC_BYTES_PER_S
            });
            outer_bandwidth = rate / f64::from(per_node);
        }
        Self { ranks: ranks.max(1), inner, inner_bandwidth, inner_link, outer_bandwidth, basis }
    }

    fn nodes(&self) -> u32 {
        self.ranks.div_ceil(self.inner)
    }

    /// Prepares the curves of the collectives of this group.
    pub(crate) fn collectives(&self, curves: &Curves) -> Collectives {
        let inner = self.inner;
        let nodes = self.nodes();
        Collectives {
            ranks: f64::from(self.ranks),
            inner: f64::from(inner),
            nodes: f64::from(nodes),
            all_reduce: curves.collective("all_reduce", &self.inner_link, inner),
            gather: curves.collective("all_gather", &self.inner_link, inner),
            outer_gather: curves.collective("all_gather", "fabric", nodes),
            exchange: curves.collective("all_to_all", &self.inner_link, inner),
            outer_reduce: curves.collective("all_reduce", "fabric", nodes),
            outer_exchange: curves.collective("all_to_all", "fabric", nodes),
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
    gather: CollectiveCurve,
    outer_gather: CollectiveCurve,
    exchange: CollectiveCurve,
    outer_reduce: CollectiveCurve,
    outer_exchange: CollectiveCurve,
    inner_bandwidth: f64,
    outer_bandwidth: f64,
}

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
            time += timed(&self.all_reduce, wire, bytes, self.inner_bandwidth);
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
