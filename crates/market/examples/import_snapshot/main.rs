//! Rewrites a research snapshot (`gpus.csv`, `nodes.csv`, `providers.csv`, `offers_snapshot.csv`,
//! `measured/engine_memory.csv`) into the catalog files that the crates embed.
//!
//! `cargo run -p nodewise-market --example import_snapshot -- FOLDER [OUT]`
//!
//! What the snapshot says in prose becomes typed columns here; a remark that no rule knows stops the import, so that
//! nothing is classified by silence. OUT defaults to this repository's `crates` folder.

#![allow(clippy::disallowed_methods, reason = "a tool around the core reads and writes files and times itself")]

mod gpus;
mod nodes;
mod offers;
mod providers;

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A CSV file as rows of named cells.
struct Rows {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Rows {
    fn read(path: &Path) -> Result<Self> {
        let mut reader = csv::Reader::from_path(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let header = reader.headers()?.iter().map(str::to_owned).collect();
        let mut rows = Vec::new();
        for record in reader.records() {
            rows.push(record?.iter().map(|c| c.trim().to_owned()).collect());
        }
        Ok(Self { header, rows })
    }

    fn cells(&self) -> impl Iterator<Item = Cells<'_>> {
        self.rows.iter().map(|row| Cells { header: &self.header, row })
    }
}

/// One row.
struct Cells<'r> {
    header: &'r [String],
    row: &'r [String],
}

impl<'r> Cells<'r> {
    fn get(&self, name: &str) -> &'r str {
        let place = self.header.iter().position(|h| h == name);
        place.and_then(|p| self.row.get(p)).map_or("", String::as_str)
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.get(name).parse().ok()
    }
}

/// Texts that repeat, written once and named by a short id.
struct Texts {
    retrieved: &'static str,
    ids: HashMap<String, String>,
    order: Vec<(String, String)>,
}

impl Texts {
    fn new(retrieved: &'static str) -> Self {
        Self { retrieved, ids: HashMap::new(), order: Vec::new() }
    }

    fn id(&mut self, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        if let Some(id) = self.ids.get(text) {
            return id.clone();
        }
        let id = format!("t{}", self.order.len() + 1);
        self.ids.insert(text.to_owned(), id.clone());
        self.order.push((id.clone(), text.to_owned()));
        id
    }

    fn write(&self, path: &Path) -> Result<()> {
        let mut writer = csv::Writer::from_path(path)?;
        writer.write_record(["id", "retrieved", "text"])?;
        for (id, text) in &self.order {
            writer.write_record([id.as_str(), self.retrieved, text.as_str()])?;
        }
        writer.flush()?;
        Ok(())
    }
}

/// Writes rows under a header.
fn write(path: &Path, header: &[&str], rows: &[Vec<String>]) -> Result<()> {
    let mut writer = csv::Writer::from_path(path)?;
    writer.write_record(header)?;
    for row in rows {
        writer.write_record(row)?;
    }
    writer.flush()?;
    println!("{}: {} rows", path.display(), rows.len());
    Ok(())
}

/// A number without trailing zeros.
fn plain(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Leaves out pointers into the researcher's own file store, which no reader can follow.
fn public(text: &str) -> String {
    let mut text = text.to_owned();
    for private in
        [" via seed 003", "; seed 003", "; see seed 003", " (stored)", " (stored, 2026-08-28)", "none stored; "]
    {
        text = text.replace(private, "");
    }
    text
}

/// Writes the files of both crates under `out`, from the snapshot in `folder`.
pub(crate) fn import(folder: &Path, out: &Path) -> Result<()> {
    let (hardware, market) = (out.join("hardware/data"), out.join("market/data"));
    // the snapshot was compiled on this day
    let mut texts = Texts::new("2026-11-30");
    gpus::import(folder, &hardware, &mut texts)?;
    nodes::import(folder, &hardware, &mut texts)?;
    texts.write(&hardware.join("sources.csv"))?;

    let mut texts = Texts::new("2026-11-30");
    providers::import(folder, &market, &mut texts)?;
    offers::import(folder, &market, &mut texts)?;
    texts.write(&market.join("sources.csv"))
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().ok_or("give the folder of the snapshot")?);
    let out = args.next().map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), PathBuf::from);
    import(&folder, &out)
}
