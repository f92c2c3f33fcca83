//! The offer table: one row, one thing for sale in one place.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hardware::table::{Row, read_table, shorten};
use hardware::{Finding, Hardware, Sources};
use jiff::civil::Date;
use units::{Bytes, UsdPerHour};

use crate::offer::{Currency, FormFactor, Offer, OfferKind, PriceOrigin, SpotBasis, Tier};

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

/// Keeps one copy of every text that repeats. Rows are mostly sorted, so a column's last text is tried first.
#[derive(Debug, Default)]
struct Interner {
    all: HashSet<Arc<str>>,
    last: [Option<Arc<str>>; COLUMNS.len()],
    last_source: [Option<(String, Arc<str>)>; COLUMNS.len()],
}

impl Interner {
    fn get(&mut self, column: Col, text: &str) -> Arc<str> {
        if let Some(same) = self.last[column as usize].as_ref().filter(|t| ***t == *text) {
            return same.clone();
        }
        let found = match self.all.get(text) {
            Some(known) => known.clone(),
            None => {
                let new: Arc<str> = text.into();
                self.all.insert(new.clone());
                new
            }
        };
        self.last[column as usize] = Some(found.clone());
        found
    }

    /// The text behind a source id, the last one first.
    fn source(&mut self, column: Col, cell: &str, sources: &Sources) -> Arc<str> {
        match &self.last_source[column as usize] {
            Some((id, text)) if id == cell => text.clone(),
            _ => {
                let text = sources.text(cell);
                self.last_source[column as usize] = Some((cell.to_owned(), text.clone()));
                text
            }
        }
    }

    /// True where the column's last text was the same, so that what was checked about it still holds.
    fn repeats(&self, column: Col, text: &str) -> bool {
        self.last[column as usize].as_ref().is_some_and(|t| **t == *text)
    }
}

/// Days by their text, so that a file's few days are parsed once.
#[derive(Debug, Default)]
struct Days(Vec<(String, Option<Date>)>);

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
    let mut days = Days::default();
    // texts are interned, so their addresses are as good as they are, and cheaper to hash
    let mut seen: HashMap<[usize; 4], u64> = HashMap::new();
    read_table(file, csv, COLUMNS, 4, findings, |row| {
        let Some(offer) = read_offer(row, sources, &mut texts, &mut days, hardware, provider_known) else { return };
        let key = [&offer.provider, &offer.instance, &offer.gpu, &offer.region].map(|t| t.as_ptr() as usize);
        if let Some(first) = seen.insert(key, row.line) {
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
    days: &mut Days,
    hardware: &Hardware,
    provider_known: &dyn Fn(&str) -> bool,
) -> Option<Offer> {
    let provider = row.required(Col::provider as usize)?;
    let instance = row.required(Col::instance as usize)?;
    let gpu = row.required(Col::gpu as usize)?;
    row.required(Col::gpu_count as usize)?;
    let gpu_count = row.number(Col::gpu_count as usize, 0.01, 576.0)?;
    let gpu = if texts.repeats(Col::gpu, gpu) {
        gpu
    } else {
        match hardware.find_gpu(gpu) {
            Ok(found) => found.id.as_str(),
            Err(e) => {
                row.error(format!("{e}; {}", e.hint()));
                return None;
            }
        }
    };
    if !texts.repeats(Col::provider, provider) && !provider_known(provider) {
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
    let (date, date_text) = read_date(row, days, Col::date);
    let (spot_date, spot_date_text) = read_date(row, days, Col::spot_date);
    Some(Offer {
        provider: texts.get(Col::provider, provider),
        instance: texts.get(Col::instance, instance),
        gpu: texts.get(Col::gpu, gpu),
        gpu_count,
        vcpus: row.count(Col::vcpus as usize, 1_000_000),
        ram: row.number(Col::ram_gb as usize, 0.1, 10_000_000.0).map(Bytes::from_gb),
        region: texts.get(Col::region, row.text(Col::region as usize)),
        on_demand,
        spot,
        kind,
        tier: word(row, Col::tier, Tier::parse, Tier::Standard),
        commitment: row.filled(Col::commitment as usize).map(|t| texts.get(Col::commitment, t)),
        currency: word(row, Col::currency, Currency::parse, Currency::Verified),
        form_factor: word(row, Col::form_factor, FormFactor::parse, FormFactor::Stated),
        spot_basis: word(row, Col::spot_basis, SpotBasis::parse, SpotBasis::Quoted),
        sold_counts: read_counts(row),
        extras_billed_apart: row.flag(Col::extras_billed_apart as usize).unwrap_or(false),
        date,
        spot_date,
        date_text: texts.get(Col::date, date_text),
        spot_date_text: texts.get(Col::spot_date, spot_date_text),
        source: texts.source(Col::source, row.text(Col::source as usize), sources),
        notes: texts.source(Col::notes, row.text(Col::notes as usize), sources),
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
fn read_date<'t>(row: &mut Row<'t>, days: &mut Days, column: Col) -> (Option<Date>, &'t str) {
    let text = row.text(column as usize);
    if text.is_empty() {
        return (None, text);
    }
    if let Some((_, day)) = days.0.iter().find(|(known, _)| known == text) {
        return (*day, text);
    }
    if let Ok(date) = text.parse::<Date>() {
        days.remember(text, Some(date));
        return (Some(date), text);
    }
    let month = text.len() == 7 && format!("{text}-01").parse::<Date>().is_ok();
    if !month {
        row.error(format!("`{}`: `{}` is neither YYYY-MM-DD nor YYYY-MM", COLUMNS[column as usize], shorten(text)));
        return (None, "");
    }
    days.remember(text, None);
    (None, text)
}

impl Days {
    fn remember(&mut self, text: &str, day: Option<Date>) {
        // a file with a new day in every row gains nothing from a longer list
        if self.0.len() < 32 {
            self.0.push((text.to_owned(), day));
        }
    }
}
