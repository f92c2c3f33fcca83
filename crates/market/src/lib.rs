//! Providers, offers, quotes and the market level of a GPU.
//!
//! An offer keeps what its source says about it: what kind of price it is, in which tier, how old, in which currency.
//! What may stand for a node, and what is only listed, is decided in one place: [`Market::quotes`].

mod check;
mod market;
mod offer;
mod offer_table;
mod provider;
mod provider_table;
mod quote;
mod stats;

pub use check::{check_offers, check_providers};
pub use market::{Market, OFFERS_CSV, PROVIDERS_CSV, PriceOverride, SOURCES_CSV, USER_PROVIDER};
pub use offer::{Currency, FormFactor, Offer, OfferKind, PriceOrigin, STALE_AFTER_DAYS, SpotBasis, Tier};
pub use offer_table::SANE_USD_PER_GPU_HOUR;
pub use provider::Provider;
pub use quote::{NotRanked, Purchase, Quote, QuoteFilter, RankClass, in_regions};
pub use stats::Stat;
