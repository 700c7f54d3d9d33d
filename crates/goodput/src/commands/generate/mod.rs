//! `goodput generate`: everything that is generated from the command line's definition, the
//! registries and the types.

mod cli;
mod reference;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::args::{Cli, Generate};
use crate::exit::Exit;
use crate::screen;

/// Carries out one of the subcommands.
pub fn run(what: Generate) -> Result<Exit> {
    match what {
        Generate::Completions { shell } => {
            // clap's generator panics if it can't write, so it does not write to the screen.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "goodput", &mut script);
            screen::print(&String::from_utf8(script)?)?;
        }
        Generate::Man { directory } => man(&directory)?,
        Generate::Schema => screen::line(schema()?)?,
        Generate::Reference { directory } => reference::write(&directory)?,
    }
    Ok(Exit::Fine)
}

/// One page per verb, and one for the whole program.
fn man(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("can't make {}", directory.display()))?;
    clap_mangen::generate_to(Cli::command(), directory)
        .with_context(|| format!("can't write man pages to {}", directory.display()))
}

/// The JSON Schema of a record.
fn schema() -> Result<String> {
    Ok(serde_json::to_string_pretty(&schemars::schema_for!(goodput_model::Record))?)
}

/// The JSON Schema of the output of `goodput check --json`.
fn check_schema() -> Result<String> {
    Ok(serde_json::to_string_pretty(&schemars::schema_for!(goodput_model::CheckReport))?)
}

/// The JSON Schema of the output of `goodput ceiling --json`.
fn ceiling_schema() -> Result<String> {
    Ok(serde_json::to_string_pretty(&schemars::schema_for!(goodput_model::CeilingReport))?)
}
