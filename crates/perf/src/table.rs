//! The embedded data files: CSV with a header, every row with its origin and basis.

use std::collections::HashMap;

use units::Basis;

/// One row by column name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row(HashMap<String, String>);

pub(crate) type Rows = Vec<Row>;

impl Row {
    /// The cell, or nothing where the column is missing.
    pub(crate) fn text(&self, column: &str) -> &str {
        self.0.get(column).map_or("", |cell| cell.trim())
    }

    /// The cell as a finite number.
    pub(crate) fn number(&self, column: &str) -> Option<f64> {
        self.text(column).parse().ok().filter(|v: &f64| v.is_finite())
    }

    /// The `basis` column; an unknown word counts as assumed.
    pub(crate) fn basis(&self) -> Basis {
        [Basis::Measured, Basis::Calibrated, Basis::Derived]
            .into_iter()
            .find(|b| b.name() == self.text("basis"))
            .unwrap_or(Basis::Assumed)
    }
}

/// Reads a data file; rows that are no CSV are left out (a test holds that the embedded files have none).
pub(crate) fn rows(text: &str) -> Rows {
    csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_reader(text.as_bytes())
        .deserialize::<HashMap<String, String>>()
        .filter_map(Result::ok)
        .map(Row)
        .collect()
}
