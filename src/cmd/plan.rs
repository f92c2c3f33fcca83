//! `nodewise plan`: the main job.

use std::io::Read;
use std::process::ExitCode;

use clap::ArgMatches;
use model::{KvFormat, ModelSpec};
use planner::{Answer, Load, Pick, PickReason, Plan, PlanRequest, Planner};
use serde_json::Value;
use units::sig3;

use super::plan_json::document;
use super::{NO, Shared};
use crate::cli::read_request;
use crate::error::CliError;
use crate::out::table::{Cell, Column, Table, wrap};
use crate::out::{Format, print, print_json, print_table, terms};
use crate::world::World;

/// Largest request document read.
const MAX_REQUEST: u64 = 1 << 20;

/// Runs `plan`.
pub fn run(matches: &ArgMatches, shared: &Shared) -> Result<ExitCode, CliError> {
    let mut request = match matches.get_one::<String>("request") {
        Some(source) => read_document(source)?,
        None => PlanRequest::default(),
    };
    read_request(matches, &mut request)?;
    request.check()?;
    let world = World::load_priced(matches, &request.prices)?;
    let spec = World::spec(&request, shared.cached)?;
    let planner = Planner::new(&world.hardware, &world.market, World::curves(), world.today);
    let answer = planner.plan(&spec, &request)?;
    let top = matches.get_one::<u32>("top").copied().unwrap_or(10) as usize;
    match shared.style.format {
        Format::Json => {
            let explain = |plan: &Plan| shared.explain.then(|| planner.explain(&spec, plan));
            print_json(&document(&spec, &request, &answer, &explain));
        }
        Format::Table => {
            let mut text = head(&spec, &answer, shared);
            text.push_str(&body(&answer, top, shared));
            if shared.explain
                && let Some(pick) = answer.picks.first()
            {
                text.push_str("\nhow the first plan is made up\n");
                text.push_str(&terms::render(&planner.explain(&spec, &answer.plans[pick.plan]), shared.style.width));
            }
            text.push_str(&reasons(&answer, shared));
            text.push_str(&assumptions(&answer, &request, shared));
            print(&text);
        }
        Format::Csv | Format::Md => print_table(&table(&answer, usize::MAX), &shared.style, &[]),
    }
    if answer.plans.is_empty() {
        eprintln!("nothing fits the request; nearest misses by reason: see --why");
        return Ok(ExitCode::from(NO));
    }
    Ok(ExitCode::SUCCESS)
}

/// A request from a JSON file, stdin (`-`) or a query string.
fn read_document(source: &str) -> Result<PlanRequest, CliError> {
    let is_query = source.starts_with('?') || (source.contains('=') && !std::path::Path::new(source).exists());
    if is_query {
        return Ok(PlanRequest::from_query(source)?);
    }
    let mut text = String::new();
    let read = |reader: &mut dyn Read, text: &mut String| reader.take(MAX_REQUEST + 1).read_to_string(text);
    let result = if source == "-" {
        read(&mut std::io::stdin().lock(), &mut text)
    } else {
        std::fs::File::open(source).and_then(|mut f| read(&mut f, &mut text))
    };
    result.map_err(|e| {
        CliError::new(format!("cannot read the request from `{source}`: {e}"))
            .hint("give a JSON file, `-` for stdin, or a query string like `?model=llama-3.1-8b&rate=2`")
    })?;
    if text.len() as u64 > MAX_REQUEST {
        return Err(CliError::new(format!("the request in `{source}` is larger than 1 MiB")));
    }
    crate::request_json::request_from_json(&text).map_err(|e| e.within(format!("request in `{source}`")))
}

fn head(spec: &ModelSpec, answer: &Answer, shared: &Shared) -> String {
    let active = spec.params_active();
    let active = if active != spec.params_total() { format!(" ({active} active)") } else { String::new() };
    let kv = if spec.kv_known() {
        format!("KV {} per token", spec.kv_bytes_per_token(KvFormat::Bf16))
    } else {
        "KV unknown".to_owned()
    };
    let t = &answer.traffic;
    let load = match t.load {
        Load::Concurrency(n) => format!("{} requests in flight", sig3(n)),
        Load::Rate(r) => format!("{} requests/s", sig3(r)),
    };
    let mut limits = Vec::new();
    limits.extend(t.ttft.map(|s| format!("TTFT <= {s}")));
    limits.extend(t.tpot.map(|s| format!("TPOT <= {s}")));
    let limits = if limits.is_empty() { "no latency limit".to_owned() } else { limits.join(", ") };
    let model = format!(
        "{}: {}{active} parameters, {} in {}, {kv}",
        spec.name,
        spec.params_total(),
        spec.weights_bytes_checkpoint(),
        spec.weights.name()
    );
    let load = format!("load: {} tokens in, {} out, {load}; {limits}", t.input, t.output);
    let mut out = String::new();
    for line in wrap(&model, shared.style.width).into_iter().chain(wrap(&load, shared.style.width)) {
        out.push_str(&line);
        out.push('\n');
    }
    out.push('\n');
    out
}

