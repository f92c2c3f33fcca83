//! Which offer may stand for which node, at what price, and why others may not.
//!
//! Rules, in the order they are tried: a part of a GPU never stands for a whole one; a price in an unverified currency,
//! a reserved rate and an estimate are listed and never ranked; tiers other than standard only when asked for; spot only
//! from a quoted spot price; a per-GPU list price times `n` only where the provider sells that node, below bookable
//! nodes, and never for a gang of several nodes.

use std::fmt;

use hardware::{Hardware, NodeShape, NodeType, OnError, OnSpec};
use jiff::civil::Date;
use units::UsdPerHour;

use crate::market::{Market, USER_PROVIDER};
use crate::offer::{Currency, Offer, OfferKind, PriceOrigin, SpotBasis, Tier};

/// How the node is bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purchase {
    /// By the hour until given back.
    OnDemand,
    /// By the hour until taken back.
    Spot,
}

impl Purchase {
    /// The word used in output and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::Spot => "spot",
        }
    }
}

/// Which offers are wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct QuoteFilter {
    /// On demand or spot.
    pub purchase: Purchase,
    /// Take marketplace, community, serverless and prototyping tiers too.
    pub tier_marketplace: bool,
    /// Provider ids; empty for all.
    pub providers: Vec<String>,
    /// Regions, whole or the beginning of one (`us-`); empty for all. Offers without a region stay.
    pub regions: Vec<String>,
    /// The day that ages are counted from.
    pub today: Date,
    /// The node is one of a gang of several.
    pub multi_node: bool,
}

impl QuoteFilter {
    /// On demand, standard tier, anywhere, one node.
    pub fn on_demand(today: Date) -> Self {
        Self {
            purchase: Purchase::OnDemand,
            tier_marketplace: false,
            providers: Vec::new(),
            regions: Vec::new(),
            today,
            multi_node: false,
        }
    }
}

/// How good the match is; lower ranks first whatever it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RankClass {
    /// The thing itself: a bookable node, or one GPU at the price of one.
    Bookable,
    /// One GPU at a list price that leaves CPU and RAM out.
    ListPrice,
    /// A list price times the count.
    ListPriceTimes,
    /// A statistic or the cheapest host of a market.
    Market,
}

/// A price for one whole node.
#[derive(Clone, Debug, PartialEq)]
pub struct Quote {
    /// Place of the offer in [`Market::offers`].
    pub offer: usize,
    /// For the whole node.
    pub usd_per_hour: UsdPerHour,
    /// For one of its GPUs.
    pub usd_per_gpu_hour: UsdPerHour,
    /// On demand or spot.
    pub purchase: Purchase,
    /// How good the match is.
    pub rank: RankClass,
    /// Set where a per-GPU price was multiplied: the count; NVLink is then unknown.
    pub list_price_times: Option<u32>,
    /// Days since the price was read; `None` where undated.
    pub age_days: Option<i64>,
    /// Undated, or older than 90 days.
    pub stale: bool,
    /// Spot at or above the on-demand price.
    pub no_discount: bool,
    /// CPU, RAM or disks cost extra.
    pub extras_billed_apart: bool,
}

impl Quote {
    /// What must stand beside the price: `list price x 8, NVLink unknown`, `stale`, …
    pub fn marks(&self) -> Vec<String> {
        let mut marks = Vec::new();
        if let Some(times) = self.list_price_times {
            marks.push(format!("list price x {times}, NVLink unknown"));
        }
        match self.age_days {
            None => marks.push("stale: undated".into()),
            Some(days) if self.stale => marks.push(format!("stale: {days} days old")),
            Some(_) => {}
        }
        if self.no_discount {
            marks.push("spot without discount".into());
        }
        if self.extras_billed_apart {
            marks.push("CPU, RAM or disks cost extra".into());
        }
        marks
    }
}

/// Why an offer of the GPU is listed but not ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotRanked {
    /// A part of a GPU.
    PartOfAGpu,
    /// The amount may be in another currency.
    UnverifiedCurrency,
    /// The rate of a commitment.
    Reserved,
    /// Not a published price.
    Estimate,
    /// A tier that was not asked for.
    Tier(Tier),
    /// A provider that was not asked for.
    OtherProvider,
    /// A region that was not asked for.
    OtherRegion,
    /// No price for this way of buying.
    NotOffered(Purchase),
    /// The spot price was computed, not quoted.
    EstimatedSpot,
    /// Another count of GPUs.
    OtherCount,
    /// A per-GPU price, and the provider is not known to sell this node.
    NodeNotSold,
    /// A per-GPU price, for a gang of several nodes.
    ListPriceForGang,
    /// A statistic or range of a market, for more than one GPU.
    MarketTimes,
}

