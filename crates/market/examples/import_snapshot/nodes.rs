//! Node types: topology in two typed columns, everything else as it is.

use std::path::Path;

use super::{Result, Rows, Texts, public, write};

const HEADER: &[&str] = &[
    "id",
    "provider",
    "name",
    "gpu",
    "gpu_count",
    "topology",
    "topology_gpus",
    "vcpus",
    "ram_gb",
    "nvme_gb",
    "fabric",
    "nic_count",
    "nic_gbit_per_s",
    "node_gbit_per_s",
    "preliminary",
    "source",
    "notes",
];

/// The topology word and, where it isn't the node's own count, how many GPUs it joins.
fn topology(id: &str, text: &str) -> Result<(&'static str, &'static str)> {
    Ok(match text {
        "none" | "c2c" => ("single", ""),
        "pcie" => ("pcie", ""),
        "nvswitch" => ("nvswitch", ""),
        // trays of a rack, and the rack
        "nvswitch (72-GPU domain)" | "nvswitch (part of 72)" | "nvswitch (UltraServer 36/72)" => ("nvswitch", "72"),
        "nvlink-mesh" | "infinity-fabric-mesh" | "roce-mesh" => ("mesh", ""),
        "nvlink-pairs" => ("bridges", "2"),
        other => return Err(format!("{id}: topology `{other}` is not known").into()),
    })
}

pub(crate) fn import(folder: &Path, out: &Path, texts: &mut Texts) -> Result<()> {
    let nodes = Rows::read(&folder.join("nodes.csv"))?;
    let mut rows = Vec::new();
    for row in nodes.cells() {
        let id = row.get("id");
        let (topology, domain) = topology(id, row.get("topology"))?;
        let preliminary = row.get("notes").contains("PRELIMINARY");
        let mut notes = row.get("notes").replace("PRELIMINARY: ", "");
        // typed by the count
        if notes == "fractional GPU" {
            notes.clear();
        }
        notes = notes.replace("storage_size is the local temp/NVMe disk", "local disk is the temporary one");
        notes = notes.replace("from memory: re-verify", "not verified").replace(": re-verify", ", not verified");
        notes = notes.replace(" re-verify", " not verified");
        // a baseboard has no network of its own
        let fabric = if row.get("fabric") == "partner choice" { "" } else { row.get("fabric") };
        rows.push(vec![
            id.to_owned(),
            row.get("provider").to_owned(),
            row.get("name").to_owned(),
            row.get("gpu_id").to_owned(),
            row.get("gpu_count").to_owned(),
            topology.to_owned(),
            domain.to_owned(),
            row.get("vcpus").to_owned(),
            row.get("ram_gb").to_owned(),
            row.get("local_nvme_gb").to_owned(),
            fabric.to_owned(),
            row.get("nic_count").to_owned(),
            row.get("nic_gbps").to_owned(),
            row.get("total_network_gbps").trim_end_matches(".0").to_owned(),
            if preliminary { "yes".into() } else { String::new() },
            texts.id(&public(row.get("source"))),
            notes,
        ]);
    }
    write(&out.join("nodes.csv"), HEADER, &rows)
}
