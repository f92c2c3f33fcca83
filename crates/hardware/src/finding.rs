//! What a catalog file got wrong, with file and line.

use std::fmt;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Suspicious, but the row is used.
    Warning,
    /// The row or the value is not used.
    Error,
}

impl Severity {
    /// The word used in output and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One problem in one line of a catalog file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Finding {
    /// The file as it was named by whoever read it.
    pub file: String,
    /// Line in the file, from 1; 0 where the whole file is meant.
    pub line: u64,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, with the value and the limit.
    pub message: String,
}

impl Finding {
    /// An error: the row or the value is not used.
    pub fn error(file: &str, line: u64, message: impl Into<String>) -> Self {
        Self { file: file.into(), line, severity: Severity::Error, message: message.into() }
    }

    /// A warning: the row is used, but looks wrong.
    pub fn warning(file: &str, line: u64, message: impl Into<String>) -> Self {
        Self { file: file.into(), line, severity: Severity::Warning, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.file, self.line, self.severity.name(), self.message)
    }
}