fn body(answer: &Answer, top: usize, shared: &Shared) -> String {
    let mut out = String::new();
    for pick in &answer.picks {
        out.push_str(&pick_lines(pick, answer, shared.style.width));
    }
    if answer.plans.is_empty() {
        return out;
    }
    out.push('\n');
    out.push_str(&table(answer, top).render(shared.style.width));
    let shown = answer.plans.len().min(top);
    let rejected: u64 = answer.rejections.iter().map(|r| r.count).sum();
    let tail = format!(
        "showing {shown} of {} plans, best per kind of node and format; {} candidates rejected, see --why",
        answer.plans.len(),
        units::group_thousands(rejected)
    );
    for line in wrap(&tail, shared.style.width) {
        out.push_str(&line);
        out.push('\n');
    }
    if !answer.pareto.is_empty() {
        out.push_str("\nfor throughput per GPU against speed for one user, these are not beaten (Pareto):\n");
        out.push_str(&pareto(answer).render(shared.style.width));
    }
    out
}

fn pick_lines(pick: &Pick, answer: &Answer, width: usize) -> String {
    let plan = &answer.plans[pick.plan];
    let label = match pick.reason {
        PickReason::Cheapest => "cheapest",
        PickReason::Best => "best",
        PickReason::Fastest => "fastest",
        PickReason::StepUp => "step up",
    };
    if pick.reason == PickReason::Fastest && answer.picks.first().is_some_and(|p| p.plan == pick.plan) {
        return format!("{label:<10}the same plan\n");
    }
    let s = &plan.serving;
    let band = |t: units::Seconds, (low, high): (f64, f64)| format!("{t} ({} to {})", t * low, t * high);
    let mut first = plan.title();
    if let (Some(price), Some(offer)) = (plan.usd_per_hour(), &plan.offer) {
        let origin = if offer.kind == "your price" {
            "your price".to_owned()
        } else {
            format!("{} {}", offer.provider, age(offer.age_days))
        };
        first.push_str(&format!(": {price}, {origin}"));
        if offer.stale {
            first.push_str(", stale");
        }
    } else {
        first.push_str(": no offer known");
    }
    let mut second = format!("TTFT {}", band(s.ttft, s.ttft_band));
    if plan.load.output > 1.0 {
        second.push_str(&format!(
            ", TPOT {}, {} tok/s in all, bound by {}",
            band(s.tpot, s.tpot_band),
            sig3(plan.output_tokens_per_s),
            s.limited_by.name()
        ));
    } else {
        second.push_str(&format!(", {} requests/s in all", sig3(plan.requests_per_s)));
    }
    let mut lines = vec![first, second];
    if !pick.remark.is_empty() {
        lines.push(pick.remark.clone());
    }
    lines.extend(plan.notes.iter().cloned());
    let mut out = String::new();
    let mut lead = format!("{label:<10}");
    for line in lines {
        for part in wrap(&line, width.saturating_sub(10)) {
            out.push_str(&format!("{lead}{part}\n"));
            lead = " ".repeat(10);
        }
    }
    out
}

fn age(days: Option<i64>) -> String {
    match days {
        Some(1) => "1 day old".into(),
        Some(n) => format!("{n} days old"),
        None => "undated".into(),
    }
}

const COLUMNS: &[Column] = &[
    Column::number("rank", "#", 0),
    Column::number("nodes", "n", 0),
    Column::text("hardware", "node", 0),
    Column::text("node", "node type", 6),
    Column::text("gpu", "gpu", 11),
    Column::number("gpus", "GPUs", 5),
    Column::text("layout", "layout", 0),
    Column::number("replicas", "repl", 4),
    Column::text("weights", "weights", 4),
    Column::text("kv", "kv", 9),
    Column::number("ttft_ms", "TTFT ms", 1),
    Column::number("tpot_ms", "TPOT ms", 0),
    Column::number("output_tokens_per_s", "tok/s", 5),
    Column::number("output_tokens_per_s_per_gpu", "tok/s/GPU", 6),
    Column::number("usd_per_hour", "$/h", 0),
    Column::number("usd_per_million_output_tokens", "$/1M out", 1),
    Column::number("usd_per_1000_requests", "$/1k req", 7),
    Column::text("provider", "provider", 3),
    Column::text("offer_kind", "offer", 7),
    Column::number("offer_age_days", "age d", 0),
    Column::text("notes", "notes", 10),
];

