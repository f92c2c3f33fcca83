//! Reading of catalog tables: CSV with a header, every problem collected with its line.
//!
//! A table knows its columns by name; a missing column means that every value in it is unknown, a blank cell likewise.
//! Files may come from strangers, so rows, cells and numbers are bounded.

use crate::finding::Finding;

/// Rows of one table that are read; the rest is refused.
pub const MAX_ROWS: usize = 200_000;
/// Bytes of one cell that are accepted.
pub const MAX_CELL: usize = 4096;
/// Findings kept per table, so that a file of rubbish can't fill memory.
pub const MAX_FINDINGS: usize = 1000;

/// Names the columns of a table: an enum `Col` whose variants are the header names, and `COLUMNS` in the same order.
#[macro_export]
macro_rules! columns {
    ($($name:ident),* $(,)?) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Clone, Copy)]
        enum Col { $($name),* }
        const COLUMNS: &[&str] = &[$(stringify!($name)),*];
    };
}

/// One row while it is being read: cells by column, problems into the table's findings.
pub struct Row<'t> {
    /// Line in the file, from 1.
    pub line: u64,
    file: &'t str,
    names: &'t [&'t str],
    places: &'t [Option<usize>],
    record: &'t csv::StringRecord,
    findings: &'t mut Vec<Finding>,
}

impl<'t> Row<'t> {
    /// The trimmed text of a cell; empty where the column or the cell is missing.
    pub fn text(&self, column: usize) -> &'t str {
        let place = self.places.get(column).copied().flatten();
        place.and_then(|p| self.record.get(p)).map_or("", str::trim)
    }

    /// The text of a cell, `None` where blank.
    pub fn filled(&self, column: usize) -> Option<&'t str> {
        Some(self.text(column)).filter(|t| !t.is_empty())
    }

    /// The text of a cell that must not be blank.
    pub fn required(&mut self, column: usize) -> Option<&'t str> {
        let text = self.filled(column);
        if text.is_none() {
            self.error(format!("`{}` is missing", self.names[column]));
        }
        text
    }

    /// A number within bounds; blank is `None`, anything else that is no such number is an error and `None`.
    pub fn number(&mut self, column: usize, low: f64, high: f64) -> Option<f64> {
        let text = self.filled(column)?;
        let name = self.names[column];
        match text.parse::<f64>() {
            Ok(v) if v.is_finite() && v >= low && v <= high => Some(v),
            Ok(v) if v.is_finite() => {
                self.error(format!("`{name}` is {text}, outside {low} to {high}"));
                None
            }
            _ => {
                self.error(format!("`{name}`: `{}` is not a number", shorten(text)));
                None
            }
        }
    }

    /// A whole number up to a bound.
    pub fn count(&mut self, column: usize, high: u32) -> Option<u32> {
        let value = self.number(column, 0.0, f64::from(high))?;
        if value.fract() != 0.0 {
            self.error(format!("`{}` is {value}, not a whole number", self.names[column]));
            return None;
        }
        Some(value as u32)
    }

    /// `yes`, `no` or blank (`None`).
    pub fn flag(&mut self, column: usize) -> Option<bool> {
        match self.text(column) {
            "" => None,
            "yes" | "true" => Some(true),
            "no" | "false" => Some(false),
            other => {
                self.error(format!("`{}`: `{}` is neither `yes` nor `no`", self.names[column], shorten(other)));
                None
            }
        }
    }

    /// Adds an error on this line.
    pub fn error(&mut self, message: impl Into<String>) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(Finding::error(self.file, self.line, message));
        }
    }

    /// Adds a warning on this line.
    pub fn warning(&mut self, message: impl Into<String>) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(Finding::warning(self.file, self.line, message));
        }
    }
}

/// A text cut to 60 characters for a message.
pub fn shorten(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Reads `text` as CSV and calls `each` for every row. `columns` are the known names, the first `required` of them must
/// be in the header. Unknown columns are warned about, once each.
pub fn read_table(
    file: &str,
    text: &str,
    columns: &[&str],
    required: usize,
    findings: &mut Vec<Finding>,
    mut each: impl FnMut(&mut Row<'_>),
) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let header = match reader.headers() {
        Ok(h) => h.clone(),
        Err(e) => {
            findings.push(Finding::error(file, 1, format!("cannot read the header: {e}")));
            return;
        }
    };
    let mut places = vec![None; columns.len()];
    for (place, name) in header.iter().enumerate().take(1000) {
        match columns.iter().position(|c| *c == name.trim()) {
            Some(column) if places[column].is_some() => {
                findings.push(Finding::error(file, 1, format!("column `{}` stands twice", shorten(name))));
            }
            Some(column) => places[column] = Some(place),
            None => {
                findings.push(Finding::warning(file, 1, format!("column `{}` is unknown and ignored", shorten(name))))
            }
        }
    }
    let missing: Vec<&str> =
        columns.iter().zip(&places).take(required).filter(|(_, p)| p.is_none()).map(|(c, _)| *c).collect();
    if !missing.is_empty() {
        findings.push(Finding::error(file, 1, format!("no column `{}`", missing.join("`, `"))));
        return;
    }
    let mut record = csv::StringRecord::new();
    let mut rows = 0usize;
    loop {
        match reader.read_record(&mut record) {
            Ok(true) => {}
            Ok(false) => return,
            Err(e) => {
                let line = e.position().map_or(0, csv::Position::line);
                findings.push(Finding::error(file, line, format!("cannot read the row: {e}")));
                return;
            }
        }
        let line = record.position().map_or(0, csv::Position::line);
        rows += 1;
        if rows > MAX_ROWS {
            findings.push(Finding::error(file, line, format!("more than {MAX_ROWS} rows; the rest is not read")));
            return;
        }
        if findings.len() >= MAX_FINDINGS {
            findings.push(Finding::error(file, line, format!("more than {MAX_FINDINGS} problems; stopped reading")));
            return;
        }
        if record.iter().all(|c| c.trim().is_empty()) {
            continue;
        }
        if record.len() > header.len() {
            findings.push(Finding::error(
                file,
                line,
                format!("{} cells where the header has {}; quote cells that hold commas", record.len(), header.len()),
            ));
            continue;
        }
        if let Some(long) = record.iter().find(|c| c.len() > MAX_CELL) {
            findings.push(Finding::error(
                file,
                line,
                format!("a cell of {} bytes; the limit is {MAX_CELL}", long.len()),
            ));
            continue;
        }
        let mut row = Row { line, file, names: columns, places: &places, record: &record, findings };
        each(&mut row);
    }
}
