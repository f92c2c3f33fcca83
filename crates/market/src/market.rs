//! All providers and offers: the embedded catalog, what a user's files add, and the user's own prices.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hardware::{Finding, Hardware, NodeType, Sources};
use units::UsdPerHour;

use crate::offer::{Offer, OfferKey, PriceOrigin};
use crate::offer_table::read_offers;
use crate::provider::Provider;
use crate::provider_table::read_providers;

/// The embedded provider table.
pub const PROVIDERS_CSV: &str = include_str!("../data/providers.csv");
/// The embedded offer table.
pub const OFFERS_CSV: &str = include_str!("../data/offers.csv");
/// The embedded table of sources and remarks for both.
pub const SOURCES_CSV: &str = include_str!("../data/sources.csv");

/// The provider of offers that are the user's own price and nothing else.
pub const USER_PROVIDER: &str = "user";

/// A price that the user gave for a GPU (`--price h100-sxm=2.10/h`).
#[derive(Clone, Debug, PartialEq)]
pub struct PriceOverride {
    /// GPU id.
    pub gpu: String,
    /// US dollars per GPU and hour.
    pub usd_per_gpu_hour: UsdPerHour,
    /// How many offers it replaced the price of.
    pub offers: usize,
}

/// Providers and their offers.
#[derive(Clone, Debug, Default)]
pub struct Market {
    providers: Vec<Provider>,
    pub(crate) offers: Vec<Offer>,
    by_gpu: HashMap<Arc<str>, Vec<usize>>,
    /// Counts of a GPU that a provider has a node type of: provider, then GPU id.
    sold: HashMap<String, HashMap<String, Vec<u32>>>,
    /// Node type ids by provider, then instance name.
    node_ids: HashMap<String, HashMap<String, String>>,
    overrides: Vec<PriceOverride>,
}

impl Market {
    /// The catalog that Nodewise ships with; `hardware` is the catalog that its GPU ids are in.
    pub fn embedded(hardware: &Hardware) -> Self {
        Self::parse(PROVIDERS_CSV, OFFERS_CSV, SOURCES_CSV, hardware).0
    }

    /// Reads a catalog from its three tables and says what is wrong with them.
    pub fn parse(
        providers_csv: &str,
        offers_csv: &str,
        sources_csv: &str,
        hardware: &Hardware,
    ) -> (Self, Vec<Finding>) {
        let mut findings = Vec::new();
        let sources = Sources::parse("sources.csv", sources_csv, &mut findings);
        let mut market = Self::default();
        findings.extend(market.add_providers("providers.csv", providers_csv, &sources));
        findings.extend(market.add_offers("offers.csv", offers_csv, &sources, hardware));
        (market, findings)
    }

    /// Adds providers; one whose id exists replaces it.
    pub fn add_providers(&mut self, file: &str, csv: &str, sources: &Sources) -> Vec<Finding> {
        let mut findings = Vec::new();
        for provider in read_providers(file, csv, sources, &mut findings) {
            match self.providers.iter_mut().find(|p| p.id == provider.id) {
                Some(old) => *old = provider,
                None => self.providers.push(provider),
            }
        }
        findings
    }

    /// Adds offers; one of the same provider, instance, GPU and region replaces it.
    pub fn add_offers(&mut self, file: &str, csv: &str, sources: &Sources, hardware: &Hardware) -> Vec<Finding> {
        let mut findings = Vec::new();
        let ids: HashSet<&str> = self.providers.iter().map(|p| p.id.as_str()).collect();
        let read = read_offers(file, csv, sources, hardware, &|id| ids.contains(id), &mut findings);
        if self.offers.is_empty() {
            self.offers = read;
        } else {
            let mut places: HashMap<OfferKey, usize> =
                self.offers.iter().enumerate().map(|(at, o)| (o.key(), at)).collect();
            for offer in read {
                match places.get(&offer.key()) {
                    Some(&at) => self.offers[at] = offer,
                    None => {
                        places.insert(offer.key(), self.offers.len());
                        self.offers.push(offer);
                    }
                }
            }
        }
        self.reindex(hardware);
        findings
    }

    /// Renews what is derived from offers and node types; needed after node types were added.
    pub fn reindex(&mut self, hardware: &Hardware) {
        self.by_gpu.clear();
        // rows are mostly sorted: look a GPU up once per run of its offers
        let mut start = 0;
        for run in self.offers.chunk_by(|a, b| a.gpu == b.gpu) {
            let places = start..start + run.len();
            self.by_gpu.entry(run[0].gpu.clone()).or_default().extend(places);
            start += run.len();
        }
        self.sold.clear();
        self.node_ids.clear();
        for node in hardware.nodes().iter().filter(|n| !n.is_reference()) {
            let names = self.node_ids.entry(node.provider.clone()).or_default();
            names.insert(node.name.clone(), node.id.clone());
            if let Some(count) = node.whole_gpus() {
                let of_provider = self.sold.entry(node.provider.clone()).or_default();
                of_provider.entry(node.gpu.clone()).or_default().push(count);
            }
        }
    }