fn table(answer: &Answer, top: usize) -> Table {
    let mut table = Table::new(COLUMNS);
    // a format that differs between rows tells them apart: it must stay
    let differ = |of: fn(&Plan) -> &'static str| answer.plans.iter().any(|p| of(p) != of(&answer.plans[0]));
    for (key, differs) in [("weights", differ(|p| p.formats.weights.name())), ("kv", differ(|p| p.formats.kv.name()))] {
        for column in table.columns.iter_mut().filter(|c| c.key == key && differs) {
            column.rank = 0;
        }
    }
    for (i, plan) in answer.plans.iter().take(top).enumerate() {
        let offer = plan.offer.as_ref();
        let weights = plan.formats.weights.name();
        let age_text = offer.map_or(String::new(), |o| {
            let stale = if o.stale { "!" } else { "" };
            o.age_days.map_or_else(|| "?!".into(), |d| format!("{d}{stale}"))
        });
        table.push(vec![
            Cell::shown((i + 1).to_string(), (i + 1) as u64),
            Cell::count(Some(plan.nodes)),
            Cell::text(&*plan.hardware),
            Cell::text(&*plan.node),
            Cell::text(&*plan.gpu),
            Cell::count(Some(plan.gpus)),
            Cell::text(plan.layout.to_string()),
            Cell::count(Some(plan.replicas)),
            Cell::shown(if plan.own_format { weights.to_string() } else { format!("{weights} ?") }, weights),
            Cell::text(plan.formats.kv.name()),
            Cell::number(Some(plan.serving.ttft.ms())),
            Cell::number((plan.load.output > 1.0).then_some(plan.serving.tpot.ms())),
            Cell::number((plan.load.output > 0.0).then_some(plan.output_tokens_per_s)),
            Cell::number((plan.load.output > 0.0).then_some(plan.output_tokens_per_s_per_gpu())),
            Cell::number(plan.usd_per_hour().map(|p| p.0)),
            Cell::number(plan.usd_per_million_output_tokens()),
            Cell::number(plan.usd_per_1000_requests()),
            Cell::text(offer.map_or("", |o| &o.provider)),
            Cell::text(offer.map_or("", |o| &o.kind)),
            Cell::shown(age_text, offer.and_then(|o| o.age_days).map_or(Value::Null, Value::from)),
            Cell::text(plan.notes.join("; ")),
        ]);
    }
    table
}

fn pareto(answer: &Answer) -> Table {
    let mut table = Table::new(&[
        Column::text("node", "node", 0),
        Column::text("layout", "layout", 0),
        Column::text("weights", "weights", 1),
        Column::number("gpus", "GPUs", 2),
        Column::number("tokens_per_s_per_user", "tok/s/user", 0),
        Column::number("output_tokens_per_s_per_gpu", "tok/s/GPU", 0),
    ]);
    for p in &answer.pareto {
        table.push(vec![
            Cell::text(&*p.hardware),
            Cell::text(p.layout.to_string()),
            Cell::text(p.weights.name()),
            Cell::count(Some(p.gpus)),
            Cell::number(Some(p.interactivity)),
            Cell::number(Some(p.output_tokens_per_s_per_gpu)),
        ]);
    }
    table
}

fn reasons(answer: &Answer, shared: &Shared) -> String {
    if answer.rejections.is_empty() || !(shared.why || answer.plans.is_empty()) {
        return String::new();
    }
    let mut out = String::from("\nwhy not\n");
    for group in &answer.rejections {
        out.push_str(&format!("  {} x {}\n", units::group_thousands(group.count), group.reason));
        let nearest = format!("nearest: {}: {}", group.nearest.candidate, group.nearest.rejection.sentence());
        let fix = format!("fix: {}", group.nearest.rejection.fix());
        for line in [nearest, fix] {
            for (i, part) in wrap(&line, shared.style.width.saturating_sub(8)).into_iter().enumerate() {
                out.push_str(&format!("{}{part}\n", if i == 0 { "      " } else { "        " }));
            }
        }
    }
    out
}

fn assumptions(answer: &Answer, request: &PlanRequest, shared: &Shared) -> String {
    let mut out = String::from("\nassumed\n");
    for line in &answer.assumptions {
        for (i, part) in wrap(line, shared.style.width.saturating_sub(4)).into_iter().enumerate() {
            out.push_str(&format!("{}{part}\n", if i == 0 { "  - " } else { "    " }));
        }
    }
    out.push_str(&format!("\nagain: {}\n", request.to_command()));
    out
}
