//! Checks of a market file on its own, for `nodewise catalog check FILE`.

use hardware::{Finding, Hardware, Sources};

use crate::market::Market;

/// What is wrong with a provider table; every problem, in file order.
pub fn check_providers(file: &str, csv: &str) -> Vec<Finding> {
    Market::default().add_providers(file, csv, &Sources::default())
}

/// What is wrong with an offer table whose GPUs are in `hardware` and whose providers are in `market`.
pub fn check_offers(file: &str, csv: &str, hardware: &Hardware, market: &Market) -> Vec<Finding> {
    market.clone().add_offers(file, csv, &Sources::default(), hardware)
}
