//! Shared by the integration tests: models and nodes by name, measured rows.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::HashMap;
use std::path::PathBuf;

use hardware::{Hardware, NodeShape, OnSpec};
use model::{Catalog, ModelSpec};

pub(crate) type Row = HashMap<String, String>;

/// A measurement file beside the repository, or `None` (said on standard error) where it is not there.
pub(crate) fn measured(name: &str) -> Option<Vec<Row>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/measured").join(name);
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    let mut reader = csv::Reader::from_path(path).unwrap();
    Some(reader.deserialize().map(|r| r.unwrap()).collect())
}

pub(crate) fn text<'a>(row: &'a Row, column: &str) -> &'a str {
    row.get(column).map_or("", String::as_str)
}

pub(crate) fn number(row: &Row, column: &str) -> Option<f64> {
    text(row, column).parse().ok()
}

pub(crate) fn spec(name: &str) -> ModelSpec {
    Catalog::embedded().find(name).unwrap().spec().unwrap()
}

pub(crate) fn try_spec(name: &str) -> Option<ModelSpec> {
    Catalog::embedded().find(name).ok()?.spec().ok()
}

/// A node by the `--on` grammar.
pub(crate) fn node(text: &str) -> NodeShape {
    text.parse::<OnSpec>().unwrap().resolve(&Hardware::embedded()).unwrap().0
}

pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => 0.5 * (values[n / 2 - 1] + values[n / 2]),
    }
}