    /// Replaces every price of a GPU by the user's: per GPU and hour, whole instances at their count. The offers keep
    /// their kind and say that the price is the user's. Returns how many were replaced.
    pub fn override_price(&mut self, gpu: &str, usd_per_gpu_hour: UsdPerHour) -> usize {
        let note = format!("price given by you: {usd_per_gpu_hour} per GPU");
        let note: Arc<str> = note.into();
        let places = self.by_gpu.get(gpu).cloned().unwrap_or_default();
        for &at in &places {
            let Some(offer) = self.offers.get_mut(at) else { continue };
            let price = usd_per_gpu_hour * offer.gpu_count;
            // every quote that there is, and none that there isn't
            offer.spot = offer.spot.map(|_| price);
            offer.on_demand = offer.on_demand.map(|_| price);
            offer.origin = PriceOrigin::User;
            (offer.date, offer.spot_date) = (None, None);
            (offer.date_text, offer.spot_date_text) = ("".into(), "".into());
            offer.notes = note.clone();
            offer.source = "--price".into();
        }
        self.add_user_offer(gpu, usd_per_gpu_hour, note);
        self.overrides.retain(|o| o.gpu != gpu);
        self.overrides.push(PriceOverride { gpu: gpu.to_owned(), usd_per_gpu_hour, offers: places.len() });
        places.len()
    }

    /// The user's price as an offer of its own, so that it holds for shapes that no catalog offer has.
    fn add_user_offer(&mut self, gpu: &str, price: UsdPerHour, note: Arc<str>) {
        let mine = |o: &Offer| *o.provider == *USER_PROVIDER && *o.gpu == *gpu;
        if self.offers.iter().any(mine) {
            return;
        }
        self.by_gpu.entry(gpu.into()).or_default().push(self.offers.len());
        self.offers.push(Offer::of_user(gpu, price, note));
    }

    /// [`Self::override_price`] in a chain.
    pub fn with_price_override(mut self, gpu: &str, usd_per_gpu_hour: UsdPerHour) -> Self {
        self.override_price(gpu, usd_per_gpu_hour);
        self
    }

    /// The user's own prices in the order they were given.
    pub fn overrides(&self) -> &[PriceOverride] {
        &self.overrides
    }

    /// Every provider in catalog order.
    pub fn providers(&self) -> &[Provider] {
        &self.providers
    }

    /// The provider with this id.
    pub fn provider(&self, id: &str) -> Option<&Provider> {
        self.providers.iter().find(|p| p.id == id)
    }

    /// Every offer in catalog order; quotes name them by their place here.
    pub fn offers(&self) -> &[Offer] {
        &self.offers
    }

    /// The places of all offers of a GPU, by its exact id.
    pub fn offers_of_gpu(&self, gpu: &str) -> &[usize] {
        self.by_gpu.get(gpu).map_or(&[], Vec::as_slice)
    }

    /// True where the provider has a node type of exactly that many of the GPU.
    pub fn sells_node(&self, provider: &str, gpu: &str, count: u32) -> bool {
        self.sold.get(provider).and_then(|gpus| gpus.get(gpu)).is_some_and(|counts| counts.contains(&count))
    }

    /// The id of the node type that an offer is for, where its provider has one of that name.
    pub fn node_id(&self, offer: &Offer) -> Option<&str> {
        self.node_ids.get(&*offer.provider)?.get(&*offer.instance).map(String::as_str)
    }

    /// The places of the offers of a node type: by provider and instance name; where none has that name, offers of that
    /// provider with the same GPU and exact count that are not for another of its node types.
    pub fn offers_for(&self, node: &NodeType) -> Vec<usize> {
        let of_provider: Vec<usize> = self
            .offers_of_gpu(&node.gpu)
            .iter()
            .copied()
            .filter(|&at| self.offers.get(at).is_some_and(|o| *o.provider == *node.provider))
            .collect();
        let named: Vec<usize> =
            of_provider.iter().copied().filter(|&at| *self.offers[at].instance == *node.name).collect();
        if !named.is_empty() {
            return named;
        }
        let same_count = |at: &usize| self.offers[*at].gpu_count == node.gpu_count;
        let not_another = |at: &usize| self.node_id(&self.offers[*at]).is_none();
        of_provider.into_iter().filter(same_count).filter(not_another).collect()
    }

    /// The places of the offers with exactly this GPU and count, of any provider.
    pub fn offers_for_shape(&self, gpu: &str, count: u32) -> Vec<usize> {
        let same = |&&at: &&usize| self.offers.get(at).is_some_and(|o| o.whole_gpus() == Some(count));
        self.offers_of_gpu(gpu).iter().filter(same).copied().collect()
    }

    /// The offers called `provider/instance`, any region.
    pub fn find_offers(&self, text: &str) -> Vec<usize> {
        let Some((provider, instance)) = text.trim().split_once('/') else { return Vec::new() };
        let same = |o: &Offer| o.provider.eq_ignore_ascii_case(provider) && o.instance.eq_ignore_ascii_case(instance);
        self.offers.iter().enumerate().filter(|(_, o)| same(o)).map(|(at, _)| at).collect()
    }
}
