//! `nodewise fit`: does a model fit these nodes, and what is left. Memory only.

use std::process::ExitCode;

use clap::ArgMatches;
use hardware::{NodeShape, Topology};
use model::{KvFormat, ModelSpec};
use perf::{Capacity, Engine};
use planner::{DEFAULT_SEQUENCES, DEFAULT_TOKENS, Fit, FitRequest, PlanRequest, fit};
use serde_json::{Value, json};
use units::{Basis, Bytes, group_thousands, sig3};

use super::plan_json::memory_json;
use super::{NO, Shared};
use crate::cli::read_request;
use crate::error::CliError;
use crate::out::table::{Cell, Column, Table, wrap};
use crate::out::{Format, counted, print, print_json, print_table, terms};
use crate::world::World;

/// How many times more a naive division must promise before it is worth a line.
const CLEARLY_LESS: f64 = 1.3;

/// Runs `fit`.
pub fn run(matches: &ArgMatches, shared: &Shared) -> Result<ExitCode, CliError> {
    let mut request = PlanRequest::default();
    read_request(matches, &mut request)?;
    request.check()?;
    let world = World::load(matches)?;
    let spec = World::spec(&request, shared.cached)?;
    let nominal = matches.get_one::<String>("memory").is_some_and(|m| m == "nominal");
    let weights_only = matches.get_flag("weights-only");
    let base = FitRequest {
        weights: None,
        kv: request.kv.first().copied().unwrap_or(KvFormat::Bf16),
        engine: request.engine.unwrap_or(Engine::Vllm),
        capacity: if nominal { Capacity::Nominal } else { Capacity::CudaTotal },
        weights_only,
        sequences: request.concurrency.map_or(DEFAULT_SEQUENCES, |n| n.ceil() as u64),
        tokens: request.context.unwrap_or(DEFAULT_TOKENS),
        tp: request.tp,
        pp: request.pp,
        dp: request.dp,
        ep: request.ep,
    };
    let formats = if request.weights.is_empty() { vec![spec.weights] } else { request.weights.clone() };
    let mut answers: Vec<(String, NodeShape, FitRequest, Fit)> = Vec::new();
    for on in matches.get_many::<String>("on").into_iter().flatten().flat_map(|s| s.split(',')) {
        let (shape, nodes) = world.on(on)?;
        for format in &formats {
            let request = FitRequest { weights: Some(*format), ..base.clone() };
            let answer = fit(&spec, &shape, nodes, &request)?;
            answers.push((on.trim().to_owned(), shape.clone(), request, answer));
        }
    }
    let all_fit = answers.iter().all(|(.., fit)| fit.fits);
    match (shared.style.format, answers.as_slice()) {
        (Format::Json, [(_, shape, request, one)]) => print_json(&document(&spec, shape, request, one, shared)),
        (Format::Json, many) => {
            print_json(&Value::Array(many.iter().map(|(_, s, r, f)| document(&spec, s, r, f, shared)).collect()));
        }
        (Format::Table, [(on, shape, request, one)]) => print(&page(&spec, on, shape, request, one, shared)),
        (_, many) => print_table(&list(&spec, many), &shared.style, &below(&spec, &base)),
    }
    Ok(if all_fit { ExitCode::SUCCESS } else { ExitCode::from(NO) })
}

fn document(spec: &ModelSpec, shape: &NodeShape, request: &FitRequest, fit: &Fit, shared: &Shared) -> Value {
    let mut value = json!({
        "model": spec.name,
        "node": shape.id.to_string(),
        "fits": fit.fits,
        "nodes": fit.nodes,
        "gpus": fit.gpus,
        "nodes_needed": fit.nodes_needed,
        "layout": {"tp": fit.layout.tp, "pp": fit.layout.pp, "dp": fit.layout.dp, "ep": fit.layout.ep},
        "formats": {"weights": fit.formats.weights.name(), "kv": fit.formats.kv.name()},
        "engine": request.engine.name(),
        "memory": if request.capacity == Capacity::Nominal { "nominal" } else { "usable" },
        "sequences": if request.weights_only { 0 } else { request.sequences },
        "tokens_per_sequence": if request.weights_only { 0 } else { request.tokens },
        "per_gpu": memory_json(&fit.memory),
        "kv_tokens_max": if spec.kv_known() { json!(fit.memory.kv_tokens_max) } else { Value::Null },
        "sequences_max": if spec.kv_known() { json!(fit.memory.sequences_max) } else { Value::Null },
    });
    if shared.explain {
        value["explain"] = terms::json(&fit.memory.term);
    }
    value
}

