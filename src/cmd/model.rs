//! `nodewise model`: a model's anatomy from its own files.

use std::process::ExitCode;

use clap::ArgMatches;
use model::{KvFormat, ModelSpec, WeightFormat};
use planner::PlanRequest;
use serde_json::{Value, json};
use units::{Bytes, Params, group_thousands};

use super::{NO, Shared, files};
use crate::cli::read_request;
use crate::error::CliError;
use crate::out::table::{Cell, Column, Table};
use crate::out::{Format, print, print_json, print_table};
use crate::world::{Found, World};

/// Runs `model`.
pub fn run(matches: &ArgMatches, shared: &Shared) -> Result<ExitCode, CliError> {
    let mut request = PlanRequest::default();
    read_request(matches, &mut request)?;
    let names: Vec<&String> = matches.get_many::<String>("models").into_iter().flatten().collect();
    if matches.get_flag("all") {
        return all(shared, &request);
    }
    if names.is_empty() {
        return Err(CliError::new("no model is named").hint("name one, or list the catalog: `nodewise model --all`"));
    }
    let found = names.iter().map(|n| World::model(n, shared.cached)).collect::<Result<Vec<_>, _>>()?;
    if let (Format::Table, [one]) = (shared.style.format, found.as_slice()) {
        let mut text = match &one.spec {
            Ok(spec) => page(spec, &request, shared),
            Err(_) => format!("{}\n", one.name),
        };
        text.push_str(&files::page(one));
        print(&text);
        if let Err(e) = &one.spec {
            eprintln!("note: only the files' sums are known: {}", e.message);
        }
        return Ok(ExitCode::SUCCESS);
    }
    if shared.style.format == Format::Json {
        let mut rows: Vec<Value> = found.iter().map(|f| files::json(f, |s| anatomy(s, &request))).collect();
        let one = rows.len() == 1;
        print_json(&if one { rows.swap_remove(0) } else { Value::Array(rows) });
        return Ok(ExitCode::SUCCESS);
    }
    let specs = found.into_iter().map(Found::into_spec).collect::<Result<Vec<_>, _>>()?;
    print_table(&list(&specs, &request), &shared.style, &[]);
    Ok(ExitCode::SUCCESS)
}

fn all(shared: &Shared, request: &PlanRequest) -> Result<ExitCode, CliError> {
    let mut specs = Vec::new();
    let mut refused = Vec::new();
    for entry in World::catalog_models() {
        match entry.spec() {
            Ok(spec) => specs.push(spec),
            Err(e) => refused.push(format!("{}: {e}", entry.name)),
        }
    }
    let table = list(&specs, request);
    let mut below = vec![format!("{} models", specs.len())];
    if !refused.is_empty() {
        below.push(format!("{} more are in the catalog but not understood yet (see --why)", refused.len()));
    }
    if shared.style.format == Format::Json {
        print_json(&Value::Array(specs.iter().map(|s| anatomy(s, request)).collect()));
    } else {
        print_table(&table, &shared.style, &below);
    }
    if shared.why {
        for line in &refused {
            eprintln!("{line}");
        }
    }
    Ok(if specs.is_empty() { ExitCode::from(NO) } else { ExitCode::SUCCESS })
}

fn kv_format(request: &PlanRequest) -> KvFormat {
    request.kv.first().copied().unwrap_or(KvFormat::Bf16)
}

