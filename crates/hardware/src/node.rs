//! One server: GPUs, how they reach each other, what leaves the box.

use units::{Basis, Bytes, BytesPerSec};

use crate::gpu::Gpu;

/// How the GPUs of a node reach each other.
#[derive(Clone, Debug, PartialEq)]
pub enum Topology {
    /// A single GPU: nothing to reach.
    Single,
    /// Every GPU reaches every other at the full rate of its port through switches; the domain may be larger than the node.
    NvSwitch {
        /// GPUs in the NVLink domain: 8 in a node of eight, 72 in a rack of 72.
        domain: u32,
    },
    /// Links run from GPU to GPU; one peer gets its share of the port (a seventh in a mesh of eight).
    Mesh,
    /// Cards joined by bridges in groups, PCIe between the groups.
    Bridges {
        /// GPUs that one bridge joins.
        group: u32,
    },
    /// PCIe only.
    Pcie,
}

impl Topology {
    /// The word used in data files and output.
    pub fn name(&self) -> String {
        match self {
            Self::Single => "single".into(),
            Self::NvSwitch { .. } => "nvswitch".into(),
            Self::Mesh => "mesh".into(),
            Self::Bridges { group } => format!("bridges of {group}"),
            Self::Pcie => "pcie".into(),
        }
    }
}

/// What leaves the node.
#[derive(Clone, Debug, PartialEq)]
pub struct Fabric {
    /// `InfiniBand NDR`, `EFA`, `RoCE`, `ENA`, …
    pub name: String,
    /// NICs for GPU traffic, where known.
    pub nics: Option<u32>,
    /// Rate of one NIC, one direction.
    pub nic_rate: Option<BytesPerSec>,
    /// All NICs of the node together, one direction.
    pub node_rate: Option<BytesPerSec>,
}

/// A kind of server, as a maker or a provider names it.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeType {
    /// Exact id: `dgx-h100`, `aws-p5.48xlarge`.
    pub id: String,
    /// Maker or provider id: `nvidia`, `aws`.
    pub provider: String,
    /// The maker's or provider's own name: `p5.48xlarge`.
    pub name: String,
    /// Id of its GPU model.
    pub gpu: String,
    /// GPUs; a fraction for partitioned instances.
    pub gpu_count: f64,
    /// How they reach each other.
    pub topology: Topology,
    /// Virtual CPUs.
    pub vcpus: Option<u32>,
    /// Host memory.
    pub ram: Option<Bytes>,
    /// Local NVMe.
    pub nvme: Option<Bytes>,
    /// What leaves the node; `None` where no source says.
    pub fabric: Option<Fabric>,
    /// Announced, figures not final.
    pub preliminary: bool,
    /// Where the row comes from.
    pub source: String,
    /// Traps and remarks.
    pub notes: String,
}

impl NodeType {
    /// The GPU count as a whole number; `None` for partitioned instances.
    pub fn whole_gpus(&self) -> Option<u32> {
        (self.gpu_count >= 1.0 && self.gpu_count.fract() == 0.0).then_some(self.gpu_count as u32)
    }

    /// True for a maker's reference system (`dgx-h100`), which nobody rents under that name.
    pub fn is_reference(&self) -> bool {
        matches!(self.provider.as_str(), "nvidia" | "amd" | "intel")
    }
}

/// A concrete node that a model can be laid out on: a node type, or `COUNT x GPU` with an assumed topology.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeShape {
    /// Its GPU model.
    pub gpu: Gpu,
    /// Whole GPUs in the node.
    pub gpus: u32,
    /// How they reach each other.
    pub topology: Topology,
    /// Whether the topology is known or assumed from the form factor.
    pub topology_basis: Basis,
    /// What leaves the node, where known.
    pub fabric: Option<Fabric>,
    /// Host memory, where known.
    pub ram: Option<Bytes>,
    /// Local NVMe, where known.
    pub nvme: Option<Bytes>,
    /// The id of the node type, or `generic/8xh100-sxm`.
    pub id: String,
}

impl NodeShape {
    /// GPUs that reach each other without leaving NVLink (or the mesh); 1 on PCIe.
    pub fn domain(&self) -> u32 {
        match self.topology {
            Topology::Single | Topology::Pcie => 1,
            Topology::NvSwitch { domain } => domain,
            Topology::Mesh => self.gpus,
            Topology::Bridges { group } => group.min(self.gpus),
        }
    }
}