fn amount(bytes: Bytes, nominal: bool) -> String {
    if nominal { bytes.decimal() } else { bytes.to_string() }
}

const COLUMNS: &[Column] = &[
    Column::text("on", "on", 0),
    Column::text("weights", "weights", 0),
    Column::text("fits", "fits", 0),
    Column::number("nodes_needed", "nodes needed", 0),
    Column::text("layout", "layout", 1),
    Column::number("weights_bytes", "weights/GPU", 1),
    Column::number("kv_bytes", "KV/GPU", 3),
    Column::number("free_bytes", "free/GPU", 2),
    Column::number("free_all_bytes", "left in all", 0),
    Column::number("kv_tokens_max", "KV tokens", 2),
    Column::number("sequences_max", "sequences", 4),
];

fn list(spec: &ModelSpec, answers: &[(String, NodeShape, FitRequest, Fit)]) -> Table {
    let mut table = Table::new(COLUMNS);
    for (on, _, request, fit) in answers {
        let nominal = request.capacity == Capacity::Nominal;
        let m = &fit.memory;
        let shown = |b: Bytes| Cell::shown(amount(b, nominal), b.0);
        let known = spec.kv_known() && !request.weights_only;
        let left = Bytes(m.free.0.saturating_mul(u64::from(fit.gpus)));
        let missing = Bytes(m.shortfall.0.saturating_mul(u64::from(fit.gpus)));
        table.push(vec![
            Cell::text(&**on),
            Cell::text(fit.formats.weights.name()),
            Cell::shown(if fit.fits { "yes" } else { "no" }, fit.fits),
            fit.nodes_needed.map_or_else(Cell::unknown, |n| Cell::count(Some(u64::from(n)))),
            Cell::text(fit.layout.to_string()),
            shown(m.weights),
            if known { shown(m.kv) } else { Cell::unknown() },
            if fit.fits {
                shown(m.free)
            } else {
                Cell::shown(format!("-{}", amount(m.shortfall, nominal)), -(m.shortfall.0 as i64))
            },
            if fit.fits {
                shown(left)
            } else {
                Cell::shown(format!("-{}", amount(missing, nominal)), -(missing.0 as i64))
            },
            Cell::count((known && fit.fits).then_some(m.kv_tokens_max)),
            Cell::count((known && fit.fits).then_some(m.sequences_max)),
        ]);
    }
    table
}

fn below(spec: &ModelSpec, request: &FitRequest) -> Vec<String> {
    let mut lines = Vec::new();
    if request.weights_only {
        lines.push(
            "weights only: no cache, activations or runtime are counted, so nothing is left to serve with".into(),
        );
    } else {
        lines.push(load_line(request));
    }
    if request.capacity == Capacity::Nominal {
        lines.push("nominal memory is the label in decimal GB; an engine sees less: `--memory usable`".into());
    }
    if !spec.kv_known() {
        lines.push("the KV cache of a bare size is unknown and counted as nothing".into());
    }
    lines
}

fn load_line(request: &FitRequest) -> String {
    format!(
        "load: {} of {} tokens per replica, KV in {}, engine {}",
        counted(request.sequences, "sequence"),
        group_thousands(request.tokens),
        request.kv.name(),
        request.engine.name()
    )
}

