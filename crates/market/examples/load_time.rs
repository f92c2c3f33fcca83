//! Time to load the whole embedded catalog: `cargo run --release -p nodewise-market --example load_time`.

#![allow(clippy::disallowed_methods, reason = "a tool around the core reads and writes files and times itself")]

use std::time::Instant;

use hardware::Hardware;
use market::{Market, QuoteFilter};

fn main() {
    let mut times: Vec<(f64, f64)> = (0..200)
        .map(|_| {
            let start = Instant::now();
            let hardware = Hardware::embedded();
            let half = start.elapsed().as_secs_f64() * 1e3;
            let market = Market::embedded(&hardware);
            let whole = start.elapsed().as_secs_f64() * 1e3;
            assert!(market.offers().len() > 1000);
            (half, whole)
        })
        .collect();
    let first = times[0];
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    let middle = times[times.len() / 2];
    println!("first: hardware {:.2} ms, all {:.2} ms", first.0, first.1);
    let hardware = Hardware::embedded();
    let market = Market::embedded(&hardware);
    let filter = QuoteFilter::on_demand(jiff::civil::date(2026, 11, 30));
    let start = Instant::now();
    let nodes: usize = hardware.nodes().iter().map(|n| market.quotes_for_node(n, &filter).len()).sum();
    let of_nodes = start.elapsed().as_secs_f64() * 1e3;
    let all = |g: &hardware::Gpu| (1..=8).map(|n| market.quotes(&g.id, n, &filter).len()).sum::<usize>();
    let generic: usize = hardware.gpus().iter().map(all).sum();
    let of_all = start.elapsed().as_secs_f64() * 1e3 - of_nodes;
    println!("{nodes} quotes of all node types: {of_nodes:.2} ms; {generic} of 1 to 8 of every GPU: {of_all:.2} ms");
    println!("median of {}: hardware {:.2} ms, all {:.2} ms", times.len(), middle.0, middle.1);
}
