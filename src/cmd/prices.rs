//! `nodewise prices`: offers with kind and age, and the market level per GPU.

use std::process::ExitCode;

use clap::ArgMatches;
use market::{Offer, PriceOrigin, Purchase};
use planner::PlanRequest;
use serde_json::Value;

use super::{Shared, filter_words, found, matches_all};
use crate::cli::read_request;
use crate::error::CliError;
use crate::out::table::{Cell, Column, Table};
use crate::out::{Format, print_table};
use crate::world::World;

const COLUMNS: &[Column] = &[
    Column::text("gpu", "gpu", 0),
    Column::number("gpu_count", "n", 0),
    Column::number("usd_per_gpu_hour", "$/GPU/h", 0),
    Column::number("usd_per_hour", "$/h", 1),
    Column::number("spot_usd_per_hour", "spot $/h", 4),
    Column::text("provider", "provider", 0),
    Column::text("instance", "instance", 3),
    Column::text("region", "region", 3),
    Column::text("kind", "kind", 1),
    Column::text("tier", "tier", 5),
    Column::number("age_days", "age d", 0),
    Column::text("date", "date", 6),
    Column::text("currency", "currency", 7),
    Column::text("form_factor", "form factor", 8),
    Column::text("commitment", "commitment", 8),
    Column::text("source", "source", 9),
    Column::text("notes", "notes", 10),
];

/// Runs `prices`.
pub fn run(matches: &ArgMatches, shared: &Shared) -> Result<ExitCode, CliError> {
    let mut request = PlanRequest::default();
    read_request(matches, &mut request)?;
    let world = World::load_priced(matches, &request.prices)?;
    let words = filter_words(matches);
    let mut gpus = Vec::new();
    for name in &request.gpus {
        gpus.push(world.gpu(name)?.id.to_string());
    }
    for provider in &request.providers {
        if world.market.provider(provider).is_none() {
            let known: Vec<&str> = world.market.providers().iter().map(|p| &*p.id).collect();
            return Err(CliError::new(format!("no provider is called `{provider}`"))
                .hint(format!("providers are {}", known.join(", "))));
        }
    }
    if matches.get_flag("stats") {
        return Ok(stats(&world, &gpus, &words, shared));
    }
    let keep = |o: &Offer| {
        (gpus.is_empty() || gpus.iter().any(|g| **g == *o.gpu))
            && (request.providers.is_empty() || request.providers.iter().any(|p| **p == *o.provider))
            && market::in_regions(&o.region, &request.regions)
            && (request.purchase == Purchase::OnDemand || o.spot.is_some())
            && matches_all(&haystack(o), &words)
    };
    let mut offers: Vec<&Offer> = world.market.offers().iter().filter(|o| keep(o)).collect();
    let price = |o: &Offer| match request.purchase {
        Purchase::OnDemand => o.on_demand.or(o.spot),
        Purchase::Spot => o.spot,
    };
    let per_gpu = |o: &Offer| price(o).map_or(f64::INFINITY, |p| p.0 / o.gpu_count);
    offers.sort_by(|a, b| {
        a.gpu
            .cmp(&b.gpu)
            .then(per_gpu(a).total_cmp(&per_gpu(b)))
            .then_with(|| (&a.provider, &a.instance, &a.region).cmp(&(&b.provider, &b.instance, &b.region)))
    });
    let mut table = Table::new(COLUMNS);
    for o in &offers {
        table.push(row(o, &world));
    }
    let count = table.rows.len();
    let mut below = vec![
        format!("{count} of {} offers; — is unknown, never 0", world.market.offers().len()),
        format!(
            "`!` after an age: older than {} days or undated; prices are of whole instances, also of parts of a GPU",
            market::STALE_AFTER_DAYS
        ),
        "medians over providers: `nodewise prices --stats`".to_owned(),
    ];
    for o in world.market.overrides() {
        below
            .push(format!("your price for {}: {} per GPU, in place of {} quotes", o.gpu, o.usd_per_gpu_hour, o.offers));
    }
    print_table(&table, &shared.style, &below);
    Ok(found(count > 0, "offer", "`nodewise prices` lists all of them"))
}

