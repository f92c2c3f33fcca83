//! Fits the efficiency curves of `data/` on published kernel and fabric measurements.
//!
//! ```text
//! cargo run --release -p nodewise-perf --example fit_curves -- DIR
//! ```
//!
//! `DIR` holds `gpus.csv`, `measured/kernels_and_fabric.csv`, `measured/inference.csv` and `traces/`. Every row it writes carries the number of
//! measurements, the median and 90th percentile of the fit's error, the range and the origin.

#![allow(clippy::disallowed_methods, reason = "a tool around the core reads and writes files and times itself")]

mod attention;
mod collectives;
mod gemm;
mod llama_cpp;
mod read;
mod simplex;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let dir = PathBuf::from(std::env::args().nth(1).context("usage: fit_curves DIR")?);
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let gpus = read::gpus(&dir)?;
    let gemm = gemm::table(&dir, &gpus)?;
    let experts = attention::experts(&dir, &gpus, &gemm)?;
    let attention = attention::table(&dir, &gpus, &gemm)?;
    for (name, text) in [
        ("gemm.csv", gemm),
        ("collectives.csv", collectives::table(&dir, &gpus)?),
        ("attention.csv", attention),
        ("experts.csv", experts),
        ("streams.csv", llama_cpp::table(&dir, &gpus)?),
    ] {
        std::fs::write(data.join(name), &text).with_context(|| format!("cannot write {name}"))?;
        println!("{name}: {} rows", text.lines().count() - 2);
    }
    Ok(())
}
