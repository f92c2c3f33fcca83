//! The commands and their flags. Flags of a plan come from the request's own key table, so that a flag, a query key
//! and a JSON key are one thing.

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, builder::EnumValueParser};
use planner::{KEYS, Key, PlanRequest};

use crate::error::CliError;
use crate::out::Format;

const EXIT_CODES: &str = "Exit codes: 0 found, 1 the answer is no, 2 bad request or data";

/// The whole command line.
pub fn command() -> Command {
    Command::new("nodewise")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Which GPU node or cluster does this model need, how fast will it be, what will it cost")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .after_help(EXIT_CODES)
        .args(shared_args())
        .subcommand(plan())
        .subcommand(fit())
        .subcommand(model())
        .subcommand(runs())
        .subcommand(gpus())
        .subcommand(
            Command::new("nodes")
                .about("List node types: makers' systems and providers' instances")
                .arg(filter_arg("words that a node type must contain, like `aws`, `h100`, `nvswitch`")),
        )
        .subcommand(prices())
        .subcommand(
            Command::new("catalog").about("The data behind the answers").subcommand_required(true).subcommand(
                Command::new("check")
                    .about("Check catalog files: ranges, references, units, duplicates")
                    .long_about(
                        "Check catalog files: ranges, references, units, duplicates. Reports every problem with file \
                         and line. Without FILES the embedded catalog and your own files are checked.",
                    )
                    .arg(Arg::new("files").value_name("FILES").num_args(0..).value_hint(ValueHint::FilePath)),
            ),
        )
        .subcommand(
            Command::new("completions").about("Print shell completions").arg(
                Arg::new("shell")
                    .required(true)
                    .value_parser(EnumValueParser::<clap_complete::Shell>::new())
                    .help("the shell"),
            ),
        )
}

fn shared_args() -> Vec<Arg> {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).global(true).help(help).help_heading("Output")
    };
    vec![
        Arg::new("format")
            .long("format")
            .value_name("FORMAT")
            .value_parser(EnumValueParser::<Format>::new())
            .default_value("table")
            .global(true)
            .help("table, json, csv or md")
            .help_heading("Output")
            .hide_possible_values(true),
        flag("explain", "show the terms behind the numbers"),
        flag("why", "show what was rejected and why"),
        flag("wide", "show every column, however narrow the terminal"),
        Arg::new("catalog")
            .long("catalog")
            .value_name("DIR")
            .global(true)
            .value_hint(ValueHint::DirPath)
            .help("folder with your own gpus.csv, nodes.csv, providers.csv, offers.csv")
            .help_heading("Output"),
        Arg::new("today")
            .long("today")
            .value_name("DATE")
            .global(true)
            .env("NODEWISE_TODAY")
            .hide(true)
            .help("date that ages of prices are counted to, like 2026-11-30"),
    ]
}

fn request_arg(key: &Key) -> Arg {
    let arg = Arg::new(key.name).help(key.help).help_heading(key.section);
    if key.name == "model" {
        return arg.value_name("MODEL").index(1).value_hint(ValueHint::AnyPath);
    }
    let arg = arg.long(key.name);
    if key.switch {
        arg.action(ArgAction::SetTrue)
    } else if key.repeats {
        arg.value_name(key.value).action(ArgAction::Append).allow_hyphen_values(true)
    } else {
        arg.value_name(key.value).allow_hyphen_values(true)
    }
}

fn request_args(names: &[&str]) -> Vec<Arg> {
    KEYS.iter().filter(|k| names.contains(&k.name)).map(request_arg).collect()
}

fn plan() -> Command {
    Command::new("plan")
        .about("Rank nodes and clusters for a model and a load, with speed, price and reasons")
        .after_help(EXIT_CODES)
        .args(KEYS.iter().map(request_arg))
        .arg(
            Arg::new("request")
                .long("request")
                .value_name("FILE|QUERY")
                .value_hint(ValueHint::FilePath)
                .help("read the request from a JSON file, `-` for stdin, or a query string; flags add to it")
                .help_heading("Output"),
        )
        .arg(
            Arg::new("top")
                .long("top")
                .value_name("N")
                .value_parser(clap::value_parser!(u32).range(1..=100_000))
                .default_value("10")
                .help("rows of the table")
                .help_heading("Output"),
        )
}

