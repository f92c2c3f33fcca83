//! All GPUs and node types: the embedded catalog, and what a user's own files add to it.

use std::collections::HashMap;

use crate::finding::Finding;
use crate::gpu::Gpu;
use crate::gpu_table::read_gpus;
use crate::lookup::{self, LookupError};
use crate::node::{NodeShape, NodeType};
use crate::node_table::read_nodes;
use crate::sources::Sources;

/// The embedded GPU table.
pub const GPUS_CSV: &str = include_str!("../data/gpus.csv");
/// The embedded node table.
pub const NODES_CSV: &str = include_str!("../data/nodes.csv");
/// The embedded table of sources for both.
pub const SOURCES_CSV: &str = include_str!("../data/sources.csv");

/// GPUs and node types by id.
#[derive(Clone, Debug, Default)]
pub struct Hardware {
    gpus: Vec<Gpu>,
    nodes: Vec<NodeType>,
    gpu_index: HashMap<String, usize>,
    node_index: HashMap<String, usize>,
    as_of: Option<String>,
}

impl Hardware {
    /// The catalog that Nodewise ships with.
    pub fn embedded() -> Self {
        Self::parse(GPUS_CSV, NODES_CSV, SOURCES_CSV).0
    }

    /// Reads a catalog from its three tables and says what is wrong with them.
    pub fn parse(gpus_csv: &str, nodes_csv: &str, sources_csv: &str) -> (Self, Vec<Finding>) {
        let mut findings = Vec::new();
        let sources = Sources::parse("sources.csv", sources_csv, &mut findings);
        let mut hardware = Self { as_of: sources.newest().map(str::to_owned), ..Self::default() };
        findings.extend(hardware.add_gpus("gpus.csv", gpus_csv, &sources));
        findings.extend(hardware.add_nodes("nodes.csv", nodes_csv, &sources));
        (hardware, findings)
    }

    /// Adds the GPUs of a table; one whose id exists replaces it. `file` is the name used in findings.
    pub fn add_gpus(&mut self, file: &str, csv: &str, sources: &Sources) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (gpu, _) in read_gpus(file, csv, sources, &mut findings) {
            match self.gpu_index.get(&gpu.id) {
                Some(&at) => self.gpus[at] = gpu,
                None => {
                    self.gpu_index.insert(gpu.id.clone(), self.gpus.len());
                    self.gpus.push(gpu);
                }
            }
        }
        findings
    }

    /// Adds the node types of a table; one whose id exists replaces it. Their GPUs must be known already.
    pub fn add_nodes(&mut self, file: &str, csv: &str, sources: &Sources) -> Vec<Finding> {
        let mut findings = Vec::new();
        let find = |text: &str| match self.gpu(text) {
            Some(gpu) => Ok(gpu.id.clone()),
            None => self.find_gpu(text).map(|g| g.id.clone()),
        };
        let read = read_nodes(file, csv, sources, &find, &mut findings);
        for (node, line) in read {
            if let Some(gpu) = self.gpu(&node.gpu) {
                findings.extend(doubts(file, line, &node, gpu));
            }
            match self.node_index.get(&node.id) {
                Some(&at) => self.nodes[at] = node,
                None => {
                    self.node_index.insert(node.id.clone(), self.nodes.len());
                    self.nodes.push(node);
                }
            }
        }
        findings.sort_by_key(|f| f.line);
        findings
    }

    /// The last day that a source of the catalog was read (`2026-11-30`).
    pub fn as_of(&self) -> Option<&str> {
        self.as_of.as_deref()
    }

    /// Every GPU in catalog order.
    pub fn gpus(&self) -> &[Gpu] {
        &self.gpus
    }

    /// Every node type in catalog order.
    pub fn nodes(&self) -> &[NodeType] {
        &self.nodes
    }

    /// The GPU with exactly this id.
    pub fn gpu(&self, id: &str) -> Option<&Gpu> {
        self.gpu_index.get(id).and_then(|&at| self.gpus.get(at))
    }

    /// The node type with exactly this id.
    pub fn node(&self, id: &str) -> Option<&NodeType> {
        self.node_index.get(id).and_then(|&at| self.nodes.get(at))
    }

    /// The GPU that a person names: an id in any case, the vendor prefix may be left out.
    ///
    /// ```
    /// let hardware = hardware::Hardware::embedded();
    /// assert_eq!(hardware.find_gpu("h100-sxm").unwrap().id, "nvidia-h100-sxm");
    /// assert_eq!(hardware.find_gpu("h10").unwrap_err().suggestions(), ["h100-sxm", "h100-pcie", "h100-nvl"]);
    /// ```
    pub fn find_gpu(&self, text: &str) -> Result<&Gpu, LookupError> {
        lookup::find_gpu(&self.gpus, text)
    }

    /// The node type that a person names: an id, or `provider/instance`.
    pub fn find_node(&self, text: &str) -> Result<&NodeType, LookupError> {
        lookup::find_node(&self.nodes, text)
    }

    /// The shape of a node type of this catalog; `None` for partitioned instances.
    pub fn shape(&self, node: &NodeType) -> Option<NodeShape> {
        NodeShape::from_type(node, self.gpu(&node.gpu)?)
    }
}

/// What is possible but unlikely in a node, given its GPU.
fn doubts(file: &str, line: u64, node: &NodeType, gpu: &Gpu) -> Option<Finding> {
    use crate::node::Topology;
    let linked = gpu.link.is_some();
    let message = match &node.topology {
        Topology::NvSwitch { .. } if !linked => format!("{} has no port that a switch could join", gpu.short_id()),
        Topology::Bridges { group } => match &gpu.link {
            Some(link) if link.needs_bridge && *group <= link.bridge_gpus => return None,
            Some(link) if link.needs_bridge => {
                format!("bridges of {group}, but one joins {} {}", link.bridge_gpus, gpu.short_id())
            }
            _ => format!("{} takes no bridge", gpu.short_id()),
        },
        Topology::NvSwitch { .. } if gpu.form_factor == "PCIe" => {
            format!("{} is a card; switches are for SXM, OAM and superchip boards", gpu.short_id())
        }
        _ => return None,
    };
    Some(Finding::warning(file, line, format!("node `{}`: {message}", node.id)))
}