fn haystack(o: &Offer) -> String {
    format!("{} {} {} {} {} {}", o.gpu, o.provider, o.instance, o.region, o.kind.name(), o.tier.name()).to_lowercase()
}

fn row(o: &Offer, world: &World) -> Vec<Cell> {
    let spot_only = o.on_demand.is_none() && o.spot.is_some();
    let age = if spot_only { o.spot_age_days(world.today) } else { o.age_days(world.today) };
    let stale = age.is_none_or(|d| d > market::STALE_AFTER_DAYS);
    let age_text = match age {
        Some(d) => format!("{d}{}", if stale { "!" } else { "" }),
        None => "undated!".into(),
    };
    let kind = if o.origin == PriceOrigin::User { "your price" } else { o.kind.name() };
    let per_gpu = o.on_demand.or(o.spot).map(|p| p.0 / o.gpu_count);
    let count = if o.gpu_count.fract() == 0.0 { format!("{:.0}", o.gpu_count) } else { units::sig3(o.gpu_count) };
    vec![
        Cell::shown(o.gpu.split_once('-').map_or(&*o.gpu, |(_, s)| s), o.gpu.to_string()),
        Cell::shown(count, o.gpu_count),
        Cell::number(per_gpu),
        Cell::number(o.on_demand.map(|p| p.0)),
        Cell::number(o.spot.map(|p| p.0)),
        Cell::text(o.provider.to_string()),
        Cell::text(o.instance.to_string()),
        Cell::text(o.region.to_string()),
        Cell::text(kind),
        Cell::text(o.tier.name()),
        Cell::shown(age_text, age.map_or(Value::Null, Value::from)),
        Cell::text(if spot_only { o.spot_date_text.to_string() } else { o.date_text.to_string() }),
        Cell::text(o.currency.name()),
        Cell::text(o.form_factor.name()),
        Cell::text(o.commitment.as_deref().unwrap_or("")),
        Cell::text(o.source.to_string()),
        Cell::text(o.notes.to_string()),
    ]
}

fn stats(world: &World, gpus: &[String], words: &[String], shared: &Shared) -> ExitCode {
    let mut table = Table::new(&[
        Column::text("gpu", "gpu", 0),
        Column::number("median_usd_per_gpu_hour", "median $/h", 0),
        Column::number("lowest_usd_per_gpu_hour", "lowest", 1),
        Column::number("highest_usd_per_gpu_hour", "highest", 1),
        Column::number("providers", "providers", 0),
        Column::text("oldest_date", "oldest", 0),
        Column::number("undated", "undated", 2),
    ]);
    let wanted = |id: &str| (gpus.is_empty() || gpus.iter().any(|g| g == id)) && matches_all(&id.to_lowercase(), words);
    for gpu in world.hardware.gpus().iter().filter(|g| wanted(&g.id)) {
        let Some(stat) = world.market.median_price_per_gpu(&gpu.id) else { continue };
        table.push(vec![
            Cell::shown(gpu.short_id(), gpu.id.to_string()),
            Cell::number(Some(stat.usd_per_gpu_hour.0)),
            Cell::number(Some(stat.lowest.0)),
            Cell::number(Some(stat.highest.0)),
            Cell::count(Some(u64::from(stat.providers))),
            Cell::text(stat.oldest.map_or(String::new(), |d| d.to_string())),
            Cell::count(Some(u64::from(stat.undated))),
        ]);
    }
    let count = table.rows.len();
    let below = ["median over providers of each one's lowest on-demand price per whole GPU, every provider counted once; reserved, estimated and unverified prices have no vote".to_owned()];
    print_table(&table, &shared.style, if shared.style.format == Format::Table { &below } else { &[] });
    found(count > 0, "GPU with an on-demand price", "`nodewise prices --stats` lists all of them")
}
