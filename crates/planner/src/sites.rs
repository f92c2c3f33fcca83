//! Where a plan can stand: kinds of node that perform alike, and under each the nodes and offers that realise it.

use std::collections::BTreeMap;

use hardware::{Fabric, Gpu, Hardware, NodeShape, NodeType, OnSpec, Topology};
use market::{Market, Offer, PriceOrigin, Quote, QuoteFilter, RankClass};
use units::Bytes;

use crate::plan::{PlanOffer, hardware_name};
use crate::request::{PlanRequest, RequestError};

/// Counts of a GPU that are tried as a generic node: what servers are built with.
const GENERIC_COUNTS: [u32; 4] = [1, 2, 4, 8];

/// One node or offer that realises a kind.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// Node type id, or `generic/8xGPU`.
    pub node: String,
    /// What leaves the node.
    pub fabric: Option<Fabric>,
    /// Host memory.
    pub ram: Option<Bytes>,
    /// Local disk.
    pub disk: Option<Bytes>,
    /// The price of one node; `None` where nothing is for sale.
    pub quote: Option<Quote>,
    /// 0 for what can be booked as it stands; higher classes rank below.
    pub rank_class: u8,
    /// Whether several of them may form a gang.
    pub gang: bool,
}

/// Nodes that perform alike: same GPU, same count, same topology. Fabrics may differ; they matter to gangs only.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    /// The shape, with the fabric of no site in particular.
    pub shape: NodeShape,
    /// Who realises it, best price first within each rank.
    pub sites: Vec<Site>,
}

impl Kind {
    /// `8xh100-sxm`, with the topology behind it where it is not what servers of this GPU usually have.
    pub(crate) fn hardware(&self) -> String {
        let name = hardware_name(self.shape.gpus, &self.shape.gpu.id);
        let usual = NodeShape::generic(&self.shape.gpu, self.shape.gpus).topology;
        if usual == self.shape.topology { name } else { format!("{name} {}", self.shape.topology.name()) }
    }

    /// The distinct fabrics of sites that may form gangs, with the sites' places.
    pub(crate) fn fabrics(&self) -> Vec<(Option<Fabric>, Vec<usize>)> {
        let mut groups: Vec<(Option<Fabric>, Vec<usize>)> = Vec::new();
        let rate = |f: &Option<Fabric>| f.as_ref().and_then(|f| f.node_rate).map(|r| r.0.to_bits());
        for (i, site) in self.sites.iter().enumerate().filter(|(_, s)| s.gang) {
            match groups.iter_mut().find(|(f, _)| rate(f) == rate(&site.fabric)) {
                Some((_, places)) => places.push(i),
                None => groups.push((site.fabric.clone(), vec![i])),
            }
        }
        groups
    }
}

/// What a request lets through, resolved against the catalogs.
struct Wanted<'a> {
    gpus: Vec<&'a Gpu>,
    counts: Option<Vec<(String, u32)>>,
    nodes: Vec<&'a NodeType>,
}

