//! `nodewise catalog check`: is the data behind the answers sound?

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ArgMatches;
use hardware::Severity;

use crate::error::CliError;
use crate::out::{counted, print};
use crate::world::World;

/// Runs `catalog check`.
pub fn run(matches: &ArgMatches) -> Result<ExitCode, CliError> {
    let Some(("check", sub)) = matches.subcommand() else {
        return Err(CliError::new("no such command").hint("try `nodewise catalog check`"));
    };
    let files: Vec<PathBuf> = sub.get_many::<String>("files").into_iter().flatten().map(PathBuf::from).collect();
    let report = World::check(sub, &files)?;
    let mut text = String::new();
    let mut errors = 0;
    let mut warnings = 0;
    for finding in &report.findings {
        match finding.severity {
            Severity::Error => errors += 1,
            Severity::Warning => warnings += 1,
        }
        let place =
            if finding.line > 0 { format!("{}:{}", finding.file, finding.line) } else { finding.file.to_string() };
        text.push_str(&format!("{place}: {}: {}\n", finding.severity.name(), finding.message));
    }
    text.push_str(&format!("{}: {}, {}\n", report.checked, counted(errors, "error"), counted(warnings, "warning")));
    print(&text);
    Ok(if errors > 0 { ExitCode::from(2) } else { ExitCode::SUCCESS })
}
