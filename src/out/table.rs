//! One table for four formats: aligned text that fits a width, JSON, CSV and Markdown.

use serde_json::Value;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What a reader may lose first when the terminal is narrow: higher goes first, 0 never.
pub type Rank = u8;

/// A column: `key` in JSON and CSV (with its unit), `header` on screen.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// JSON and CSV name; the unit ends it.
    pub key: &'static str,
    /// Heading on screen.
    pub header: &'static str,
    /// Numbers are right-aligned.
    pub right: bool,
    /// Dropped in this order where the width is short.
    pub rank: Rank,
}

impl Column {
    /// A left-aligned text column.
    pub const fn text(key: &'static str, header: &'static str, rank: Rank) -> Self {
        Self { key, header, right: false, rank }
    }

    /// A right-aligned number column.
    pub const fn number(key: &'static str, header: &'static str, rank: Rank) -> Self {
        Self { key, header, right: true, rank }
    }
}

/// A cell: what is printed and what JSON carries.
#[derive(Clone, Debug)]
pub struct Cell {
    /// On screen; empty prints as `—`.
    pub text: String,
    /// In JSON and CSV; null is an empty CSV field.
    pub value: Value,
}

impl Cell {
    /// A text that is the same everywhere.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { value: if text.is_empty() { Value::Null } else { Value::String(text.clone()) }, text }
    }

    /// A number printed with three significant digits, full in JSON; `None` is unknown.
    pub fn number(value: Option<f64>) -> Self {
        match value.filter(|v| v.is_finite()) {
            Some(v) => Self { text: units::sig3(v), value: Value::from(v) },
            None => Self::unknown(),
        }
    }

    /// A whole number.
    pub fn count(value: Option<u64>) -> Self {
        match value {
            Some(v) => Self { text: units::group_thousands(v), value: Value::from(v) },
            None => Self::unknown(),
        }
    }

    /// A value with its own text on screen.
    pub fn shown(text: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { text: text.into(), value: value.into() }
    }

    /// Unknown: `—` on screen, null in JSON, empty in CSV.
    pub fn unknown() -> Self {
        Self { text: String::new(), value: Value::Null }
    }
}

/// Rows under columns.
#[derive(Clone, Debug)]
pub struct Table {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows; each as long as `columns`.
    pub rows: Vec<Vec<Cell>>,
}

/// Narrowest that a text column is cut to; one that must stay keeps more, so that names can be told apart.
const MIN_TEXT: usize = 10;
const MIN_NAME: usize = 24;
const GAP: usize = 2;

impl Table {
    /// An empty table.
    pub fn new(columns: &[Column]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }

    /// Aligned text within `width` columns; says on a last line which columns were left out.
    pub fn render(&self, width: usize) -> String {
        let natural: Vec<usize> = (0..self.columns.len()).map(|i| self.natural(i)).collect();
        let mut kept: Vec<usize> = (0..self.columns.len())
            // a column that is unknown in every row tells nothing
            .filter(|&i| self.rows.is_empty() || self.rows.iter().any(|r| !r[i].text.is_empty()))
            .collect();
        let least = |i: usize| {
            let column = &self.columns[i];
            let least = if column.rank == 0 { MIN_NAME } else { MIN_TEXT };
            if column.right || natural[i] <= least { natural[i] } else { least.max(column.header.width()) }
        };
        let total = |kept: &[usize], w: &dyn Fn(usize) -> usize| {
            kept.iter().map(|&i| w(i)).sum::<usize>() + GAP * kept.len().saturating_sub(1)
        };
        let mut cut = Vec::new();
        // numbers and names stay whole as long as something less important can go
        while total(&kept, &least) > width {
            let Some((at, _)) = kept
                .iter()
                .enumerate()
                .filter(|&(_, &i)| self.columns[i].rank > 0)
                .max_by_key(|&(at, &i)| (self.columns[i].rank, at))
            else {
                break;
            };
            cut.push(kept.remove(at));
        }
        // dropping a wide column may have made room for narrower ones that went before it
        cut.sort_by_key(|&i: &usize| (self.columns[i].rank, i));
        cut.retain(|&i| {
            let mut with = kept.clone();
            with.push(i);
            with.sort_unstable();
            let fits = total(&with, &least) <= width;
            if fits {
                kept = with;
            }
            !fits
        });
        let mut widths: Vec<usize> = natural.clone();
        // shrink the widest text column until the row fits
        while total(&kept, &|i| widths[i]) > width {
            let Some(&i) = kept.iter().filter(|&&i| widths[i] > least(i)).max_by_key(|&&i| widths[i]) else { break };
            widths[i] -= 1;
        }
        let mut out = String::new();
        let mut line = |cells: &mut dyn Iterator<Item = (usize, String)>| {
            let mut text = String::new();
            for (i, cell) in cells {
                if !text.is_empty() || i != kept[0] {
                    text.push_str(&" ".repeat(GAP));
                }
                let cell = shorten(&cell, widths[i]);
                let pad = " ".repeat(widths[i].saturating_sub(cell.width()));
                if self.columns[i].right {
                    text.push_str(&pad);
                    text.push_str(&cell);
                } else {
                    text.push_str(&cell);
                    text.push_str(&pad);
                }
            }
            out.push_str(text.trim_end());
            out.push('\n');
        };
        if kept.is_empty() {
            return out;
        }
        // a table turned on its side has its headings in the first column
        if kept.iter().any(|&i| !self.columns[i].header.is_empty()) {
            line(&mut kept.iter().map(|&i| (i, self.columns[i].header.to_owned())));
        }
        for row in &self.rows {
            line(&mut kept.iter().map(|&i| (i, shown(&row[i]))));
        }
        if !cut.is_empty() {
            cut.sort_unstable();
            let names: Vec<_> = cut.iter().map(|&i| self.columns[i].header).collect();
            for part in wrap(&format!("left out for width: {} (see --wide)", names.join(", ")), width) {
                out.push_str(&part);
                out.push('\n');
            }
        }
        out
    }

