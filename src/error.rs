//! What goes wrong at the edge: one message, its causes, and something to type instead.

use std::fmt::Display;

/// A request that cannot be answered: exit code 2.
#[derive(Debug)]
pub struct CliError {
    /// What was wrong, lower case, no full stop.
    pub message: String,
    /// What to type instead, one per line.
    pub hints: Vec<String>,
}

impl CliError {
    /// An error without a hint.
    pub fn new(message: impl Display) -> Self {
        Self { message: message.to_string(), hints: Vec::new() }
    }

    /// Adds a hint; an empty one is left out.
    pub fn hint(mut self, hint: impl Display) -> Self {
        let hint = hint.to_string();
        if !hint.is_empty() {
            self.hints.push(hint);
        }
        self
    }

    /// Puts a context before the message: `context: message`.
    pub fn within(mut self, context: impl Display) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }

    /// Prints it to stderr.
    pub fn report(&self) {
        eprintln!("error: {}", self.message);
        for hint in &self.hints {
            eprintln!("hint: {hint}");
        }
    }
}

impl From<planner::RequestError> for CliError {
    fn from(e: planner::RequestError) -> Self {
        let hint = e.hint.clone();
        let message = if e.value.is_empty() { format!("`{}`: {}", e.key, e.problem) } else { e.to_string() };
        Self::new(message).hint(hint)
    }
}
