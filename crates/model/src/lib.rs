//! A model's own files turned into its exact anatomy: which matrices it has, how many parameters, what they weigh
//! in each format, what its cache costs.

mod blocks;
mod catalog;
mod checkpoints;
mod config;
mod decoder;
mod error;
mod families;
mod format;
mod harmless;
mod measure;
mod names;
mod near;
mod quant;
mod read;
mod spec;
mod towers;

pub use catalog::{Catalog, CatalogEntry, NotFound};
pub use config::MAX_FILE_BYTES;
pub use error::ModelError;
pub use format::{FormatError, GgufMix, KvFormat, WeightFormat};
pub use read::read_config;
pub use spec::{
    Attention, FeedForward, Indexer, LayerRun, Matrix, ModelSpec, Mtp, Problem, Role, Shard, StateSpec, Tower, Window,
};
