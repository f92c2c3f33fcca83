//! A model's own files turned into its exact anatomy: which matrices it has, how many parameters, what they weigh
//! in each format, what its cache costs.
//!
//! ```
//! use model::{Catalog, KvFormat, WeightFormat};
//!
//! let spec = Catalog::embedded().find("deepseek-v3")?.spec()?;
//! assert_eq!(spec.params_total().0, 671_026_404_352);
//! assert_eq!(spec.weights, WeightFormat::Fp8Block);
//! // one latent vector of 576 elements in each of 61 layers
//! assert_eq!(spec.kv_bytes_per_token(KvFormat::Bf16).0, 61 * 576 * 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The way of a config: [`read_config`] bounds and parses its bytes, the reader of its family (one file each under
//! `families/`) resolves every default and lays out the layers, and everything else is a sum over their matrices. What
//! no reader understands is an error, never a guess.

mod blocks;
mod catalog;
mod checkpoints;
mod config;
mod decoder;
mod error;
mod families;
pub mod files;
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
