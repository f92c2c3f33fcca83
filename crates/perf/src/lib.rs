//! One model on one layout on one kind of node: memory, step time, serving estimate, engine profiles.

mod curves;
mod engine;
mod layout;
mod memory;
mod rank;
mod serving;
mod step;
mod table;

pub use curves::{
    AttentionCurve, Band, CollectiveCurve, Curves, ExpertCurve, Files, GemmCurve, GemmType, KernelCounts, Stream,
};
pub use engine::{Engine, EngineError, EngineProfile, Formats, FractionOf, WindowPolicy};
pub use layout::{Layout, LayoutError};
pub use memory::{Capacity, MemoryLoad, MemoryPlan, memory, memory_figures, memory_with};
pub use rank::{RankWeights, StageWeights, WeightParts};
pub use serving::{Arrival, Limit, ServingEstimate, ServingLoad, serving};
pub use step::{Batch, Chunk, CompileError, StepModel, product_time};
