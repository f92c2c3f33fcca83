//! The node table: one row, one node type of a maker or a provider.

use std::collections::HashSet;

use units::{Bytes, BytesPerSec};

use crate::finding::Finding;
use crate::lookup::LookupError;
use crate::node::{Fabric, NodeType, Topology};
use crate::sources::Sources;
use crate::table::{Row, read_table, shorten};

crate::columns!(
    id,
    provider,
    name,
    gpu,
    gpu_count,
    topology,
    topology_gpus,
    vcpus,
    ram_gb,
    nvme_gb,
    fabric,
    nic_count,
    nic_gbit_per_s,
    node_gbit_per_s,
    preliminary,
    source,
    notes,
);

/// Reads node rows; `find_gpu` gives the id of the GPU that a cell names.
pub(crate) fn read_nodes(
    file: &str,
    csv: &str,
    sources: &Sources,
    find_gpu: &dyn Fn(&str) -> Result<String, LookupError>,
    findings: &mut Vec<Finding>,
) -> Vec<(NodeType, u64)> {
    let mut nodes: Vec<(NodeType, u64)> = Vec::new();
    let mut seen: HashSet<String> = HashSet::new();
    read_table(file, csv, COLUMNS, 5, findings, |row| {
        let Some(mut node) = read_node(row, sources) else { return };
        match find_gpu(&node.gpu) {
            Ok(id) => node.gpu = id,
            Err(e) => {
                row.error(format!("node `{}`: {e}; {}", node.id, e.hint()));
                return;
            }
        }
        if !seen.insert(node.id.clone()) {
            row.error(format!("node `{}` stands twice in this file", node.id));
            return;
        }
        nodes.push((node, row.line));
    });
    nodes
}

fn read_node(row: &mut Row<'_>, sources: &Sources) -> Option<NodeType> {
    let id = row.required(Col::id as usize)?;
    if id.len() > 120 || id.chars().any(|c| c.is_whitespace() || c == '/' || c.is_control()) {
        row.error(format!("node id `{}` holds spaces or `/`, or is longer than 120", shorten(id)));
        return None;
    }
    let provider = row.required(Col::provider as usize)?;
    let name = row.required(Col::name as usize)?;
    let gpu = row.required(Col::gpu as usize)?;
    row.required(Col::gpu_count as usize)?;
    let gpu_count = row.number(Col::gpu_count as usize, 0.01, 576.0)?;
    let topology = read_topology(row, gpu_count)?;
    let fabric = read_fabric(row);
    Some(NodeType {
        id: id.to_owned(),
        provider: provider.to_owned(),
        name: name.to_owned(),
        gpu: gpu.to_owned(),
        gpu_count,
        topology,
        vcpus: row.count(Col::vcpus as usize, 1_000_000),
        ram: row.number(Col::ram_gb as usize, 0.5, 10_000_000.0).map(Bytes::from_gb),
        nvme: row.number(Col::nvme_gb as usize, 0.0, 100_000_000.0).map(Bytes::from_gb),
        fabric,
        preliminary: row.flag(Col::preliminary as usize).unwrap_or(false),
        source: sources.text(row.text(Col::source as usize)).to_string(),
        notes: row.text(Col::notes as usize).to_owned(),
    })
}

fn read_topology(row: &mut Row<'_>, gpu_count: f64) -> Option<Topology> {
    let size = row.count(Col::topology_gpus as usize, 4096);
    let whole = gpu_count.ceil() as u32;
    let topology = match row.text(Col::topology as usize) {
        "" if gpu_count <= 1.0 => Topology::Single,
        // unknown is the weakest that can be, never a guess upwards
        "" => {
            row.warning("no `topology` on a node of several GPUs: taken as `pcie`");
            Topology::Pcie
        }
        "single" => Topology::Single,
        "nvswitch" => Topology::NvSwitch { domain: size.unwrap_or(whole) },
        "mesh" => Topology::Mesh,
        "bridges" => Topology::Bridges { group: size.unwrap_or(2) },
        "pcie" => Topology::Pcie,
        other => {
            row.error(format!("topology `{}` is none of single, nvswitch, mesh, bridges, pcie", shorten(other)));
            return None;
        }
    };
    match &topology {
        Topology::Single if gpu_count > 1.0 => row.error(format!("`single` topology on {gpu_count} GPUs")),
        Topology::NvSwitch { domain } if *domain < whole => {
            row.error(format!("an NVLink domain of {domain} on a node of {gpu_count} GPUs"));
        }
        Topology::Bridges { group } if *group < 2 => row.error(format!("bridges of {group}; at least 2")),
        Topology::Mesh | Topology::Bridges { .. } | Topology::Pcie if gpu_count < 1.0 => {
            row.error(format!("`{}` topology on a part of a GPU", row.text(Col::topology as usize)));
        }
        _ => {}
    }
    Some(topology)
}

fn read_fabric(row: &mut Row<'_>) -> Option<Fabric> {
    let nics = row.count(Col::nic_count as usize, 10_000);
    let nic_rate = row.number(Col::nic_gbit_per_s as usize, 0.1, 10_000.0).map(gbit);
    let stated = row.number(Col::node_gbit_per_s as usize, 0.1, 1_000_000.0).map(gbit);
    let product = nics.zip(nic_rate).map(|(n, rate)| rate * f64::from(n));
    if let (Some(stated), Some(product)) = (stated, product)
        && (stated / product > 1.3 || stated / product < 0.7)
    {
        row.warning(format!("node rate {:.0} Gbit/s is not near NICs x rate {:.0}", stated.0 * 8e-9, product.0 * 8e-9));
    }
    let name = row.text(Col::fabric as usize);
    if name.is_empty() && stated.is_none() && product.is_none() {
        return None;
    }
    // a total may count host NICs too: GPU traffic has the NICs meant for it
    let node_rate = match (product, stated) {
        (Some(p), Some(s)) => Some(p.min(s)),
        (p, s) => p.or(s),
    };
    Some(Fabric { name: name.to_owned(), nics, nic_rate, node_rate })
}

fn gbit(value: f64) -> BytesPerSec {
    BytesPerSec(value * 1e9 / 8.0)
}
