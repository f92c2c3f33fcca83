//! `nodewise catalog check`: what is wrong with catalog files, whatever they are called.

use std::path::{Path, PathBuf};

use hardware::{Finding, Hardware, Sources};
use market::Market;

use crate::catalog::{Catalog, MAX_CATALOG_FILE};
use crate::error::StoreError;
use crate::model_files::read_text;

/// Which table a file is; files are checked in this order, so that nodes may name GPUs of another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Table {
    Sources,
    Gpus,
    Nodes,
    Providers,
    Offers,
}

/// The table that a file is, by its header, else by its name.
fn table_of(path: &Path, text: &str) -> Option<Table> {
    let header = text.trim_start_matches('\u{feff}').lines().next().unwrap_or_default();
    let has = |name: &str| header.split(',').any(|column| column.trim().trim_matches('"') == name);
    if has("memory_nominal_gb") || has("memory_bandwidth_gb_per_s") {
        return Some(Table::Gpus);
    }
    if has("instance") || has("on_demand_usd_per_hour") {
        return Some(Table::Offers);
    }
    if has("gpu") && (has("topology") || has("gpu_count")) {
        return Some(Table::Nodes);
    }
    if has("billing_granularity_s") || (has("id") && has("kind")) {
        return Some(Table::Providers);
    }
    match path.file_stem()?.to_str()? {
        "gpus" => Some(Table::Gpus),
        "nodes" => Some(Table::Nodes),
        "providers" => Some(Table::Providers),
        "offers" => Some(Table::Offers),
        "sources" => Some(Table::Sources),
        _ if has("text") && has("id") => Some(Table::Sources),
        _ => None,
    }
}

/// Findings over the embedded tables themselves.
pub fn check_embedded() -> Vec<Finding> {
    let (hardware, mut findings) = Hardware::parse(hardware::GPUS_CSV, hardware::NODES_CSV, hardware::SOURCES_CSV);
    findings.extend(Market::parse(market::PROVIDERS_CSV, market::OFFERS_CSV, market::SOURCES_CSV, &hardware).1);
    findings
}

/// Findings over files laid over `base`, each with the file as it was named and its line; a file that is no catalog
/// table is a finding too.
pub fn check_files(files: &[PathBuf], base: &Catalog) -> Result<Vec<Finding>, StoreError> {
    let mut findings = Vec::new();
    let mut tables = Vec::new();
    for path in files {
        let text = read_text(path, MAX_CATALOG_FILE)?;
        match table_of(path, &text) {
            Some(table) => tables.push((table, path.display().to_string(), text)),
            None => findings.push(Finding::error(
                &path.display().to_string(),
                1,
                "the header is none of a gpus, nodes, providers, offers or sources table",
            )),
        }
    }
    tables.sort_by_key(|(table, ..)| *table);
    let (mut hardware, mut market) = (base.hardware.clone(), base.market.clone());
    let mut sources = Sources::default();
    for (table, name, text) in &tables {
        findings.extend(match table {
            Table::Sources => {
                let mut found = Vec::new();
                sources = Sources::parse(name, text, &mut found);
                found
            }
            Table::Gpus => hardware.add_gpus(name, text, &sources),
            Table::Nodes => hardware.add_nodes(name, text, &sources),
            Table::Providers => market.add_providers(name, text, &sources),
            Table::Offers => market.add_offers(name, text, &sources, &hardware),
        });
    }
    findings.sort();
    Ok(findings)
}
