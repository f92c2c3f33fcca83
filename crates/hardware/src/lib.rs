//! GPUs, node types, links and fabrics: what a node really is.
//!
//! Inside this crate link bandwidth is per direction, peak FLOP/s are dense, and GPU memory is kept three ways:
//! nominal (the label), usable (what the driver reports) and cuda_total (what an engine sees).

mod catalog;
mod check;
mod finding;
mod gpu;
mod gpu_table;
mod lookup;
pub mod memory;
mod node;
mod node_table;
mod on_spec;
mod shape;
mod sources;
pub mod table;

pub use catalog::{GPUS_CSV, Hardware, NODES_CSV, SOURCES_CSV};
pub use check::{check_gpus, check_nodes};
pub use finding::{Finding, Severity};
pub use gpu::{ComputeType, Gpu, GpuId, GpuMemory, LinkPort, PciePort, Peaks, Sourced, Vendor};
pub use lookup::LookupError;
pub use node::{Fabric, NodeShape, NodeType, Topology};
pub use on_spec::{MAX_GPUS_PER_NODE, MAX_NODES, OnError, OnSpec};
pub use shape::{LinkKind, rack_domain};
pub use sources::Sources;
