//! Who sells GPU time, and how it is billed.

use std::sync::Arc;

use units::Seconds;

/// One provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// Id used in offers and node types: `aws`.
    pub id: String,
    /// Full name.
    pub name: String,
    /// `hyperscaler`, `neocloud`, `marketplace`, `serverless`, `aggregator`, …
    pub kind: String,
    /// Time is billed in steps of this; `None` where not known.
    pub billing_granularity: Option<Seconds>,
    /// How the provider words it, where it is more than a unit.
    pub billing_text: String,
    /// Least time that is billed.
    pub billing_minimum: Option<Seconds>,
    /// Sells by the hour without commitment.
    pub on_demand: Option<bool>,
    /// Sells capacity that it may take back.
    pub spot: Option<bool>,
    /// Sells term commitments.
    pub reserved: Option<bool>,
    /// How spot prices and reclaims work.
    pub spot_model: String,
    /// Notice before a reclaim.
    pub spot_notice: Option<Seconds>,
    /// Block storage, US dollars per GB and month, first tier.
    pub storage_usd_per_gb_month: Option<f64>,
    /// What is said about storage prices.
    pub storage_text: String,
    /// Traffic to the internet, US dollars per GB, first tier; 0 where it is free.
    pub egress_usd_per_gb: Option<f64>,
    /// What is said about egress.
    pub egress_text: String,
    /// Images, schedulers and tools.
    pub software: String,
    /// Currency of its bills.
    pub currency: String,
    /// `published`, `mixed` or `unverified`.
    pub evidence: String,
    /// Where the row comes from.
    pub source: Arc<str>,
    /// When it was read.
    pub date: Option<jiff::civil::Date>,
    /// Remarks.
    pub notes: String,
}
