//! The command line of Nodewise: parse, resolve, call the core, print.
//!
//! Exit codes: 0 found; 1 the answer is no; 2 bad request or data.

mod cli;
mod cmd;
mod error;
mod out;
mod request_json;
mod world;

use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = cli::command().get_matches();
    match cmd::run(&matches) {
        Ok(code) => code,
        Err(error) => {
            error.report();
            ExitCode::from(2)
        }
    }
}
