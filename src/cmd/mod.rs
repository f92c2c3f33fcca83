//! One file per command: read its arguments, call the core, print.

mod catalog;
mod files;
mod fit;
mod gpus;
mod model;
mod nodes;
mod plan;
mod plan_json;
mod prices;
mod runs;

use std::process::ExitCode;

use clap::ArgMatches;

use crate::error::CliError;
use crate::out::{Format, Style};

/// The answer is no.
pub const NO: u8 = 1;

/// Flags that every command has.
pub struct Shared {
    /// How to print.
    pub style: Style,
    /// Show term trees.
    pub explain: bool,
    /// Show rejections.
    pub why: bool,
    /// Take the model from the local cache.
    pub cached: bool,
}

impl Shared {
    fn new(matches: &ArgMatches) -> Self {
        let format = matches.get_one::<Format>("format").copied().unwrap_or_default();
        Self {
            style: Style::new(format, matches.get_flag("wide")),
            explain: matches.get_flag("explain"),
            why: matches.get_flag("why"),
            cached: matches.try_get_one::<bool>("cached").ok().flatten().copied().unwrap_or(false),
        }
    }
}

/// Runs the command that was asked for.
pub fn run(matches: &ArgMatches) -> Result<ExitCode, CliError> {
    let Some((name, sub)) = matches.subcommand() else {
        return Err(CliError::new("no command is named").hint("see `nodewise --help`"));
    };
    let shared = Shared::new(sub);
    match name {
        "plan" => plan::run(sub, &shared),
        "fit" => fit::run(sub, &shared),
        "model" => model::run(sub, &shared),
        "runs" => runs::run(sub, &shared),
        "gpus" => gpus::run(sub, &shared),
        "nodes" => nodes::run(sub, &shared),
        "prices" => prices::run(sub, &shared),
        "catalog" => catalog::run(sub),
        "completions" => {
            let Some(shell) = sub.get_one::<clap_complete::Shell>("shell") else {
                return Err(CliError::new("no shell is named").hint("try `nodewise completions bash`"));
            };
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut crate::cli::command(), "nodewise", &mut text);
            crate::out::print(&String::from_utf8_lossy(&text));
            Ok(ExitCode::SUCCESS)
        }
        other => Err(CliError::new(format!("no command is called `{other}`")).hint("see `nodewise --help`")),
    }
}

/// The words of a filter argument, lower case.
pub fn filter_words(matches: &ArgMatches) -> Vec<String> {
    matches.get_many::<String>("filter").into_iter().flatten().map(|w| w.to_lowercase()).collect()
}

/// Whether a text (lower case) contains every word.
pub fn matches_all(text: &str, words: &[String]) -> bool {
    words.iter().all(|w| text.contains(w.as_str()))
}

/// Success, or the answer no where nothing was found; a hint goes to stderr.
pub fn found(any: bool, what: &str, hint: &str) -> ExitCode {
    if any {
        return ExitCode::SUCCESS;
    }
    eprintln!("no {what} matches");
    eprintln!("hint: {hint}");
    ExitCode::from(NO)
}