/// The anatomy for programs.
fn anatomy(spec: &ModelSpec, request: &PlanRequest) -> Value {
    let kv = kv_format(request);
    let known = spec.kv_known();
    let mut out = json!({
        "name": spec.name,
        "architecture": spec.architecture,
        "family": spec.family,
        "layers": spec.layer_count(),
        "hidden": spec.hidden,
        "vocabulary": spec.vocab,
        "max_context_tokens": if spec.max_context > 0 { json!(spec.max_context) } else { Value::Null },
        "parameters": {
            "total": spec.params_total().0,
            "active": spec.params_active().0,
            "active_without_embedding": spec.params_active_without_embedding().0,
            "mtp": spec.params_mtp().0,
            "stored": spec.params_stored().0,
        },
        "stored_differences": spec.stored_extra.iter().map(|(why, n)| json!({"reason": why, "elements": n})).collect::<Vec<_>>(),
        "weights_format": spec.weights.name(),
        "weights_bytes": spec.weights_bytes_checkpoint().0,
        "stored_bytes": spec.stored_bytes().0,
        "kv": {
            "bytes_per_token": if known { json!(spec.kv_bytes_per_token(KvFormat::Bf16).0) } else { Value::Null },
            "state_bytes_per_sequence": if known { json!(spec.state_bytes_per_sequence().0) } else { Value::Null },
        },
        "problems": spec.problems.iter().map(|p| json!({"key": p.key, "message": p.message})).collect::<Vec<_>>(),
    });
    if kv != KvFormat::Bf16 || request.context.is_some() {
        let tokens = request.context.unwrap_or(4096);
        out["kv_of_a_sequence"] = json!({"tokens": tokens, "format": kv.name(), "bytes": spec.kv_bytes(tokens, kv).0});
    }
    if !request.weights.is_empty() {
        let formats =
            request.weights.iter().map(|f| json!({"format": f.name(), "weights_bytes": spec.weights_bytes(*f).0}));
        out["formats"] = Value::Array(formats.collect());
    }
    out
}

const COLUMNS: &[Column] = &[
    Column::text("name", "model", 0),
    Column::text("family", "family", 5),
    Column::number("parameters_total", "params", 0),
    Column::number("parameters_active", "active", 1),
    Column::number("parameters_mtp", "mtp", 6),
    Column::number("parameters_stored", "stored", 4),
    Column::text("weights_format", "format", 2),
    Column::number("weights_bytes", "weights", 0),
    Column::number("kv_bytes_per_token", "KV B/token", 1),
    Column::number("state_bytes_per_sequence", "state/seq", 5),
    Column::number("max_context_tokens", "context", 3),
    Column::number("problems", "remarks", 7),
];

fn list(specs: &[ModelSpec], request: &PlanRequest) -> Table {
    let mut table = Table::new(COLUMNS);
    let params = |p: Params| Cell::shown(p.to_string(), p.0);
    let bytes = |b: Bytes| if b.0 == 0 { Cell::shown("0", 0) } else { Cell::shown(b.to_string(), b.0) };
    for spec in specs {
        let weights = request.weights.first();
        table.push(vec![
            Cell::text(&*spec.name),
            Cell::text(spec.family),
            params(spec.params_total()),
            params(spec.params_active()),
            params(spec.params_mtp()),
            params(spec.params_stored()),
            Cell::text(weights.unwrap_or(&spec.weights).name()),
            bytes(weights.map_or_else(|| spec.weights_bytes_checkpoint(), |f| spec.weights_bytes(*f))),
            if spec.kv_known() {
                Cell::count(Some(spec.kv_bytes_per_token(kv_format(request)).0))
            } else {
                Cell::unknown()
            },
            if spec.kv_known() { bytes(spec.state_bytes_per_sequence()) } else { Cell::unknown() },
            Cell::count((spec.max_context > 0).then_some(spec.max_context)),
            Cell::count(Some(spec.problems.len() as u64)),
        ]);
    }
    table
}

