//! One file per verb.

mod ceiling;
mod cells;
mod check;
mod compare;
mod demo;
mod explain;
mod file_parts;
mod find_rate;
mod fleet;
mod generate;
mod history;
mod keep_all;
mod key;
mod lab;
mod list;
mod measured;
mod metered;
mod notifier;
pub mod old_names;
mod open_metrics;
mod path_changes;
mod remote_settings;
mod report;
mod rounding;
mod saved;
mod serve;
mod serve_cost;
mod serve_metrics;
mod serve_results;
mod served;
mod settings;
mod shaping;
mod shaping_timer;
mod spent;
mod test;
mod third_party;
mod timed;
mod top;
mod tune;
mod unprivileged;
mod watch;
mod web;

use anyhow::Result;
use goodput_engine::serve::capture_helper_main;

use crate::args::{Cli, Command};
use crate::data_dirs;
use crate::exit::Exit;

/// Carries the command out.
pub fn run(cli: Cli) -> Result<Exit> {
    if let Err(cause) = goodput_mover::raise_open_files() {
        tracing::warn!("can't raise the limit on open files: {cause}");
    }
    data_dirs::choose_history(cli.store)?;
    let (state_dir, verbose) = (cli.state_dir, cli.verbose > 0);
    match cli.command {
        Command::Serve(args) => serve::run(*args, state_dir),
        Command::Test(args) => test::run(*args, state_dir, verbose),
        Command::Compare(args) => compare::run(*args, state_dir),
        Command::Tune(args) => tune::run(*args, state_dir),
        Command::Shaping(args) => shaping::run(&args, state_dir),
        Command::Watch(args) => watch::run(&args, state_dir),
        Command::Fleet(what) => fleet::run(&what, state_dir),
        Command::Check(args) => check::run(&args, state_dir, verbose),
        Command::Top(args) => top::run(&args),
        Command::Ceiling(args) => ceiling::run(&args),
        Command::Settings(what) => settings::run(what, state_dir),
        Command::Lab(what) => lab::run(what),
        Command::History(args) => history::run(&args, verbose),
        Command::Report(args) => report::run(&args),
        Command::Web(args) => web::run(&args, state_dir),
        Command::Key(args) => key::run(&args),
        Command::As(args) => old_names::run(&args),
        Command::List(args) => list::run(&args),
        Command::Explain { name } => explain::run(&name),
        Command::Demo => demo::run(),
        Command::Generate(what) => generate::run(what),
        Command::CaptureHelper => match capture_helper_main() {
            0 => Ok(Exit::Fine),
            _ => Ok(Exit::CouldNot),
        },
    }
}
