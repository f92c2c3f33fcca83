//! What is printed: tables, term trees, and where it goes.

pub mod table;
pub mod terms;

use std::io::{IsTerminal, Write};

use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde_json::Value;

/// Output format of every command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Text for people.
    #[default]
    Table,
    /// JSON for programs.
    Json,
    /// Comma-separated values.
    Csv,
    /// Markdown.
    Md,
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Table, Self::Json, Self::Csv, Self::Md]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self {
            Self::Table => ("table", "text for people"),
            Self::Json => ("json", "JSON for programs"),
            Self::Csv => ("csv", "comma-separated values"),
            Self::Md => ("md", "Markdown"),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

/// How to print.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Output format.
    pub format: Format,
    /// Columns available for text.
    pub width: usize,
}

impl Style {
    /// The terminal's width where stdout is one (at least 40), else 80; unlimited with `wide`.
    pub fn new(format: Format, wide: bool) -> Self {
        let width = if wide {
            usize::MAX / 2
        } else if std::io::stdout().is_terminal() {
            terminal_size::terminal_size().map_or(80, |(w, _)| usize::from(w.0).max(40))
        } else {
            80
        };
        Self { format, width }
    }
}

/// `1 GPU`, `8 GPUs`.
pub fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", units::group_thousands(count), if count == 1 { "" } else { "s" })
}

/// Writes to stdout; a reader that went away is not an error.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        // `| head` closed the pipe: nothing more to say, and nothing went wrong
        std::process::exit(0);
    }
}

/// Writes JSON to stdout.
pub fn print_json(value: &Value) {
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|_| "null".into());
    print(&format!("{text}\n"));
}

/// Prints a table in the asked format; `below` are lines that only people need.
pub fn print_table(table: &table::Table, style: &Style, below: &[String]) {
    match style.format {
        Format::Json => print_json(&table.json()),
        Format::Csv => print(&table.csv()),
        Format::Md => print(&table.markdown()),
        Format::Table => {
            let mut text = table.render(style.width);
            for line in below {
                for part in table::wrap(line, style.width) {
                    text.push_str(&part);
                    text.push('\n');
                }
            }
            print(&text);
        }
    }
}
