//! Quantities with units: newtypes, the few products between them that mean something, parsing with
//! hints, display with three significant digits, and the term tree that explains a number.
//!
//! Conventions, held everywhere inside Nodewise:
//! - link bandwidth is per direction, peak FLOP/s are dense, memory is bytes;
//! - rates and times are `f64` newtypes, bytes and tokens are `u64` newtypes;
//! - parsing needs a unit (`80GiB`, `400Gb/s`), counts may use `Ki`, `k`, `M`, `B`.

mod display;
mod explain;
mod parse;
mod quantity;

pub use display::{group_thousands, sig3};
pub use explain::{Basis, Term, Value};
pub use parse::UnitError;
pub use quantity::{
    Bytes, BytesPerSec, Flop, FlopPerSec, HOURS_PER_MONTH, Params, Seconds, Tokens, TokensPerSec, UsdPerHour, Watts,
};
