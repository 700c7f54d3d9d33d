//! Measures how often goodput is right: `goodput-campaigns truth | corpus | tuning | same | shapers | changes |
//! kills`, which `cargo xtask` starts under the same names.
#![forbid(unsafe_code)]

mod changes;
mod corpus;
mod judge_again;
mod kept;
mod kills;
mod lab_program;
mod options;
mod part;
mod random;
mod ratio;
mod same;
mod shapers;
mod side_by_side;
mod truth;
mod tuning;
mod wilson;

use std::process::ExitCode;

use clap::Parser;

/// Measures how often goodput is right.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// Runs the lab's scenarios and says how often the diagnosis is right.
    Truth(truth::Options),
    /// Judges the kept runs of random faults again, fits the weights of probabilities, and writes docs/corpus.md.
    Corpus(corpus::Options),
    /// Tunes paths with faults and healthy ones in the lab, and says how often that came out right.
    Tuning(tuning::Options),
    /// Compares what is the same, and says how often that came out as different.
    Same(same::Options),
    /// Tests shapers that are drawn at random, and says how often the answers are right.
    Shapers(shapers::Options),
    /// Plants changes of paths that are watched, and says how often the cause is named.
    Changes(changes::Options),
    /// Kills runs that change settings, and compares the whole network namespace each time.
    Kills(kills::Options),
}

fn main() -> ExitCode {
    let outcome = match Task::parse() {
        Task::Truth(options) => truth::run(&options),
        Task::Corpus(options) => corpus::run(&options),
        Task::Tuning(options) => tuning::run(&options),
        Task::Same(options) => same::run(&options),
        Task::Shapers(options) => shapers::run(&options),
        Task::Changes(options) => changes::run(&options),
        Task::Kills(options) => kills::run(&options),
    };
    goodput_tools::exit(outcome)
}