/// Every kind of node that the request allows, with its sites, ordered by GPU id, count and topology.
pub(crate) fn kinds(
    hardware: &Hardware,
    market: &Market,
    request: &PlanRequest,
    filter: &QuoteFilter,
) -> Result<Vec<Kind>, RequestError> {
    let wanted = wanted(hardware, market, request)?;
    let mut kinds: BTreeMap<(String, u32, String), Kind> = BTreeMap::new();
    let mut by_gpu: BTreeMap<&str, Vec<&NodeType>> = BTreeMap::new();
    for node in hardware.nodes() {
        by_gpu.entry(&node.gpu).or_default().push(node);
    }
    let gang_filter = QuoteFilter { multi_node: true, ..filter.clone() };
    for gpu in wanted.gpus {
        let types = by_gpu.get(&*gpu.id).map_or(&[][..], Vec::as_slice);
        let mut counts: Vec<u32> = types.iter().filter_map(|n| n.whole_gpus()).collect();
        counts.extend(GENERIC_COUNTS);
        counts.sort_unstable();
        counts.dedup();
        for count in counts {
            let asked = wanted.nodes.iter().filter(|n| *n.gpu == *gpu.id && n.whole_gpus() == Some(count));
            let asked: Vec<&NodeType> = asked.copied().collect();
            let by_count =
                wanted.counts.as_ref().is_none_or(|all| all.iter().any(|(g, c)| **g == *gpu.id && *c == count));
            if !by_count && asked.is_empty() {
                continue;
            }
            let mut put = |shape: NodeShape, site: Site| {
                let key = (gpu.id.to_string(), count, topology_key(&shape));
                kinds.entry(key).or_insert_with(|| Kind { shape, sites: Vec::new() }).sites.push(site);
            };
            // a node type by name: its own offers, or any of its GPU and count where it is a maker's reference
            for node in &asked {
                let Some(shape) = hardware.shape(node) else { continue };
                let quotes = if node.is_reference() {
                    market.quotes(&gpu.id, count, filter)
                } else {
                    market.quotes_for_node(node, filter)
                };
                let fits = |q: &&Quote| match realised(hardware, market, q) {
                    Some(other) => hardware.shape(other).is_some_and(|s| topology_key(&s) == topology_key(&shape)),
                    None => true,
                };
                let mut any = false;
                for quote in quotes.iter().filter(fits) {
                    any = true;
                    put(shape.clone(), priced(node.id.to_string(), &shape, Some(quote), market, true));
                }
                if !any {
                    put(shape.clone(), priced(node.id.to_string(), &shape, None, market, true));
                }
            }
            if !by_count {
                continue;
            }
            let generic = NodeShape::generic(gpu, count);
            let gangs: Vec<usize> = market.quotes(&gpu.id, count, &gang_filter).iter().map(|q| q.offer).collect();
            let quotes = market.quotes(&gpu.id, count, filter);
            for quote in &quotes {
                let node = realised(hardware, market, quote);
                let shape = node.and_then(|n| hardware.shape(n)).unwrap_or_else(|| generic.clone());
                let id = node.map_or_else(|| generic.id.to_string(), |n| n.id.to_string());
                let gang = gangs.contains(&quote.offer);
                put(shape.clone(), priced(id, &shape, Some(quote), market, gang));
            }
            if quotes.is_empty() {
                put(generic.clone(), priced(generic.id.to_string(), &generic, None, market, true));
            }
            // makers' systems and instances that nothing is known to sell: another topology or a rack is a kind of its own
            for node in types.iter().filter(|n| n.whole_gpus() == Some(count)) {
                let Some(shape) = hardware.shape(node) else { continue };
                let key = (gpu.id.to_string(), count, topology_key(&shape));
                let new = !kinds.contains_key(&key);
                if new {
                    let site = priced(node.id.to_string(), &shape, None, market, true);
                    kinds.insert(key, Kind { shape, sites: vec![site] });
                }
            }
        }
    }
    Ok(kinds.into_values().collect())
}

fn topology_key(shape: &NodeShape) -> String {
    match shape.topology {
        Topology::NvSwitch { domain } => format!("nvswitch {domain}"),
        ref other => other.name(),
    }
}

/// The node type that the quote's offer is an instance of.
fn realised<'a>(hardware: &'a Hardware, market: &Market, quote: &Quote) -> Option<&'a NodeType> {
    // a list price times n is no instance: what it would be is unknown
    if quote.list_price_times.is_some() {
        return None;
    }
    hardware.node(market.node_id(market.offers().get(quote.offer)?)?)
}

fn priced(node: String, shape: &NodeShape, quote: Option<&Quote>, market: &Market, gang: bool) -> Site {
    let offer = quote.and_then(|q| market.offers().get(q.offer));
    let offered_ram = offer.filter(|o| o.whole_gpus() == Some(shape.gpus)).and_then(|o| o.ram);
    Site {
        node,
        fabric: shape.fabric.clone(),
        ram: shape.ram.or(offered_ram),
        disk: shape.nvme.filter(|d| d.0 > 0),
        rank_class: quote.zip(offer).map_or(u8::MAX, |(q, o)| rank_class(q, o)),
        quote: quote.cloned(),
        gang,
    }
}