impl fmt::Display for NotRanked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::PartOfAGpu => "a part of a GPU",
            Self::UnverifiedCurrency => "currency not verified",
            Self::Reserved => "reserved rate, not on demand",
            Self::Estimate => "an estimate, not a published price",
            Self::Tier(tier) => return write!(f, "{} tier, shown with `--tier marketplace`", tier.name()),
            Self::OtherProvider => "another provider",
            Self::OtherRegion => "another region",
            Self::NotOffered(purchase) => return write!(f, "no {} price", purchase.name()),
            Self::EstimatedSpot => "spot price is an estimate",
            Self::OtherCount => "another count of GPUs",
            Self::NodeNotSold => "per-GPU price, and this node is not known to be sold",
            Self::ListPriceForGang => "per-GPU price, never for several nodes",
            Self::MarketTimes => "price of single GPUs of a market",
        };
        f.pad(text)
    }
}

impl Market {
    /// Every price at which a node of `count` of the GPU (exact id) can be had, best first: by rank, price, then name.
    pub fn quotes(&self, gpu: &str, count: u32, filter: &QuoteFilter) -> Vec<Quote> {
        self.judged(gpu, count, filter).filter_map(|(_, verdict)| verdict.ok()).collect::<Sorted>().sorted(self)
    }

    /// Every price of a node type: its own offers where the provider names it in one, else those of its GPU and count.
    pub fn quotes_for_node(&self, node: &NodeType, filter: &QuoteFilter) -> Vec<Quote> {
        let Some(count) = node.whole_gpus() else { return Vec::new() };
        let own = self.offers_for(node);
        let bookable = |q: &Quote| self.offers.get(q.offer).is_some_and(|o| o.kind == OfferKind::BookableNode);
        let wanted = filter.providers.is_empty() || filter.providers.contains(&node.provider);
        let of_provider = QuoteFilter { providers: vec![node.provider.clone()], ..filter.clone() };
        let mut quotes = self.quotes(&node.gpu, count, &of_provider);
        quotes.retain(|q| {
            let of_user = self.offers.get(q.offer).is_some_and(|o| *o.provider == *USER_PROVIDER);
            of_user || (wanted && (own.contains(&q.offer) || !bookable(q)))
        });
        quotes
    }

    /// The offers of a GPU that are not ranked for that count, each with the first rule that excludes it.
    pub fn not_ranked(&self, gpu: &str, count: u32, filter: &QuoteFilter) -> Vec<(usize, NotRanked)> {
        self.judged(gpu, count, filter).filter_map(|(at, verdict)| Some((at, verdict.err()?))).collect()
    }

