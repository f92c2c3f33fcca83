//! From a request to ranked, explained, priced plans.
//!
//! A request passes through five stages: the traffic is filled in from presets ([`PlanRequest::traffic`]); nodes and
//! offers become kinds of node; layouts cut the model over them; constraints say no with numbers; what is left is
//! estimated and ranked. Every stage is pure: the same request, catalogs and day give the same answer in the same order.

mod checkpoints;
mod constraints;
mod evaluate;
mod fit;
mod layouts;
mod plan;
mod rank;
mod rejection;
mod request;
mod runs;
mod search;
mod sites;
mod workload;

pub use constraints::engine_runs;
pub use evaluate::MAX_UTILISATION;
pub use fit::{DEFAULT_SEQUENCES, DEFAULT_TOKENS, Fit, FitRequest, fit};
pub use plan::{Answer, ParetoPoint, Pick, PickReason, Plan, PlanOffer};
pub use rejection::{Nearest, Rejection, RejectionGroup};
pub use request::{KEYS, Key, Objective, PlanRequest, RequestError, find_key, shell_quote};
pub use runs::{Run, formats_to_try, runs};
pub use search::Planner;
pub use workload::{Load, Preset, Traffic, Workload};
