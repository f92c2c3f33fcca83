//! Checks of a catalog file on its own, for `nodewise catalog check FILE`.

use crate::catalog::Hardware;
use crate::finding::Finding;
use crate::sources::Sources;

/// What is wrong with a GPU table; every problem, in file order.
pub fn check_gpus(file: &str, csv: &str) -> Vec<Finding> {
    Hardware::default().add_gpus(file, csv, &Sources::default())
}

/// What is wrong with a node table whose GPUs are in `hardware`.
pub fn check_nodes(file: &str, csv: &str, hardware: &Hardware) -> Vec<Finding> {
    hardware.clone().add_nodes(file, csv, &Sources::default())
}