fn page(spec: &ModelSpec, on: &str, shape: &NodeShape, request: &FitRequest, fit: &Fit, shared: &Shared) -> String {
    let nominal = request.capacity == Capacity::Nominal;
    let m = &fit.memory;
    let mut out = String::new();
    let verdict = if fit.fits { "fits" } else { "does not fit" };
    let mut paragraph = |text: String| {
        for line in wrap(&text, shared.style.width) {
            out.push_str(&line);
            out.push('\n');
        }
    };
    paragraph(format!(
        "{} in {} {verdict} on {on}: {} x {} ({}), {}",
        spec.name,
        fit.formats.weights.name(),
        fit.nodes,
        shape.id.replace("generic/", ""),
        counted(u64::from(fit.gpus), "GPU"),
        fit.layout
    ));
    match fit.nodes_needed {
        Some(n) if n != fit.nodes => paragraph(format!("smallest count of these nodes that fits: {n}")),
        None => paragraph("no count of these nodes up to 64 fits".into()),
        _ => {}
    }
    if shape.gpus > 1 {
        paragraph(links(shape));
    }
    for line in below(spec, request) {
        paragraph(line);
    }
    out.push_str(&format!("\nper GPU of the heaviest rank{}\n", if nominal { " (nominal)" } else { "" }));
    let mut row = |name: &str, bytes: Bytes, remark: &str| {
        out.push_str(format!("  {name:<14}{:>12}  {remark}", amount(bytes, nominal)).trim_end());
        out.push('\n');
    };
    row("memory", m.capacity, if nominal { "the label" } else { "what an engine sees" });
    row("weights", m.weights, "");
    if !request.weights_only {
        row("KV cache", m.kv, if spec.kv_known() { "of the asked load" } else { "unknown for a bare size" });
        row("activations", m.activations, "of the largest step");
        row("runtime", m.runtime, "context, collectives, graphs");
    }
    if m.reserve.0 > 0 {
        row("reserve", m.reserve, "withheld by the engine's memory fraction");
    }
    if fit.fits {
        let left = Bytes(m.free.0.saturating_mul(u64::from(fit.gpus)));
        row("free", m.free, &format!("{} over {}", amount(left, nominal), counted(u64::from(fit.gpus), "GPU")));
    } else {
        row("missing", m.shortfall, "");
    }
    if spec.kv_known() && !request.weights_only && m.kv_tokens_max > 0 {
        out.push_str(&format!(
            "\nthe cache of a replica holds {} tokens: {} of {}\n",
            group_thousands(m.kv_tokens_max),
            counted(m.sequences_max, "sequence"),
            group_thousands(request.tokens)
        ));
        let total = spec.kv_bytes(request.tokens, request.kv).as_f64();
        let all_free = (m.free.as_f64() + m.kv.as_f64()) * f64::from(fit.layout.gpus());
        let promised = if total > 0.0 { (all_free / total).floor() } else { 0.0 };
        // bytes that the ranks which share a sequence hold of it, over the bytes of one copy
        let ranks = f64::from(fit.layout.tp * fit.layout.pp);
        let copies = if total > 0.0 { m.kv_bytes_per_sequence.as_f64() * ranks / total } else { 1.0 };
        if copies > CLEARLY_LESS && promised > m.sequences_max as f64 * CLEARLY_LESS {
            for line in wrap(
                &format!(
                    "all free bytes over the bytes of a sequence would promise {}: under {} each token is held {} times",
                    group_thousands(promised as u64),
                    fit.layout,
                    sig3(copies)
                ),
                shared.style.width,
            ) {
                out.push_str(&line);
                out.push('\n');
            }
        }
    }
    if shared.explain {
        out.push('\n');
        out.push_str(&terms::render(&m.term, shared.style.width));
    }
    out
}

/// How the GPUs of the node reach each other: what a layout over several of them pays for.
fn links(shape: &NodeShape) -> String {
    let basis = if shape.topology_basis == Basis::Assumed { ", assumed" } else { "" };
    let (rate, kind) = shape.peer_bandwidth(shape.gpus);
    let mut text = format!("links: {}, {} per GPU in one direction{basis}", kind.name(), rate);
    let bridge = shape.gpu.link.as_ref().filter(|l| l.needs_bridge);
    match (&shape.topology, bridge) {
        (Topology::Bridges { group }, _) => {
            text.push_str(&format!("; bridges join groups of {group}, PCIe between them"));
        }
        (_, Some(link)) => text.push_str(&format!(
            "; no {} beyond its bridges, which would join {} GPUs at {}",
            link.name, link.bridge_gpus, link.per_direction
        )),
        _ => {}
    }
    text
}