    fn natural(&self, i: usize) -> usize {
        self.rows.iter().map(|r| shown(&r[i]).width()).max().unwrap_or(0).max(self.columns[i].header.width())
    }

    /// An array of objects, one per row.
    pub fn json(&self) -> Value {
        let object = |row: &Vec<Cell>| {
            Value::Object(
                self.columns.iter().zip(row).map(|(c, cell)| (c.key.to_owned(), cell.value.clone())).collect(),
            )
        };
        Value::Array(self.rows.iter().map(object).collect())
    }

    /// CSV with a header line.
    pub fn csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let field = |cell: &Cell| match &cell.value {
            Value::Null => String::new(),
            Value::String(s) => s.clone(),
            other => other.to_string(),
        };
        // writing into memory cannot fail
        let _ = writer.write_record(self.columns.iter().map(|c| c.key));
        for row in &self.rows {
            let _ = writer.write_record(row.iter().map(field));
        }
        String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
    }

    /// A Markdown table.
    pub fn markdown(&self) -> String {
        let clean = |s: &str| s.replace('|', "\\|").replace('\n', " ");
        let mut out = String::new();
        let headers: Vec<_> = self.columns.iter().map(|c| clean(c.header)).collect();
        out.push_str(&format!("| {} |\n", headers.join(" | ")));
        let rule: Vec<_> = self.columns.iter().map(|c| if c.right { "---:" } else { "---" }).collect();
        out.push_str(&format!("| {} |\n", rule.join(" | ")));
        for row in &self.rows {
            let cells: Vec<_> = row.iter().map(|c| clean(&shown(c))).collect();
            out.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        out
    }
}

fn shown(cell: &Cell) -> String {
    if cell.text.is_empty() { "—".into() } else { cell.text.clone() }
}

/// Cuts a text to a display width, ending in `…` where something was lost.
fn shorten(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.into();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let w = c.width().unwrap_or(0);
        if used + w + 1 > width {
            break;
        }
        used += w;
        out.push(c);
    }
    out.push('…');
    out
}

/// Breaks a text into lines of at most `width` at spaces; a longer word stands alone.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && line.width() + 1 + word.width() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new(&[
            Column::text("node", "node", 0),
            Column::number("usd_per_hour", "$/h", 0),
            Column::text("source", "source", 2),
            Column::number("ram_bytes", "RAM", 1),
        ]);
        table.push(vec![
            Cell::text("aws/p5.48xlarge"),
            Cell::number(Some(55.04)),
            Cell::text("a very long source that nobody needs"),
            Cell::unknown(),
        ]);
        table.push(vec![Cell::text("x"), Cell::number(None), Cell::text("b|c"), Cell::count(Some(2048))]);
        table
    }

    #[test]
    fn a_narrow_table_drops_columns_and_says_so() {
        let wide = sample().render(120);
        assert!(wide.starts_with("node              $/h  source"), "{wide}");
        assert!(!wide.contains("left out"));
        let narrow = sample().render(30);
        assert!(narrow.lines().all(|l| l.width() <= 30), "{narrow}");
        assert!(narrow.contains("left out for width: source"), "{narrow}");
        let unknown = narrow.lines().nth(2).unwrap();
        assert!(unknown.contains('—'), "{narrow}");
    }

    #[test]
    fn unknown_is_null_and_empty_never_zero() {
        assert_eq!(sample().json()[1]["usd_per_hour"], Value::Null);
        assert!(sample().csv().contains("x,,b|c,2048"));
        assert!(sample().markdown().contains("b\\|c"));
    }

    #[test]
    fn wrapping_keeps_every_word() {
        let lines = wrap("one two three four", 9);
        assert_eq!(lines, ["one two", "three", "four"]);
    }
}
