//! The `goodput` binary: turns the command line into a plan, the plan into a result, and shows the
//! result.
#![forbid(unsafe_code)]
// These macros panic if nobody reads; `screen` prints instead.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod authorized;
mod commands;
mod credentials;
mod dashboard;
mod data_dirs;
mod exit;
mod expect;
mod far_end;
mod file_servers;
mod fit;
mod foreign;
mod history_thread;
mod json_lines;
mod json_text;
mod key_files;
mod keyboard;
mod known_servers;
mod logging;
mod os_error;
mod pages;
mod proxies;
mod record_file;
mod report;
mod running;
mod screen;
mod secret_file;
mod speaker;

use std::process::ExitCode;

use goodput_compat::programs;

fn main() -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(program) = words.first().and_then(|name| programs::called_as(name)) {
        logging::begin(0);
        let exit = commands::old_names::act_as(program, &words[1..], false);
        return exit.printed(screen::finish()).into();
    }
    let exit = args::Cli::from_words(std::env::args_os()).map_or_else(exit::not_run, |cli| {
        logging::begin(cli.verbose);
        commands::run(cli)
    });
    // The output comes before the error message.
    let complete = screen::finish();
    exit.unwrap_or_else(|error| exit::explain(&error)).printed(complete).into()
}
