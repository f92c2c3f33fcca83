//! `nodewise nodes`: the directory of node types.

use std::process::ExitCode;

use clap::ArgMatches;
use hardware::NodeType;
use units::sig3;

use super::{Shared, filter_words, found, matches_all};
use crate::error::CliError;
use crate::out::print_table;
use crate::out::table::{Cell, Column, Table};
use crate::world::World;

const COLUMNS: &[Column] = &[
    Column::text("node", "node", 0),
    Column::text("provider", "provider", 4),
    Column::number("gpu_count", "GPUs", 0),
    Column::text("gpu", "gpu", 0),
    Column::text("topology", "topology", 1),
    Column::number("nvlink_domain_gpus", "domain", 3),
    Column::number("ram_gb", "RAM GB", 2),
    Column::number("vcpus", "vCPU", 5),
    Column::number("nvme_gb", "NVMe GB", 6),
    Column::text("fabric", "fabric", 4),
    Column::number("network_per_direction_gb_per_s", "net GB/s", 2),
    Column::text("source", "source", 8),
    Column::text("notes", "notes", 9),
];

/// Runs `nodes`.
pub fn run(matches: &ArgMatches, shared: &Shared) -> Result<ExitCode, CliError> {
    let world = World::load(matches)?;
    let words = filter_words(matches);
    let mut table = Table::new(COLUMNS);
    for node in world.hardware.nodes().iter().filter(|n| matches_all(&haystack(n), &words)) {
        let domain = world.hardware.shape(node).map(|s| u64::from(s.domain()));
        let rate = node.fabric.as_ref().and_then(|f| f.node_rate);
        table.push(vec![
            Cell::text(node.id.to_string()),
            Cell::text(node.provider.to_string()),
            Cell::shown(sig3_count(node.gpu_count), node.gpu_count),
            Cell::shown(node.gpu.split_once('-').map_or(&*node.gpu, |(_, short)| short), node.gpu.to_string()),
            Cell::text(node.topology.name()),
            Cell::count(domain),
            Cell::number(node.ram.map(|r| r.gb())),
            Cell::count(node.vcpus.map(u64::from)),
            Cell::number(node.nvme.map(|r| r.gb())),
            Cell::text(node.fabric.as_ref().map_or(String::new(), |f| f.name.to_string())),
            Cell::number(rate.map(|r| r.0 / 1e9)),
            Cell::text(node.source.to_string()),
            Cell::text(node.notes.to_string()),
        ]);
    }
    let count = table.rows.len();
    let below = [format!(
        "{count} of {} node types; network is all NICs of the node together, one direction; — is unknown",
        world.hardware.nodes().len()
    )];
    print_table(&table, &shared.style, &below);
    Ok(found(count > 0, "node type", "`nodewise nodes` lists all of them"))
}

fn haystack(node: &NodeType) -> String {
    let fabric = node.fabric.as_ref().map_or("", |f| &f.name);
    format!("{} {} {} {} {} {}", node.id, node.provider, node.name, node.gpu, node.topology.name(), fabric)
        .to_lowercase()
}

/// `8`, `0.5`: whole counts without decimals.
fn sig3_count(count: f64) -> String {
    if count.fract() == 0.0 { format!("{count:.0}") } else { sig3(count) }
}
