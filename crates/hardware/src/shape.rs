//! What a node can move: between its GPUs, and out of the box.

use units::{Basis, BytesPerSec};

use crate::gpu::Gpu;
use crate::node::{NodeShape, NodeType, Topology};

/// What a collective runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkKind {
    /// A single GPU: nothing moves.
    None,
    /// NVLink through switches.
    NvSwitch,
    /// NVLink from GPU to GPU (four-GPU boards, hybrid cube mesh, bridges).
    NvLink,
    /// AMD Infinity Fabric.
    InfinityFabric,
    /// Ethernet ports on the accelerator itself (Gaudi).
    RoCE,
    /// PCIe, through the host.
    Pcie,
    /// The network between nodes.
    Network,
}

impl LinkKind {
    /// The word used in output and data files.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::NvSwitch => "nvswitch",
            Self::NvLink => "nvlink",
            Self::InfinityFabric => "infinity-fabric",
            Self::RoCE => "roce",
            Self::Pcie => "pcie",
            Self::Network => "network",
        }
    }
}

/// PCIe of a GPU whose port no source gives: generation 3, x16; the slowest still in service.
const UNKNOWN_PCIE: BytesPerSec = BytesPerSec(15.75e9);

/// GPUs that one NVLink switch domain can join at most, from the form factor: a baseboard of 8, a rack of 72 (NVL72 and
/// Helios), 32 for GH200 (NVL32).
pub fn rack_domain(gpu: &Gpu) -> u32 {
    let generation = gpu.link.as_ref().and_then(|l| l.nvlink_generation);
    match (gpu.form_factor.as_str(), generation) {
        ("superchip", Some(4)) => 32,
        ("superchip" | "Helios module", _) => 72,
        _ => 8,
    }
}

impl NodeShape {
    /// `COUNT x GPU` of no particular maker: the topology is assumed from the form factor.
    ///
    /// NVIDIA boards with NVLink 3 or later hang on switches, earlier ones (P100, V100) in a mesh; OAM boards form a
    /// mesh; superchips share their rack's domain; cards have PCIe only, since a bridge must be bought and plugged.
    pub fn generic(gpu: &Gpu, gpus: u32) -> Self {
        let gpus = gpus.max(1);
        let linked = gpu.link.as_ref().filter(|_| gpu.is_baseboard());
        let topology = match linked {
            _ if gpus == 1 => Topology::Single,
            Some(link) => match (gpu.form_factor.as_str(), link.nvlink_generation) {
                ("superchip" | "Helios module", _) if gpus <= rack_domain(gpu) => {
                    Topology::NvSwitch { domain: rack_domain(gpu) }
                }
                (_, Some(generation)) if generation >= 3 && gpus <= rack_domain(gpu) => {
                    Topology::NvSwitch { domain: gpus }
                }
                (_, Some(1 | 2)) if gpus <= 8 => Topology::Mesh,
                ("OAM", _) if gpus <= 8 => Topology::Mesh,
                _ => Topology::Pcie,
            },
            None => Topology::Pcie,
        };
        Self {
            id: format!("generic/{gpus}x{}", gpu.short_id()),
            gpu: gpu.clone(),
            gpus,
            topology,
            topology_basis: if gpus == 1 { Basis::Derived } else { Basis::Assumed },
            fabric: None,
            ram: None,
            nvme: None,
        }
    }

    /// The shape of a node type; `None` for partitioned instances and where `gpu` is not its GPU.
    pub fn from_type(node: &NodeType, gpu: &Gpu) -> Option<Self> {
        let gpus = node.whole_gpus()?;
        if node.gpu != gpu.id {
            return None;
        }
        Some(Self {
            gpu: gpu.clone(),
            gpus,
            topology: node.topology.clone(),
            topology_basis: Basis::Derived,
            fabric: node.fabric.clone(),
            ram: node.ram,
            nvme: node.nvme,
            id: node.id.clone(),
        })
    }

    /// What the PCIe port of one GPU moves, one direction; generation 3 x16 where no source gives the port.
    pub fn pcie_per_direction(&self) -> BytesPerSec {
        self.gpu.pcie.map_or(UNKNOWN_PCIE, |p| p.per_direction())
    }

    fn port_kind(&self, switched: bool) -> LinkKind {
        let link = self.gpu.link.as_ref();
        match link {
            Some(l) if l.nvlink_generation.is_some() && switched => LinkKind::NvSwitch,
            Some(l) if l.nvlink_generation.is_some() => LinkKind::NvLink,
            Some(l) if l.name.contains("RoCE") => LinkKind::RoCE,
            Some(l) if l.name.contains("Infinity") => LinkKind::InfinityFabric,
            // a switched domain of another make (UALink over Ethernet)
            Some(_) if switched => LinkKind::NvSwitch,
            Some(_) => LinkKind::NvLink,
            None => LinkKind::Pcie,
        }
    }

    /// What each GPU can send, one direction, in a collective over `ranks` GPUs of this node, and over what.
    ///
    /// Switches give every rank its whole port. Without switches a port is split evenly over the peers it is wired to:
    /// among `r` of `n` meshed GPUs a rank uses `(r - 1) / (n - 1)` of it (a seventh towards one peer among eight). A
    /// bridge serves its group alone; as soon as one rank is outside, everything waits for PCIe. Ranks beyond the node
    /// go by [`Self::inter_node_bandwidth_per_gpu`], the slower of the two, unless the NVLink domain spans nodes;
    /// where the fabric is unknown that is zero, and it is for the caller to say so.
    pub fn peer_bandwidth(&self, ranks: u32) -> (BytesPerSec, LinkKind) {
        if ranks <= 1 {
            return (BytesPerSec::ZERO, LinkKind::None);
        }
        let port = self.gpu.link.as_ref().map(|l| l.per_direction);
        let share = |group: u32| f64::from(ranks - 1) / f64::from(group.max(2) - 1);
        match (&self.topology, port) {
            (Topology::NvSwitch { domain }, Some(port)) if ranks <= *domain => (port, self.port_kind(true)),
            _ if ranks > self.gpus => self.beyond(),
            (Topology::Mesh, Some(port)) => (port * share(self.gpus).min(1.0), self.port_kind(false)),
            (Topology::Bridges { group }, Some(port)) if ranks <= *group => {
                (port * share(*group).min(1.0), self.port_kind(false))
            }
            _ => (self.pcie_per_direction(), LinkKind::Pcie),
        }
    }

    fn beyond(&self) -> (BytesPerSec, LinkKind) {
        let out = self.inter_node_bandwidth_per_gpu().unwrap_or(BytesPerSec::ZERO);
        let inside = self.peer_bandwidth(self.gpus).0;
        // one GPU per node has nothing inside to wait for
        (if self.gpus > 1 { out.min(inside) } else { out }, LinkKind::Network)
    }

    /// What each GPU can send out of the node when all do, one direction; `None` where the fabric is unknown.
    pub fn inter_node_bandwidth_per_gpu(&self) -> Option<BytesPerSec> {
        let rate = self.fabric.as_ref()?.node_rate?;
        Some(rate / f64::from(self.gpus.max(1)))
    }

    /// True where `ranks` GPUs cannot be had in one node.
    pub fn crosses_node(&self, ranks: u32) -> bool {
        ranks > self.gpus
    }

    /// True where `ranks` GPUs leave NVLink, mesh or bridge, whether inside the node or across nodes.
    pub fn crosses_domain(&self, ranks: u32) -> bool {
        ranks > self.domain()
    }
}
