//! `nodewise runs`: what runs on this hardware.

use std::process::ExitCode;

use clap::ArgMatches;
use perf::Engine;
use planner::{PlanRequest, Run, formats_to_try, runs};
use units::group_thousands;

use super::{Shared, filter_words, found, matches_all};
use crate::cli::read_request;
use crate::error::CliError;
use crate::out::print_table;
use crate::out::table::{Cell, Column, Table};
use crate::world::World;

const COLUMNS: &[Column] = &[
    Column::text("model", "model", 0),
    Column::number("parameters_total", "params", 0),
    Column::number("parameters_active", "active", 4),
    Column::text("weights", "weights", 0),
    Column::text("layout", "layout", 5),
    Column::number("context_tokens_max", "context", 0),
    Column::number("sequences_max", "seqs", 3),
    Column::number("tokens_per_s_one_user", "tok/s one", 0),
    Column::number("output_tokens_per_s_full", "tok/s full", 1),
    Column::number("ttft_ms_one_user", "TTFT ms", 2),
    Column::text("basis", "basis", 6),
];

/// Runs `runs`.
pub fn run(matches: &ArgMatches, shared: &Shared) -> Result<ExitCode, CliError> {
    let mut request = PlanRequest::default();
    read_request(matches, &mut request)?;
    let traffic = request.traffic();
    let world = World::load(matches)?;
    let on = matches.get_one::<String>("on").map_or("", String::as_str);
    let (shape, nodes) = world.on(on)?;
    // an engine that the user did not choose is chosen to run: llama.cpp where vLLM is not built for the GPU
    let engine = match request.engine {
        Some(engine) => engine,
        None if planner::engine_runs(Engine::Vllm, &shape.gpu).is_ok() => Engine::Vllm,
        None => Engine::LlamaCpp,
    };
    if let Err(no) = planner::engine_runs(engine, &shape.gpu) {
        return Err(CliError::new(no.sentence()).hint(no.fix()));
    }
    let words = filter_words(matches);
    let mut rows: Vec<(model::ModelSpec, Run)> = Vec::new();
    let mut looked_at = 0;
    for entry in World::catalog_models() {
        if !matches_all(&entry.name.to_lowercase(), &words) {
            continue;
        }
        let Ok(spec) = entry.spec() else { continue };
        if spec.layer_count() == 0 {
            continue;
        }
        looked_at += 1;
        let formats = if request.weights.is_empty() { formats_to_try(&spec, engine) } else { request.weights.clone() };
        if let Some(run) = runs(&spec, &shape, nodes, engine, &formats, &traffic, World::curves()) {
            rows.push((spec, run));
        }
    }
    rows.sort_by(|(a, _), (b, _)| b.params_total().cmp(&a.params_total()).then_with(|| a.name.cmp(&b.name)));
    let mut table = Table::new(COLUMNS);
    for (spec, run) in &rows {
        let weights = run.formats.weights.name();
        let mark = if run.context_limited_by_memory { "" } else { "+" };
        table.push(vec![
            Cell::text(&*spec.name),
            Cell::shown(spec.params_total().to_string(), spec.params_total().0),
            Cell::shown(spec.params_active().to_string(), spec.params_active().0),
            Cell::shown(if run.own_format { weights.to_string() } else { format!("{weights} ?") }, weights),
            Cell::text(run.layout.to_string()),
            if run.context < u64::MAX {
                Cell::shown(format!("{}{mark}", group_thousands(run.context)), run.context)
            } else {
                Cell::unknown()
            },
            Cell::count(Some(run.sequences)),
            Cell::number(run.single.filter(|s| s.tpot.0 > 0.0).map(|s| 1.0 / s.tpot.0)),
            Cell::number(run.full.filter(|s| s.output_tokens_per_s > 0.0).map(|s| s.output_tokens_per_s)),
            Cell::number(run.single.map(|s| s.ttft.ms())),
            Cell::text(run.single.map_or("", |s| s.basis.name())),
        ]);
    }
    let count = table.rows.len();
    let below = [
        format!("{count} of {looked_at} models run on {on} with {}, largest first", engine.name()),
        format!(
            "for {} tokens in, {} out; `?` after a format: not the checkpoint's own, quality not assessed; `+`: the model's own limit, memory would hold more",
            traffic.input, traffic.output
        ),
    ];
    print_table(&table, &shared.style, &below);
    Ok(found(count > 0, "model", "a larger node, a smaller format with `--weights awq`, or fewer filter words"))
}
