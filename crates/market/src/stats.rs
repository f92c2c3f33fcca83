//! Market level of a GPU: the median over providers of each one's lowest on-demand price.
//!
//! One provider, one vote, whatever it sells: bookable nodes, per-GPU list prices, the cheapest host or the average of a
//! market, in every tier. A statistic over everybody's lowest asks "what does this GPU cost on the market", not "what
//! can I book"; the median over providers keeps a single odd quote from moving it. What is not an on-demand price in
//! dollars of a whole GPU doesn't vote: reserved rates, estimates, unverified currencies, parts of GPUs, the user's own.

use std::collections::BTreeMap;

use jiff::civil::Date;
use units::UsdPerHour;

use crate::market::Market;
use crate::offer::{Currency, Offer, OfferKind, PriceOrigin};

/// The market level of a GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Stat {
    /// The median, per GPU.
    pub usd_per_gpu_hour: UsdPerHour,
    /// Providers that it is taken over.
    pub providers: u32,
    /// The lowest vote.
    pub lowest: UsdPerHour,
    /// The highest vote.
    pub highest: UsdPerHour,
    /// The oldest day among the votes that have one.
    pub oldest: Option<Date>,
    /// Votes without a day.
    pub undated: u32,
    /// Place of each provider's vote in [`Market::offers`], cheapest first.
    pub votes: Vec<usize>,
}

/// True where the offer has a vote in the statistic.
fn votes(offer: &Offer) -> bool {
    offer.origin == PriceOrigin::Catalog
        && offer.currency == Currency::Verified
        && !matches!(offer.kind, OfferKind::Reserved | OfferKind::Estimate)
}

impl Market {
    /// The market level of a GPU (exact id): median over providers of each one's lowest on-demand price per whole GPU;
    /// `None` where nobody has one.
    pub fn median_price_per_gpu(&self, gpu: &str) -> Option<Stat> {
        let mut lowest: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
        for &at in self.offers_of_gpu(gpu) {
            let Some(offer) = self.offers.get(at).filter(|o| votes(o)) else { continue };
            let Some(price) = offer.on_demand_per_gpu() else { continue };
            let entry = lowest.entry(&offer.provider).or_insert((price.0, at));
            if price.0 < entry.0 {
                *entry = (price.0, at);
            }
        }
        let mut all: Vec<(f64, usize)> = lowest.into_values().collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let middle = all.len() / 2;
        let median = match all.len() {
            0 => return None,
            n if n % 2 == 1 => all[middle].0,
            _ => (all[middle - 1].0 + all[middle].0) / 2.0,
        };
        let dates: Vec<Option<Date>> = all.iter().map(|&(_, at)| self.offers[at].date).collect();
        Some(Stat {
            usd_per_gpu_hour: UsdPerHour(median),
            providers: all.len() as u32,
            lowest: UsdPerHour(all[0].0),
            highest: UsdPerHour(all[all.len() - 1].0),
            oldest: dates.iter().flatten().min().copied(),
            undated: dates.iter().filter(|d| d.is_none()).count() as u32,
            votes: all.into_iter().map(|(_, at)| at).collect(),
        })
    }
}
