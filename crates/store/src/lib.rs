//! The user's files: catalogs that add to the embedded one, and model directories.
//!
//! This is where bytes are read; what they mean is decided by the crates below. Every read is bounded before it starts,
//! and every error names the path.

mod catalog;
mod check;
mod config;
mod error;
mod hub_cache;
mod model_files;
mod weights;

pub use catalog::{Catalog, MAX_CATALOG_FILE, load_catalog};
pub use check::{check_embedded, check_files};
pub use config::config_dir;
pub use error::StoreError;
pub use hub_cache::{cached_snapshot, hub_cache};
pub use model_files::{MAX_MODEL_CONFIG, ModelFile, read_model_path};
pub use weights::{ModelRead, read_model};
