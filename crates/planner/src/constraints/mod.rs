//! Reasons to say no, one small function each.
//!
//! Order, cheapest and most general first, so that the first reason given is the one that no later change would
//! help with: engine runs on the GPU → a gang has a fabric → the layout cuts the model → the weights fit → the context fits → TTFT and TPOT
//! can be met → the host can load it → an offer can be ranked → node and money limits.

mod engine;
mod gang;
mod host;
mod money;

pub use engine::engine_runs;
pub(crate) use gang::gang_fabric;
pub(crate) use host::{host_disk, host_ram};
pub(crate) use money::{budget, max_nodes};