fn fit() -> Command {
    Command::new("fit")
        .about("Does a model fit these nodes, and what is left (memory only)")
        .after_help(EXIT_CODES)
        .args(request_args(&[
            "model",
            "params",
            "active",
            "weights",
            "kv",
            "context",
            "concurrency",
            "engine",
            "tp",
            "pp",
            "dp",
            "ep",
        ]))
        .arg(
            Arg::new("on")
                .long("on")
                .value_name("[NODES x] COUNT x GPU")
                .required(true)
                .action(ArgAction::Append)
                .help("where: 8xh100-sxm, 2x8xh200-sxm, dgx-b200, aws/p5.48xlarge; repeat to compare"),
        )
        .arg(
            Arg::new("memory")
                .long("memory")
                .value_name("WHICH")
                .value_parser(["usable", "nominal"])
                .default_value("usable")
                .help("usable: what an engine sees; nominal: the label, in decimal GB"),
        )
        .arg(cached_arg())
        .arg(
            Arg::new("weights-only")
                .long("weights-only")
                .action(ArgAction::SetTrue)
                .help("count only the weights, as many pages do"),
        )
}

fn cached_arg() -> Arg {
    Arg::new("cached")
        .long("cached")
        .action(ArgAction::SetTrue)
        .help("read the model from the local Hugging Face cache, not from the catalog")
}

fn model() -> Command {
    Command::new("model")
        .about("A model's anatomy from its own files: parameters, weights, cache")
        .after_help(EXIT_CODES)
        .arg(
            Arg::new("models")
                .value_name("MODEL")
                .num_args(0..)
                .value_hint(ValueHint::AnyPath)
                .help("names, directories, config.json, .safetensors or .gguf files"),
        )
        .arg(cached_arg())
        .arg(Arg::new("all").long("all").action(ArgAction::SetTrue).help("every model of the catalog"))
        .args(request_args(&["weights", "kv", "context"]))
}

fn runs() -> Command {
    Command::new("runs")
        .about("What runs on this hardware: every catalog model with the best format that fits")
        .after_help(EXIT_CODES)
        .arg(
            Arg::new("on")
                .long("on")
                .value_name("[NODES x] COUNT x GPU")
                .required(true)
                .help("the hardware: rtx-4090, 2xrtx-4090, 8xh100-sxm"),
        )
        .args(request_args(&["for", "input", "output", "engine", "weights"]))
        .arg(filter_arg("words that a model's name must contain"))
}

fn gpus() -> Command {
    Command::new("gpus")
        .about("List GPUs, or compare some side by side")
        .args_conflicts_with_subcommands(true)
        .arg(filter_arg("words that a GPU must contain, like `hopper`, `80`, `amd`"))
        .subcommand(Command::new("compare").about("Compare GPUs side by side").arg(
            Arg::new("gpus").value_name("GPU").num_args(2..).required(true).help("exact ids, like h100-sxm h100-pcie"),
        ))
}

fn prices() -> Command {
    Command::new("prices")
        .about("List offers with their kind and age, and the medians per GPU")
        .after_help(EXIT_CODES)
        .arg(filter_arg("words that an offer must contain, like `h100`, `aws`, `us-east`"))
        .args(request_args(&["gpu", "provider", "region", "purchase", "tier", "price"]))
        .arg(
            Arg::new("stats")
                .long("stats")
                .action(ArgAction::SetTrue)
                .help("medians per GPU over providers instead of offers"),
        )
}

fn filter_arg(help: &'static str) -> Arg {
    Arg::new("filter").value_name("FILTER").num_args(0..).help(help)
}

/// Reads every request key that was given on the command line into a request.
pub fn read_request(matches: &ArgMatches, request: &mut PlanRequest) -> Result<(), CliError> {
    for key in KEYS {
        // a command has only some of the keys
        if key.switch {
            if matches.try_get_one::<bool>(key.name).ok().flatten() == Some(&true) {
                request.set(key.name, "true")?;
            }
        } else if let Ok(Some(values)) = matches.try_get_many::<String>(key.name) {
            for value in values {
                request.set(key.name, value)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }
}
