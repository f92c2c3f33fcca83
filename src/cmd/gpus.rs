//! `nodewise gpus`: the directory of GPUs, and some of them side by side.

use std::process::ExitCode;

use clap::ArgMatches;
use hardware::{ComputeType, Gpu};
use units::{Basis, sig3};

use super::{Shared, filter_words, found, matches_all};
use crate::error::CliError;
use crate::out::table::{Cell, Column, Table};
use crate::out::{Format, print_table};
use crate::world::World;

const COLUMNS: &[Column] = &[
    Column::text("gpu", "gpu", 0),
    Column::text("architecture", "architecture", 4),
    Column::text("form_factor", "form", 5),
    Column::number("memory_nominal_gb", "GB", 0),
    Column::number("memory_usable_gib", "usable GiB", 2),
    Column::number("memory_cuda_total_gib", "engine GiB", 1),
    Column::number("memory_bandwidth_gb_per_s", "GB/s", 0),
    Column::number("bf16_dense_tflops", "bf16 TF", 1),
    Column::number("fp8_dense_tflops", "fp8 TF", 3),
    Column::number("fp4_dense_tflops", "fp4 TF", 6),
    Column::number("link_per_direction_gb_per_s", "link GB/s", 2),
    Column::number("pcie_per_direction_gb_per_s", "pcie GB/s", 7),
    Column::number("tdp_w", "W", 3),
    Column::number("launch_year", "year", 8),
    Column::text("memory_basis", "memory basis", 9),
    Column::text("source", "source", 10),
    Column::text("notes", "notes", 11),
];

/// Runs `gpus` and `gpus compare`.
pub fn run(matches: &ArgMatches, shared: &Shared) -> Result<ExitCode, CliError> {
    let world = World::load(matches)?;
    if let Some(("compare", sub)) = matches.subcommand() {
        return compare(sub, &world, &Shared::new(sub));
    }
    let words = filter_words(matches);
    let mut table = Table::new(COLUMNS);
    for gpu in world.hardware.gpus().iter().filter(|g| matches_all(&haystack(g), &words)) {
        table.push(row(gpu));
    }
    let count = table.rows.len();
    let below = [
        format!("{count} of {} GPUs; rates are dense, links per direction", world.hardware.gpus().len()),
        "engine GiB: what an engine sees, used for fitting; a trailing * marks an assumed figure".to_owned(),
    ];
    print_table(&table, &shared.style, &below);
    Ok(found(count > 0, "GPU", "`nodewise gpus` lists all of them"))
}

fn haystack(gpu: &Gpu) -> String {
    format!(
        "{} {} {} {} {} {}",
        gpu.id,
        gpu.name,
        gpu.vendor.name(),
        gpu.architecture,
        gpu.form_factor,
        gpu.memory.kind
    )
    .to_lowercase()
}

fn tflops(gpu: &Gpu, kind: ComputeType) -> Cell {
    Cell::number(gpu.peaks.dense(kind).map(|p| p.0 / 1e12))
}

fn gib(value: &hardware::Sourced<units::Bytes>) -> Cell {
    let mark = if value.basis == Basis::Assumed { "*" } else { "" };
    Cell::shown(format!("{}{mark}", sig3(value.value.gib())), value.value.gib())
}

fn row(gpu: &Gpu) -> Vec<Cell> {
    let memory = &gpu.memory;
    vec![
        Cell::shown(gpu.short_id(), gpu.id.to_string()),
        Cell::text(gpu.architecture.to_string()),
        Cell::text(gpu.form_factor.to_string()),
        Cell::number(Some(memory.nominal.gb())),
        gib(&memory.usable),
        gib(&memory.cuda_total),
        Cell::number(Some(memory.bandwidth.0 / 1e9)),
        tflops(gpu, ComputeType::Bf16),
        tflops(gpu, ComputeType::Fp8),
        tflops(gpu, ComputeType::Fp4),
        Cell::number(gpu.link.as_ref().map(|l| l.per_direction.0 / 1e9)),
        Cell::number(gpu.pcie.map(|p| p.per_direction().0 / 1e9)),
        Cell::number(gpu.tdp.map(|w| w.0)),
        gpu.launch_year.map_or_else(Cell::unknown, |y| Cell::shown(y.to_string(), y)),
        Cell::text(memory.cuda_total.basis.name()),
        Cell::text(gpu.source.to_string()),
        Cell::text(gpu.notes.to_string()),
    ]
}

fn compare(matches: &ArgMatches, world: &World, shared: &Shared) -> Result<ExitCode, CliError> {
    let mut gpus: Vec<&Gpu> = Vec::new();
    for name in matches.get_many::<String>("gpus").into_iter().flatten() {
        gpus.push(world.gpu(name)?);
    }
    if gpus.len() > 8 {
        return Err(CliError::new(format!("{} GPUs do not fit side by side", gpus.len())).hint("compare up to 8"));
    }
    let json = shared.style.format == Format::Json;
    let mut table = Table::new(COLUMNS);
    for gpu in &gpus {
        table.push(row(gpu));
    }
    if json {
        print_table(&table, &shared.style, &[]);
        return Ok(ExitCode::SUCCESS);
    }
    print_table(&facts(&gpus), &shared.style, &remarks(&gpus));
    Ok(ExitCode::SUCCESS)
}

