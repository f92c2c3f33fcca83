//! Time to load the whole embedded catalog: `cargo run --release -p nodewise-market --example load_time`.

use std::time::Instant;

use hardware::Hardware;
use market::Market;

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
    println!("median of {}: hardware {:.2} ms, all {:.2} ms", times.len(), middle.0, middle.1);
}
