//! Weight files by their headers: what tensors they hold, in which types, how many bytes. Nothing here opens a file: a
//! reader hands in bytes in order, and every count, length and offset is held against the file's size before it is
//! believed. Tensors are summed as they pass and not kept, so that a hostile header costs no memory.

mod checkpoint;
mod error;
mod ggml;
mod gguf;
mod gguf_config;
mod index;
mod names;
mod safetensors;
mod spans;

pub use checkpoint::{Builder, Checkpoint, Hints, Measured, StoredFormat, Sum};
pub use error::FileError;
pub use ggml::{GGML_TYPES, GgmlType, ggml_type};
pub use gguf::{Facts, Gguf, MetaValue, Split, read_gguf, split_name};
pub use gguf_config::{config_of, spec_of_gguf};
pub use index::{Index, plain_file_name, read_index};
pub use names::{Kind, Part};
pub use safetensors::read_safetensors;

/// Largest header that is read, in bytes; the largest real one has some 20 MB.
pub const MAX_HEADER_BYTES: u64 = 100 << 20;
/// Most tensors of one file.
pub const MAX_TENSORS: u64 = 2_000_000;
/// Longest name of a tensor or of a metadata key, in bytes.
pub const MAX_NAME_BYTES: usize = 1024;
/// Most dimensions of a tensor.
pub const MAX_RANK: usize = 8;

/// A text cut for a message.
pub(crate) fn cut(text: &str) -> String {
    text.chars().take(80).collect()
}