/// The comparison turned: a row per fact, a column per GPU.
fn facts(gpus: &[&Gpu]) -> Table {
    // column keys must live as long as the table: positions, not names
    const KEYS: [&str; 8] = ["gpu_1", "gpu_2", "gpu_3", "gpu_4", "gpu_5", "gpu_6", "gpu_7", "gpu_8"];
    let mut columns = vec![Column::text("fact", "", 0)];
    columns.extend(KEYS.iter().take(gpus.len()).map(|k| Column { key: k, header: "", right: true, rank: 0 }));
    let mut table = Table::new(&columns);
    let mut fact = |name: &str, of: &dyn Fn(&Gpu) -> Cell| {
        let cells: Vec<Cell> = gpus.iter().map(|g| of(g)).collect();
        if cells.iter().any(|c| !c.text.is_empty()) {
            table.push(std::iter::once(Cell::text(name)).chain(cells).collect());
        }
    };
    fact("gpu", &|g| Cell::text(g.short_id()));
    fact("architecture", &|g| Cell::text(g.architecture.to_string()));
    fact("form factor", &|g| Cell::text(g.form_factor.to_string()));
    fact("memory, label (GB)", &|g| Cell::number(Some(g.memory.nominal.gb())));
    fact("memory, driver (GiB)", &|g| gib(&g.memory.usable));
    fact("memory, engine (GiB)", &|g| gib(&g.memory.cuda_total));
    fact("memory bandwidth (GB/s)", &|g| Cell::number(Some(g.memory.bandwidth.0 / 1e9)));
    for kind in ComputeType::ALL {
        fact(&format!("{} dense (TFLOP/s)", kind.name()), &|g| tflops(g, kind));
    }
    for kind in [ComputeType::Bf16, ComputeType::Fp8, ComputeType::Fp4] {
        fact(&format!("{} 2:4 sparse, not used", kind.name()), &|g| {
            Cell::number(g.peaks.sparse(kind).map(|p| p.0 / 1e12))
        });
    }
    fact("link", &|g| Cell::text(g.link.as_ref().map_or(String::new(), |l| l.name.to_string())));
    fact("link, one direction (GB/s)", &|g| Cell::number(g.link.as_ref().map(|l| l.per_direction.0 / 1e9)));
    fact("link needs a bridge of", &|g| {
        Cell::text(g.link.as_ref().filter(|l| l.needs_bridge).map_or(String::new(), |l| l.bridge_gpus.to_string()))
    });
    fact("PCIe", &|g| Cell::text(g.pcie.map_or(String::new(), |p| format!("{}.0 x{}", p.generation, p.lanes))));
    fact("PCIe, one direction (GB/s)", &|g| Cell::number(g.pcie.map(|p| p.per_direction().0 / 1e9)));
    fact("link over PCIe", &|g| Cell::text(ratio(g).map_or(String::new(), |r| format!("{}x", sig3(r)))));
    fact("power (W)", &|g| Cell::number(g.tdp.map(|w| w.0)));
    fact("launched", &|g| Cell::text(g.launch_year.map_or(String::new(), |y| y.to_string())));
    table
}

fn ratio(gpu: &Gpu) -> Option<f64> {
    Some(gpu.link.as_ref()?.per_direction / gpu.pcie?.per_direction())
}

fn remarks(gpus: &[&Gpu]) -> Vec<String> {
    let mut lines = vec![
        "rates are dense; a datasheet's 2:4 sparse figure is twice as high and never used to predict".to_owned(),
        "* assumed: no source for the figure, or the source only repeats the label".to_owned(),
    ];
    for gpu in gpus {
        if let (Some(link), Some(pcie), Some(times)) = (&gpu.link, gpu.pcie, ratio(gpu)) {
            lines.push(format!(
                "{}: {} moves {} GB/s in one direction, PCIe {}.0 x{} {} GB/s: {} times. Pages that say {} times \
                 divide the link's sum of both directions ({} GB/s) by one direction of PCIe.",
                gpu.short_id(),
                link.name,
                sig3(link.per_direction.0 / 1e9),
                pcie.generation,
                pcie.lanes,
                sig3(pcie.per_direction().0 / 1e9),
                sig3(times),
                sig3(times * 2.0),
                sig3(link.per_direction.0 * 2.0 / 1e9),
            ));
        }
        if let Some(link) = gpu.link.as_ref().filter(|l| l.needs_bridge) {
            lines.push(format!(
                "{}: {} only where a bridge joins {} cards; between bridged groups, and without a bridge, PCIe",
                gpu.short_id(),
                link.name,
                link.bridge_gpus
            ));
        }
    }
    lines
}