/// The anatomy for people.
fn page(spec: &ModelSpec, request: &PlanRequest, shared: &Shared) -> String {
    let mut out = format!("{}  ({}, {} layers)\n\n", spec.name, spec.architecture, spec.layer_count());
    let mut line = |name: &str, value: String, remark: &str| {
        out.push_str(format!("{name:<26}{value:>22}  {remark}").trim_end());
        out.push('\n');
    };
    let count = |p: Params| group_thousands(p.0);
    line("parameters", count(spec.params_total()), "unique, as served");
    let active = spec.params_active();
    if active != spec.params_total() {
        line("  active per token", count(active), "with the embedding");
    }
    line("  without embedding", count(spec.params_active_without_embedding()), "read for every token");
    if spec.params_mtp().0 > 0 {
        line("  MTP", count(spec.params_mtp()), "loaded only for speculative decoding");
    }
    line("  stored in the files", count(spec.params_stored()), "");
    for (why, elements) in &spec.stored_extra {
        let sign = if *elements < 0 { "-" } else { "+" };
        line("", format!("{sign}{}", group_thousands(elements.unsigned_abs())), why);
    }
    let own = spec.weights;
    let mut formats = vec![own];
    formats.extend(request.weights.iter().copied().filter(|f| *f != own));
    if request.weights.is_empty() {
        let usual = [WeightFormat::Bf16, WeightFormat::Fp8Block, WeightFormat::Awq { group: 128 }];
        formats.extend(usual.into_iter().filter(|f| *f != own && f.weight_bits() < own.weight_bits()));
    }
    line("", String::new(), "");
    for format in formats {
        let (bytes, remark) = if format == own {
            (spec.weights_bytes_checkpoint(), "the checkpoint's own format")
        } else {
            (spec.weights_bytes(format), "if re-quantised: quality not assessed")
        };
        line(&format!("weights in {}", format.name()), bytes.to_string(), &format!("{}; {remark}", bytes.decimal()));
    }
    line("", String::new(), "");
    if spec.kv_known() {
        let kv = kv_format(request);
        line(
            "KV cache per token",
            format!("{} B", group_thousands(spec.kv_bytes_per_token(kv).0)),
            &format!("{}, one copy, below every window", kv.name()),
        );
        let state = spec.state_bytes_per_sequence();
        if state.0 > 0 {
            line("state per sequence", state.to_string(), "whatever the context");
        }
        let mut lengths = vec![4096, 32_768, 131_072];
        if let Some(context) = request.context {
            lengths = vec![context];
        }
        for tokens in
            lengths.into_iter().filter(|&t| request.context.is_some() || spec.max_context == 0 || t <= spec.max_context)
        {
            line(&format!("  {} tokens", group_thousands(tokens)), spec.kv_bytes(tokens, kv).to_string(), "");
        }
    } else {
        line("KV cache per token", "unknown".into(), "a bare size says nothing about it");
    }
    if spec.max_context > 0 {
        line("longest context", group_thousands(spec.max_context), "tokens, as the config claims");
    }
    if shared.explain {
        out.push_str("\nlayers\n");
        for run in &spec.layers {
            out.push_str(&format!("  {:>3} x {}\n", run.count, describe(run)));
            for m in &run.matrices {
                let copies = if m.copies > 1 { format!("{} x ", m.copies) } else { String::new() };
                out.push_str(&format!(
                    "        {:<18} {copies}{} x {}{}\n",
                    m.name,
                    m.output,
                    m.input,
                    if m.bias { " + bias" } else { "" }
                ));
            }
            if run.small > 0 {
                out.push_str(&format!("        {:<18} {}\n", "norms and the like", run.small));
            }
        }
        for tower in &spec.towers {
            out.push_str(&format!("  {} tower: {}\n", tower.name, count(tower.params())));
        }
    }
    if !spec.problems.is_empty() {
        out.push_str("\nremarks\n");
        for p in &spec.problems {
            out.push_str(&format!("  {}: {}\n", p.key, p.message));
        }
    }
    out
}

fn describe(run: &model::LayerRun) -> String {
    use model::{Attention, FeedForward, Window};
    let mixing = match &run.attention {
        Attention::Gqa { heads, kv_heads, k_dim, window, .. } => {
            let sees = match window {
                Window::Full => String::new(),
                Window::Sliding(n) => format!(", window {n}"),
                Window::Chunked(n) => format!(", chunks of {n}"),
            };
            format!("attention {heads} heads, {kv_heads} KV, width {k_dim}{sees}")
        }
        Attention::Mla { heads, kv_lora_rank, rope_dim, indexer, .. } => {
            let sparse = indexer.map_or(String::new(), |i| format!(", sparse top {}", i.top_k));
            format!("latent attention {heads} heads, cache {kv_lora_rank}+{rope_dim}{sparse}")
        }
        Attention::Cross { heads, .. } => format!("cross-attention {heads} heads"),
        Attention::Linear(_) => "linear mixer with a fixed state".into(),
        Attention::None => "no token mixing".into(),
    };
    let network = match run.feed_forward {
        FeedForward::Dense => "dense",
        FeedForward::Moe { experts, top_k } => return format!("{mixing}; {experts} experts, {top_k} per token"),
        FeedForward::None => "no feed-forward",
    };
    format!("{mixing}; {network}")
}
