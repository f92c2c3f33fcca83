//! Offers: what the remarks say in prose becomes kind, tier, currency, form factor, spot basis and sold counts.

use std::collections::HashMap;
use std::path::Path;

use super::{Cells, Result, Rows, Texts, plain, public, write};

const HEADER: &[&str] = &[
    "provider",
    "instance",
    "gpu",
    "gpu_count",
    "vcpus",
    "ram_gb",
    "region",
    "on_demand_usd_per_hour",
    "spot_usd_per_hour",
    "kind",
    "tier",
    "commitment",
    "currency",
    "form_factor",
    "spot_basis",
    "sold_counts",
    "extras_billed_apart",
    "date",
    "spot_date",
    "source",
    "notes",
];

/// What a row turned out to be.
#[derive(Default)]
struct Class {
    kind: &'static str,
    tier: &'static str,
    currency: &'static str,
    form_factor: &'static str,
    spot_basis: &'static str,
    sold: &'static str,
    extras: bool,
    /// Replaces the snapshot's date, where the source says that the price itself is older.
    date: Option<&'static str>,
    remarks: Vec<String>,
}

/// Remarks that only repeat the GPU's generation or praise.
fn says_nothing(part: &str) -> bool {
    const GENERATIONS: &[&str] =
        &["Ada", "Ampere", "Blackwell", "Hopper", "Turing", "Volta", "Pascal", "Grace", "AMD CDNA", "Consumer Ada"];
    const REST: &[&str] = &[
        "",
        "secure cloud",
        "tier secure",
        "tier production",
        "machine + GPU price",
        "N1 machine + attached T4",
        "still priced",
        "availability not implied",
        "per-second rate x 3600",
        "performance varies",
        "prices may be stale",
        "price normalized per GPU",
        "Modified 48GB variant",
        "only GPU + storage are billed.",
        "month inferred",
        "spot only",
        "fractional GPU (partitioned)",
        "fractional GPU (vGPU slice)",
        "higher tiers (High) cost more",
        "higher tiers (High) cost more, lower (Low/Batch) cost less.",
        "exact per-GPU price not published by provider",
        "list price per GPU",
    ];
    REST.contains(&part)
        || GENERATIONS.iter().any(|g| part.starts_with(g))
        || ["User-verified", "VRAM is", "Dataoorts: vCPU"].iter().any(|p| part.starts_with(p))
        // sentences that the source cut off
        || ["actual price", "values shown w"].iter().any(|full| full.starts_with(part))
}

impl Class {
    fn remark(&mut self, text: &str) {
        if !self.remarks.iter().any(|r| r == text) {
            self.remarks.push(text.to_owned());
        }
    }

    /// One remark of the snapshot; an unknown one is an error.
    fn apply(&mut self, part: &str, gpu: &str) -> Result<()> {
        match part {
            "Hopper, approximate price" => self.kind = "estimate",
            "hard-coded table in gpuhunt, age unknown" => {
                self.kind = "estimate";
                self.remark("copied from a client's price table of unknown age");
            }
            "\"from\" price for long contract" => self.kind = "reserved",
            "marketplace median, not a bookable instance" => {
                (self.kind, self.tier) = ("median", "marketplace");
            }
            "site-wide average GPU-hour, not per SKU" => {
                (self.kind, self.tier) = ("median", "marketplace");
                self.remark("average over all machines of the site");
            }
            "price reflects min live offer" | "Decentralized marketplace" | "tier marketplace" => {
                (self.kind, self.tier) = ("from", "marketplace");
            }
            p if p.starts_with("Marketplace: $") => {
                (self.kind, self.tier) = ("from", "marketplace");
                let range = p.trim_start_matches("Marketplace: ").split(" across").next().unwrap_or_default();
                self.remark(&format!("hosts ask {}", range.replace('–', " to ")));
            }
            p if p.starts_with("Marketplace min price") || p.starts_with("Vast.ai marketplace: listed price") => {
                (self.kind, self.tier) = ("from", "marketplace");
                self.remark("cheapest host on that day");
            }
            p if p.starts_with("Marketplace cheapest live offer") => {
                (self.kind, self.tier) = ("from", "marketplace");
                self.remark("cheapest host on that day, probably interruptible");
            }
            p if p.starts_with("Interruptible estimated") => self.spot_basis = "estimated",
            p if p.starts_with("Spot price estimated") => self.spot_basis = "estimated",
            p if p.starts_with("Spot tier rarely available") => self.spot_basis = "rare",
            "spot = cheapest AZ" => self.spot_basis = "cheapest-zone",
            "month inferred from index order" => self.remark("month of the spot price inferred"),
            "no on-demand price published (capacity blocks only)" => self.remark("on demand only as capacity blocks"),
            "no on-demand row in June list" => self.remark("the on-demand price list does not have it"),
            "series on Azure retirement list" => self.remark("series is being retired"),
            p if p.starts_with("source sets is_spot=true") => self.remark("its source calls it spot"),
            "node sizes sold in multiples" => self.sold = "1|2|4|8",
            "max 4 GPUs/instance" => self.sold = "1|2|4",
            p if p.starts_with("Bare Metal") => (self.kind, self.sold) = ("per-gpu", "8"),
            p if p.starts_with("Dataoorts ") => {
                self.kind = "per-gpu";
                if p.contains("(1x)") {
                    self.sold = "1";
                }
            }
            p if p.starts_with("Pricing is dynamic") => self.remark("price moves about every 18 hours"),
            "Google price page total incl. bundled local SSD" => self.remark("local SSD included"),
            "bundled local SSD not included" => {
                self.extras = true;
                self.remark("its local SSD costs extra");
            }
            p if p.starts_with("vCPU $0.01/h") => {
                self.extras = true;
                self.remark("plus $0.01 per vCPU and $0.005 per GB of RAM and hour");
            }
            p if p.starts_with("vCPU/RAM billed separately") => {
                self.extras = true;
                self.remark("plus $0.004 per vCPU and $0.001 per GB of RAM and hour");
            }
            "CPU and RAM billed extra" | "CPU/RAM/storage billed separately" => {
                (self.extras, self.tier, self.kind) = (true, "serverless", "per-gpu");
            }
            p if p.starts_with("Serverless billing") => (self.tier, self.kind) = ("serverless", "per-gpu"),
            "form factor of A100 assumed SXM" if gpu.contains("a100") => self.form_factor = "assumed",
            "form factor of A100 assumed SXM" => {}
            "form factor of A100/H100 assumed" if gpu.contains("a100") || gpu.contains("h100") => {
                self.form_factor = "assumed";
            }
            "form factor of A100/H100 assumed" => {}
            p if p.starts_with("Seeweb bills in EUR") => {
                self.currency = "unverified";
                self.remark("billed in EUR, stored without a unit");
            }
            "one price for all commercial regions" => self.remark("one price in all commercial regions"),
            "source version undated" | "source version undated (SkyPilot catalog commit)" => {
                self.remark("source is undated");
            }
            "listed per GPU x count" => self.remark("listed per GPU, times the count"),
            "tier community" | "community cloud" => self.tier = "community",
            p if p.starts_with("Price fluctuates") => self.remark("moves by 15 % either way"),
            "tier prototyping" => self.tier = "prototyping",
            p if p.starts_with("Virtualized GPU") => self.remark("GPU reached over the network"),
            p if p.starts_with("Salad Medium priority") => {
                (self.tier, self.spot_basis) = ("community", "interruptible");
                self.remark("medium priority; a node may leave at any time");
            }
            "Provider page references July 2024" => {
                self.date = Some("2024-07");
                self.remark("the provider's page speaks of July 2024");
            }
            "fractions available" => self.remark("fractions are sold too"),
            p if says_nothing(p) => {}
            other => return Err(format!("no rule for the remark `{other}`").into()),
        }
        Ok(())
    }
}