fn wanted<'a>(hardware: &'a Hardware, market: &Market, request: &PlanRequest) -> Result<Wanted<'a>, RequestError> {
    for provider in &request.providers {
        if market.provider(provider).is_none() {
            let known: Vec<_> = market.providers().iter().map(|p| &*p.id).collect();
            let hint = format!("providers are {}", known.join(", "));
            return Err(RequestError::new("provider", provider, "no provider has this id", hint));
        }
    }
    let mut named = Vec::new();
    for text in &request.gpus {
        let gpu = hardware.find_gpu(text).map_err(|e| RequestError::new("gpu", text, e.to_string(), e.hint()))?;
        named.push(gpu);
    }
    let mut nodes: Vec<&NodeType> = Vec::new();
    let mut counts: Vec<(String, u32)> = Vec::new();
    for text in &request.nodes {
        let fail = |e: hardware::OnError| RequestError::new("node", text, e.to_string(), e.hint());
        if let Ok(node) = hardware.find_node(text) {
            nodes.push(node);
            continue;
        }
        let spec: OnSpec = text.parse().map_err(fail)?;
        let (shape, count, _) = market.resolve_on(&spec, hardware).map_err(fail)?;
        if count > 1 {
            let hint =
                format!("name one node, like `{}`, and limit their number with `--max-nodes {count}`", spec.target());
            return Err(RequestError::new("node", text, "it is several nodes", hint));
        }
        match hardware.node(&shape.id) {
            Some(node) => nodes.push(node),
            None => counts.push((shape.gpu.id.to_string(), shape.gpus)),
        }
    }
    let of_nodes = |gpu: &Gpu| nodes.iter().any(|n| *n.gpu == *gpu.id) || counts.iter().any(|(g, _)| **g == *gpu.id);
    let no_nodes = request.nodes.is_empty();
    let gpus: Vec<&Gpu> = match (named.is_empty(), no_nodes) {
        (true, true) => hardware.gpus().iter().collect(),
        (true, false) => hardware.gpus().iter().filter(|g| of_nodes(g)).collect(),
        (false, true) => named,
        (false, false) => {
            let both: Vec<&Gpu> = named.into_iter().filter(|g| of_nodes(g)).collect();
            if both.is_empty() {
                let value = request.nodes.join(", ");
                let problem = format!("none of them has {}", request.gpus.join(" or "));
                return Err(RequestError::new("node", &value, problem, "leave out `--gpu` or `--node`"));
            }
            both
        }
    };
    let mut gpus = gpus;
    gpus.sort_by(|a, b| a.id.cmp(&b.id));
    gpus.dedup_by(|a, b| a.id == b.id);
    Ok(Wanted { gpus, counts: (!no_nodes).then_some(counts), nodes })
}

/// The price of a site as a plan carries it; `others` counts the sites that would do as well.
pub(crate) fn plan_offer(market: &Market, site: &Site, others: usize) -> Option<PlanOffer> {
    let quote = site.quote.as_ref()?;
    let offer: &Offer = market.offers().get(quote.offer)?;
    let user = offer.origin == PriceOrigin::User;
    let kind = if user {
        "your price".to_owned()
    } else if let Some(times) = quote.list_price_times {
        format!("list price x {times}, NVLink unknown")
    } else {
        let kind = match offer.kind {
            market::OfferKind::BookableNode => "bookable node",
            market::OfferKind::PerGpuList => "list price per GPU",
            market::OfferKind::MarketplaceMedian => "marketplace median",
            market::OfferKind::From => "from price",
            market::OfferKind::Reserved => "reserved term",
            market::OfferKind::Estimate => "estimate",
        };
        let spot = if quote.purchase == market::Purchase::Spot { ", spot" } else { "" };
        let tier = if offer.tier.only_if_asked() { format!(", {}", offer.tier.name()) } else { String::new() };
        format!("{kind}{tier}{spot}")
    };
    let date = if quote.purchase == market::Purchase::Spot { offer.spot_date } else { offer.date };
    Some(PlanOffer {
        provider: offer.provider.to_string(),
        instance: offer.instance.to_string(),
        region: offer.region.to_string(),
        kind,
        node_usd_per_hour: quote.usd_per_hour,
        date: if user { None } else { date },
        age_days: quote.age_days,
        stale: quote.stale,
        rank_class: site.rank_class,
        source: offer.source.to_string(),
        others,
    })
}

/// Bookable first, and the user's own price with it; whatever ranks below in the market ranks below in a plan.
fn rank_class(quote: &Quote, offer: &Offer) -> u8 {
    match quote.rank {
        _ if offer.origin == PriceOrigin::User => 0,
        RankClass::Bookable => 0,
        RankClass::ListPrice => 1,
        RankClass::ListPriceTimes => 2,
        RankClass::Market => 3,
    }
}
