//! GPUs, node types, links and fabrics: what a node really is.
//!
//! Inside this crate link bandwidth is per direction, peak FLOP/s are dense, and GPU memory is kept three ways:
//! nominal (the label), usable (what the driver reports) and cuda_total (what an engine sees).

mod gpu;
mod node;

pub use gpu::{ComputeType, Gpu, GpuId, GpuMemory, LinkPort, PciePort, Peaks, Sourced, Vendor};
pub use node::{Fabric, NodeShape, NodeType, Topology};
