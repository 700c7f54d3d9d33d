//! What developers and CI run: `cargo xtask test | docs | bench | crowd | soak | views | truth | corpus | tuning | same |
//! shapers | changes | peers | new | advisories | fuzz | kernel | kills | package`.
#![forbid(unsafe_code)]

mod docs;
mod documents;
mod entries_apart;
mod failures;
mod fuzz;
mod kernel;
mod layering;
mod method_circles;
mod module_circles;
mod module_layers;
mod module_uses;
mod new;
mod other_programs;
mod package;
mod peers;
mod rust_source;
mod supply;
mod tally;
mod test;
mod test_binaries;
mod tidy;
mod transcript;

use std::process::ExitCode;

use clap::Parser;
use other_programs::{Arguments, BENCH, CAMPAIGNS};

/// What developers and CI run.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// Everything CI runs: format, lints, tests, generated documents, layering.
    Test(test::Options),
    /// The step `tidy` of `test` alone: files, names and words.
    Tidy,
    /// The step `layering` of `test` alone: who may use whom.
    Layering,
    /// The step `supply` of `test` alone: what we depend on.
    Supply,
    /// Writes the documents that the program generates about itself to docs/.
    Docs(docs::Options),
    /// Measures goodput side by side with its peers and writes docs/performance.md.
    #[command(disable_help_flag = true)]
    Bench(Arguments),
    /// Measures what a crowd of hostile clients leaves to an honest client.
    #[command(disable_help_flag = true)]
    Crowd(Arguments),
    /// Lets clients come and go for a while, and says whether the server grows.
    #[command(disable_help_flag = true)]
    Soak(Arguments),
    /// Measures what it costs to look: a page, a list, every connection, a whole terminal.
    #[command(disable_help_flag = true)]
    Views(Arguments),
    /// Runs the lab's scenarios and says how often the diagnosis is right.
    #[command(disable_help_flag = true)]
    Truth(Arguments),
    /// Judges the kept runs of random faults again, and writes docs/corpus.md.
    #[command(disable_help_flag = true)]
    Corpus(Arguments),
    /// Tunes paths with faults and healthy ones in the lab, and says how often that came out right.
    #[command(disable_help_flag = true)]
    Tuning(Arguments),
    /// Compares what is the same, and says how often that came out as different.
    #[command(disable_help_flag = true)]
    Same(Arguments),
    /// Tests shapers that are drawn at random, and says how often the answers are right.
    #[command(disable_help_flag = true)]
    Shapers(Arguments),
    /// Plants changes of paths that are watched, and says how often the cause is named.
    #[command(disable_help_flag = true)]
    Changes(Arguments),
    /// Measures with every program whose protocol goodput speaks, and writes docs/peers.md.
    Peers(peers::Options),
    /// Adds an entry to a registry: the file, and its two lines in mod.rs.
    New(new::Options),
    /// Copies the facts of the RustSec advisory list about the packages we use.
    Advisories(supply::Options),
    /// Runs every fuzz target for a while.
    Fuzz(fuzz::Options),
    /// Runs a command under the kernel of a Debian package, in a virtual machine with this host's files.
    Kernel(kernel::Options),
    /// Makes a Debian package.
    Package(package::Options),
    /// Kills runs that change settings, and compares the whole network namespace each time.
    #[command(disable_help_flag = true)]
    Kills(Arguments),
}

fn main() -> ExitCode {
    let outcome = match Task::parse() {
        Task::Test(options) => test::run(&options),
        Task::Tidy => test::run(&test::Options::only("tidy")),
        Task::Layering => test::run(&test::Options::only("layering")),
        Task::Supply => test::run(&test::Options::only("supply")),
        Task::Docs(options) => docs::run(&options),
        Task::Bench(arguments) => other_programs::run(BENCH, "bench", &arguments),
        Task::Crowd(arguments) => other_programs::run(BENCH, "crowd", &arguments),
        Task::Soak(arguments) => other_programs::run(BENCH, "soak", &arguments),
        Task::Views(arguments) => other_programs::run(BENCH, "views", &arguments),
        Task::Truth(arguments) => other_programs::run(CAMPAIGNS, "truth", &arguments),
        Task::Corpus(arguments) => other_programs::run(CAMPAIGNS, "corpus", &arguments),
        Task::Tuning(arguments) => other_programs::run(CAMPAIGNS, "tuning", &arguments),
        Task::Same(arguments) => other_programs::run(CAMPAIGNS, "same", &arguments),
        Task::Shapers(arguments) => other_programs::run(CAMPAIGNS, "shapers", &arguments),
        Task::Changes(arguments) => other_programs::run(CAMPAIGNS, "changes", &arguments),
        Task::Peers(options) => peers::run(&options),
        Task::New(options) => new::run(&options),
        Task::Advisories(options) => supply::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Kernel(options) => kernel::run(&options),
        Task::Package(options) => package::run(&options),
        Task::Kills(arguments) => other_programs::run(CAMPAIGNS, "kills", &arguments),
    };
    goodput_tools::exit(outcome)
}
