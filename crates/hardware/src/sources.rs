//! Where catalog rows come from: a table of ids, dates and texts, so that rows can name a source in a few letters.

use std::collections::HashMap;
use std::sync::Arc;

use crate::finding::Finding;
use crate::table::read_table;

crate::columns!(id, retrieved, text);

/// Sources by id; a cell that is no id is taken as the text itself (as in a user's own file).
#[derive(Clone, Debug, Default)]
pub struct Sources {
    texts: HashMap<String, Arc<str>>,
    dates: HashMap<String, String>,
}

impl Sources {
    /// Reads `id,retrieved,text`.
    pub fn parse(file: &str, csv: &str, findings: &mut Vec<Finding>) -> Self {
        let mut sources = Self::default();
        read_table(file, csv, COLUMNS, 1, findings, |row| {
            let Some(id) = row.required(Col::id as usize) else { return };
            let text = row.text(Col::text as usize);
            if sources.texts.insert(id.to_owned(), text.into()).is_some() {
                row.error(format!("source `{id}` stands twice"));
            }
            if let Some(date) = row.filled(Col::retrieved as usize) {
                sources.dates.insert(id.to_owned(), date.to_owned());
            }
        });
        sources
    }

    /// The text behind a cell.
    pub fn text(&self, cell: &str) -> Arc<str> {
        self.texts.get(cell).cloned().unwrap_or_else(|| cell.into())
    }

    /// The newest day that any of them was read.
    pub fn newest(&self) -> Option<&str> {
        // ISO days sort as texts
        self.dates.values().map(String::as_str).max()
    }

    /// When the source was read, where known.
    pub fn retrieved(&self, cell: &str) -> Option<&str> {
        self.dates.get(cell).map(String::as_str)
    }
}
