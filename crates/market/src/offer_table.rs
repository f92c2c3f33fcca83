//! The offer table: one row, one thing for sale in one place.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hardware::table::{Row, read_table, shorten};
use hardware::{Finding, Hardware, Sources};
use jiff::civil::Date;
use units::{Bytes, UsdPerHour};

use crate::offer::{Currency, FormFactor, Offer, OfferKey, OfferKind, PriceOrigin, SpotBasis, Tier};

hardware::columns!(
    provider,
    instance,
    gpu,
    gpu_count,
    vcpus,
    ram_gb,
    region,
    on_demand_usd_per_hour,
    spot_usd_per_hour,
    kind,
    tier,
    commitment,
    currency,
    form_factor,
    spot_basis,
    sold_counts,
    extras_billed_apart,
    date,
    spot_date,
    source,
    notes,
);

/// Prices per GPU-hour outside this band (US dollars) are warned about.
pub const SANE_USD_PER_GPU_HOUR: (f64, f64) = (0.05, 100.0);

/// Keeps one copy of every text that repeats.
#[derive(Debug, Default)]
struct Interner(HashSet<Arc<str>>);

impl Interner {
    fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        self.0.insert(new.clone());
        new
    }
}

/// Reads offers; rows without provider, instance, known GPU or count are left out, each with a finding.
pub(crate) fn read_offers(
    file: &str,
    csv: &str,
    sources: &Sources,
    hardware: &Hardware,
    provider_known: &dyn Fn(&str) -> bool,
    findings: &mut Vec<Finding>,
) -> Vec<Offer> {
    let mut offers = Vec::new();
    let mut texts = Interner::default();
    let mut seen: HashMap<OfferKey, u64> = HashMap::new();
    read_table(file, csv, COLUMNS, 4, findings, |row| {
        let Some(offer) = read_offer(row, sources, &mut texts, hardware, provider_known) else { return };
        if let Some(first) = seen.insert(offer.key(), row.line) {
            row.error(format!(
                "offer `{}` in `{}` stands twice, first in line {first}",
                shorten(&offer.name()),
                shorten(&offer.region)
            ));
            return;
        }
        offers.push(offer);
    });
    offers
}

fn read_offer(
    row: &mut Row<'_>,
    sources: &Sources,
    texts: &mut Interner,
    hardware: &Hardware,
    provider_known: &dyn Fn(&str) -> bool,
) -> Option<Offer> {
    let provider = row.required(Col::provider as usize)?;
    let instance = row.required(Col::instance as usize)?;
    let gpu = row.required(Col::gpu as usize)?;
    row.required(Col::gpu_count as usize)?;
    let gpu_count = row.number(Col::gpu_count as usize, 0.01, 576.0)?;
    if hardware.gpu(gpu).is_none() {
        row.error(format!("offer of a GPU `{}` that is not in the catalog", shorten(gpu)));
        return None;
    }
    if !provider_known(provider) {
        row.error(format!("provider `{}` is not in the catalog; add it to `providers.csv`", shorten(provider)));
        return None;
    }
    if gpu_count > 1.0 && gpu_count.fract() != 0.0 {
        row.error(format!("{gpu_count} GPUs: a part of a GPU beside whole ones"));
        return None;
    }
    let on_demand = price(row, Col::on_demand_usd_per_hour, gpu_count);
    let spot = price(row, Col::spot_usd_per_hour, gpu_count);
    if on_demand.is_none() && spot.is_none() {
        row.warning("neither an on-demand nor a spot price: listed only");
    }
    let kind = word(row, Col::kind, OfferKind::parse, OfferKind::BookableNode);
    let (date, date_text) = read_date(row, Col::date);
    let (spot_date, spot_date_text) = read_date(row, Col::spot_date);
    Some(Offer {
        provider: texts.get(provider),
        instance: texts.get(instance),
        gpu: texts.get(gpu),
        gpu_count,
        vcpus: row.count(Col::vcpus as usize, 1_000_000),
        ram: row.number(Col::ram_gb as usize, 0.1, 10_000_000.0).map(Bytes::from_gb),
        region: texts.get(row.text(Col::region as usize)),
        on_demand,
        spot,
        kind,
        tier: word(row, Col::tier, Tier::parse, Tier::Standard),
        commitment: row.filled(Col::commitment as usize).map(|t| texts.get(t)),
        currency: word(row, Col::currency, Currency::parse, Currency::Verified),
        form_factor: word(row, Col::form_factor, FormFactor::parse, FormFactor::Stated),
        spot_basis: word(row, Col::spot_basis, SpotBasis::parse, SpotBasis::Quoted),
        sold_counts: read_counts(row),
        extras_billed_apart: row.flag(Col::extras_billed_apart as usize).unwrap_or(false),
        date,
        spot_date,
        date_text: texts.get(date_text),
        spot_date_text: texts.get(spot_date_text),
        source: sources.text(row.text(Col::source as usize)),
        notes: sources.text(row.text(Col::notes as usize)),
        origin: PriceOrigin::Catalog,
    })
}

/// A price: blank is unknown; zero is a source's way of saying unknown, so it is refused rather than taken as free.
fn price(row: &mut Row<'_>, column: Col, gpu_count: f64) -> Option<UsdPerHour> {
    let value = row.number(column as usize, 0.0, 1_000_000.0)?;
    let name = COLUMNS[column as usize];
    if value == 0.0 {
        row.error(format!("`{name}` is 0: leave it blank where there is no price"));
        return None;
    }
    let per_gpu = value / gpu_count;
    let (low, high) = SANE_USD_PER_GPU_HOUR;
    if per_gpu < low || per_gpu > high {
        row.warning(format!(
            "`{name}` comes to ${per_gpu:.4} per GPU-hour, outside {low} to {high}; per GPU or per node?"
        ));
    }
    Some(UsdPerHour(value))
}

fn word<T>(row: &mut Row<'_>, column: Col, parse: impl Fn(&str) -> Option<T>, blank: T) -> T {
    match row.filled(column as usize) {
        None => blank,
        Some(text) => parse(text).unwrap_or_else(|| {
            row.error(format!("`{}`: `{}` is none of its words", COLUMNS[column as usize], shorten(text)));
            blank
        }),
    }
}

fn read_counts(row: &mut Row<'_>) -> Vec<u32> {
    let mut counts = Vec::new();
    let text = row.text(Col::sold_counts as usize);
    for part in text.split('|').filter(|p| !p.is_empty()).take(64) {
        match part.trim().parse::<u32>() {
            Ok(n) if (1..=576).contains(&n) => counts.push(n),
            _ => row.error(format!("`sold_counts`: `{}` is not a count", shorten(part))),
        }
    }
    counts
}

/// A day, and the text as given. A month alone is a valid text, but no day; anything else is an error.
fn read_date<'t>(row: &mut Row<'t>, column: Col) -> (Option<Date>, &'t str) {
    let text = row.text(column as usize);
    if text.is_empty() {
        return (None, text);
    }
    if let Ok(date) = text.parse::<Date>() {
        return (Some(date), text);
    }
    let month = text.len() == 7 && format!("{text}-01").parse::<Date>().is_ok();
    if !month {
        row.error(format!("`{}`: `{}` is neither YYYY-MM-DD nor YYYY-MM", COLUMNS[column as usize], shorten(text)));
        return (None, "");
    }
    (None, text)
}
