//! One file a verb.

mod check;
mod compare;
mod demo;
mod find_rate;
mod generate;
mod history;
mod lab;
mod list;
mod measured;
mod serve;
mod served;
mod settings;
mod shim;
mod test;
mod third_party;

use anyhow::Result;

use crate::args::{Cli, Command};
use crate::exit::Exit;

/// Carries the command out.
pub fn run(cli: Cli) -> Result<Exit> {
    let state_dir = cli.state_dir;
    match cli.command {
        Command::Serve(args) => serve::run(*args, state_dir),
        Command::Test(args) => test::run(*args, state_dir),
        Command::Compare(args) => compare::run(*args, state_dir),
        Command::Check(args) => check::run(&args),
        Command::Settings(what) => settings::run(what, state_dir),
        Command::Lab(what) => lab::run(what),
        Command::History(args) => history::run(&args),
        Command::As(args) => shim::run_as(&args),
        Command::Shim(what) => shim::run(what),
        Command::List { what } => list::run(what),
        Command::Demo => demo::run(),
        Command::Generate(what) => generate::run(what),
    }
}
