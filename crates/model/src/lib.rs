//! A model's own files turned into its exact anatomy: which matrices it has, how many parameters, what they weigh
//! in each format, what its cache costs.

mod format;
mod near;
mod spec;

pub use format::{FormatError, GgufMix, KvFormat, WeightFormat};
pub use spec::{
    Attention, FeedForward, Indexer, LayerRun, Matrix, ModelSpec, Mtp, Problem, Role, Shard, StateSpec, Tower, Window,
};