fn classify(row: &Cells<'_>, provider_kind: &str) -> Result<Class> {
    let (instance, gpu) = (row.get("instance_type"), row.get("gpu_id"));
    let lower = instance.to_lowercase();
    let per_gpu = ["per gpu", "(secure)", "(community)", "serverless"].iter().any(|w| lower.contains(w));
    let mut class = Class { kind: if per_gpu { "per-gpu" } else { "node" }, ..Class::default() };
    // markets of other people's machines, unless the row says otherwise
    if matches!(provider_kind, "marketplace" | "market" | "distributed market") {
        class.tier = "marketplace";
    }
    // sources that name an H100 or A100 without its form factor
    let unnamed = row.get("provider") == "cudo" && lower.contains("-h100_")
        || row.get("provider") == "hyperstack" && lower.contains("nvlink") && gpu.contains("sxm");
    if unnamed {
        class.form_factor = "assumed";
    }
    for part in row.get("notes").split(';') {
        class.apply(part.trim(), gpu).map_err(|e| format!("{} {instance}: {e}", row.get("provider")))?;
    }
    Ok(class)
}

pub(crate) fn import(folder: &Path, out: &Path, texts: &mut Texts) -> Result<()> {
    let kinds = Rows::read(&folder.join("providers.csv"))?;
    let kinds: HashMap<&str, &str> = kinds.cells().map(|r| (r.get("id"), r.get("kind"))).collect();
    let offers = Rows::read(&folder.join("offers_snapshot.csv"))?;
    let mut rows = Vec::new();
    for row in offers.cells() {
        let class = classify(&row, kinds.get(row.get("provider")).copied().unwrap_or_default())?;
        let commitment = match row.get("commitment") {
            "" | "market" => "",
            _ => "long contract",
        };
        let price = |name: &str| row.number(name).filter(|p| *p > 0.0).map(plain).unwrap_or_default();
        let (on_demand, spot) = (price("on_demand_usd_h"), price("spot_usd_h"));
        let spot_basis = if spot.is_empty() { "" } else { class.spot_basis };
        // a spot price without a day of its own was read with the row
        let date = class.date.unwrap_or(row.get("snapshot_date"));
        let spot_date = match row.get("spot_snapshot_date") {
            "" if !spot.is_empty() => date,
            day => day,
        };
        rows.push(vec![
            row.get("provider").to_owned(),
            row.get("instance_type").to_owned(),
            row.get("gpu_id").to_owned(),
            row.get("gpu_count").to_owned(),
            row.get("vcpus").to_owned(),
            row.get("ram_gb").to_owned(),
            row.get("region").to_owned(),
            on_demand,
            spot,
            class.kind.to_owned(),
            class.tier.to_owned(),
            commitment.to_owned(),
            class.currency.to_owned(),
            class.form_factor.to_owned(),
            spot_basis.to_owned(),
            class.sold.to_owned(),
            if class.extras { "yes".into() } else { String::new() },
            date.to_owned(),
            spot_date.to_owned(),
            texts.id(&public(row.get("source"))),
            texts.id(&class.remarks.join("; ")),
        ]);
    }
    write(&out.join("offers.csv"), HEADER, &rows)
}