    fn judged<'m>(
        &'m self,
        gpu: &str,
        count: u32,
        filter: &'m QuoteFilter,
    ) -> impl Iterator<Item = (usize, Result<Quote, NotRanked>)> + 'm {
        let places = self.offers_of_gpu(gpu);
        places.iter().filter_map(move |&at| Some((at, self.judge(at, self.offers.get(at)?, count, filter))))
    }

    fn judge(&self, at: usize, offer: &Offer, count: u32, filter: &QuoteFilter) -> Result<Quote, NotRanked> {
        let whole = offer.whole_gpus().ok_or(NotRanked::PartOfAGpu)?;
        let of_user = *offer.provider == *USER_PROVIDER;
        if offer.currency == Currency::Unverified && offer.origin == PriceOrigin::Catalog {
            return Err(NotRanked::UnverifiedCurrency);
        }
        match offer.kind {
            OfferKind::Reserved => return Err(NotRanked::Reserved),
            OfferKind::Estimate => return Err(NotRanked::Estimate),
            _ if offer.commitment.is_some() && offer.kind != OfferKind::MarketplaceMedian => {
                return Err(NotRanked::Reserved);
            }
            _ => {}
        }
        if offer.tier.only_if_asked() && !filter.tier_marketplace {
            return Err(NotRanked::Tier(offer.tier));
        }
        let market_price = matches!(offer.kind, OfferKind::MarketplaceMedian | OfferKind::From);
        if market_price && !filter.tier_marketplace {
            return Err(NotRanked::Tier(Tier::Marketplace));
        }
        if !of_user && !filter.providers.is_empty() && !filter.providers.iter().any(|p| **p == *offer.provider) {
            return Err(NotRanked::OtherProvider);
        }
        if !in_regions(&offer.region, &filter.regions) {
            return Err(NotRanked::OtherRegion);
        }
        let (rank, times) = self.rank(offer, whole, count, filter, market_price, of_user)?;
        let price = match filter.purchase {
            Purchase::OnDemand => offer.on_demand,
            Purchase::Spot if estimated_spot(offer) => {
                return Err(NotRanked::EstimatedSpot);
            }
            Purchase::Spot => offer.spot,
        };
        let price = price.ok_or(NotRanked::NotOffered(filter.purchase))?;
        let usd_per_hour = price * f64::from(times.unwrap_or(1));
        let age_days = match filter.purchase {
            Purchase::OnDemand => offer.age_days(filter.today),
            Purchase::Spot if offer.origin == PriceOrigin::User => Some(0),
            Purchase::Spot => offer.spot_age_days(filter.today),
        };
        Ok(Quote {
            offer: at,
            usd_per_hour,
            usd_per_gpu_hour: usd_per_hour / f64::from(count.max(1)),
            purchase: filter.purchase,
            rank,
            list_price_times: times,
            age_days,
            stale: age_days.is_none_or(|days| days > crate::offer::STALE_AFTER_DAYS),
            no_discount: filter.purchase == Purchase::Spot && offer.no_discount(),
            extras_billed_apart: offer.extras_billed_apart,
        })
    }

    /// The rank of an offer for a node of `count`, and the factor where its price is per GPU.
    fn rank(
        &self,
        offer: &Offer,
        whole: u32,
        count: u32,
        filter: &QuoteFilter,
        market_price: bool,
        of_user: bool,
    ) -> Result<(RankClass, Option<u32>), NotRanked> {
        if market_price {
            return if count == 1 && whole == 1 && !filter.multi_node {
                Ok((RankClass::Market, None))
            } else {
                Err(NotRanked::MarketTimes)
            };
        }
        if offer.kind == OfferKind::BookableNode {
            return if whole == count { Ok((RankClass::Bookable, None)) } else { Err(NotRanked::OtherCount) };
        }
        // a per-GPU list price from here on
        if of_user {
            return Ok((RankClass::ListPriceTimes, (count > 1).then_some(count)));
        }
        if filter.multi_node {
            return Err(NotRanked::ListPriceForGang);
        }
        if count == whole {
            if !offer.sold_counts.is_empty() && !offer.sold_counts.contains(&count) {
                return Err(NotRanked::NodeNotSold);
            }
            let rank = if offer.extras_billed_apart { RankClass::ListPrice } else { RankClass::Bookable };
            return Ok((rank, None));
        }
        if whole != 1 {
            return Err(NotRanked::OtherCount);
        }
        let sold = offer.sold_counts.contains(&count) || self.sells_node(&offer.provider, &offer.gpu, count);
        if sold { Ok((RankClass::ListPriceTimes, Some(count))) } else { Err(NotRanked::NodeNotSold) }
    }

    /// What an `--on` text names: its node, how many, and the offers of it where it is a provider's own instance.
    ///
    /// Instances that are no node type of the catalog but are offered (`coreweave/8x hgx-h100`) get the topology that
    /// their GPU suggests, assumed.
    pub fn resolve_on(&self, spec: &OnSpec, hardware: &Hardware) -> Result<(NodeShape, u32, Vec<usize>), OnError> {
        let error = match spec.resolve(hardware) {
            Ok((shape, nodes)) => {
                let offers = hardware.node(&shape.id).map(|n| self.offers_for(n)).unwrap_or_default();
                return Ok((shape, nodes, offers));
            }
            Err(e) => e,
        };
        let offers = self.find_offers(spec.target());
        let Some(offer) = offers.first().and_then(|&at| self.offers.get(at)) else { return Err(error) };
        let whole = offer.whole_gpus().ok_or_else(|| OnError::Partitioned { node: offer.name() })?;
        let nodes = spec.nodes_of_type()?;
        let Some(gpu) = hardware.gpu(&offer.gpu) else { return Err(error) };
        let mut shape = NodeShape::generic(gpu, whole);
        shape.id = offer.name();
        shape.ram = offer.ram;
        Ok((shape, nodes, offers))
    }

    /// The first quote whose price is not stale, to be named beside a stale winner.
    pub fn best_fresh(quotes: &[Quote]) -> Option<&Quote> {
        quotes.iter().find(|q| !q.stale)
    }
}

/// True where the catalog's spot price was computed from the on-demand price.
fn estimated_spot(offer: &Offer) -> bool {
    offer.spot.is_some() && offer.spot_basis == SpotBasis::Estimated && offer.origin == PriceOrigin::Catalog
}

/// Whether a region is one of those wanted (whole names or beginnings, any case); none wanted means all. Offers without
/// a region of their own hold everywhere.
pub fn in_regions(region: &str, wanted: &[String]) -> bool {
    wanted.is_empty()
        || matches!(region, "" | "global" | "*" | "NA")
        || wanted.iter().any(|w| {
            let begins = region.get(..w.len()).is_some_and(|head| head.eq_ignore_ascii_case(w));
            begins && !w.is_empty()
        })
}

struct Sorted(Vec<Quote>);

impl FromIterator<Quote> for Sorted {
    fn from_iter<I: IntoIterator<Item = Quote>>(quotes: I) -> Self {
        Self(quotes.into_iter().collect())
    }
}

impl Sorted {
    fn sorted(mut self, market: &Market) -> Vec<Quote> {
        let name = |q: &Quote| market.offers.get(q.offer).map(|o| (&*o.provider, &*o.instance, &*o.region));
        self.0.sort_by(|a, b| {
            a.rank
                .cmp(&b.rank)
                .then(a.usd_per_hour.0.total_cmp(&b.usd_per_hour.0))
                .then_with(|| name(a).cmp(&name(b)))
                .then(a.offer.cmp(&b.offer))
        });
        self.0
    }
}
