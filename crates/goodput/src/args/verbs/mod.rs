//! The verbs, and what each takes besides the options of a measurement. One file a verb.

mod ceiling;
mod check;
mod compare;
mod generate;
mod history;
mod key;
mod lab;
mod list;
mod old_names;
mod report;
mod serve;
mod settings;
mod shaping;
mod test;
mod tune;

use clap::Subcommand;

pub use ceiling::CeilingArgs;
pub use check::CheckArgs;
pub use compare::{Combination, CompareArgs, ComparisonArgs};
pub use generate::Generate;
pub use history::HistoryArgs;
pub use key::KeyArgs;
pub use lab::Lab;
pub use list::{ListArgs, Listed, Narrowed};
pub use old_names::AsArgs;
pub use report::ReportArgs;
pub use serve::{ServeArgs, ServedFileArgs, WhenBusy};
pub use settings::{AtArgs, Settings};
pub use shaping::ShapingArgs;
pub use test::TestArgs;
pub use tune::TuneArgs;

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Answer clients
    Serve(Box<ServeArgs>),
    /// Measure a path, then say what limits it
    Test(Box<TestArgs>),
    /// Prove a change: interleaved runs, statistics, always put back
    Compare(Box<CompareArgs>),
    /// Try what could help, prove what does, and put everything back
    Tune(Box<TuneArgs>),
    /// Test whether a shaper or a line gives its rate, and what it does to bursts
    Shaping(Box<ShapingArgs>),
    /// Find what could limit this host, from its settings and counters, without traffic
    Check(CheckArgs),
    /// Compute how fast a path could be at best, with the arithmetic
    Ceiling(Box<CeilingArgs>),
    /// Read and change settings; undo what an interrupted run left
    #[command(subcommand)]
    Settings(Settings),
    /// Run virtual hosts and links on this machine, with faults on demand
    #[command(subcommand)]
    Lab(Lab),
    /// List, show and compare earlier results
    History(HistoryArgs),
    /// Draw earlier results: a page that opens anywhere, or pictures for a ticket
    Report(ReportArgs),
    /// Make a private key, and print the line for a server's file of authorized keys
    Key(KeyArgs),
    /// Act as iperf3, iperf, nuttcp or ttcp, with their options and their output
    As(AsArgs),
    /// List what goodput knows
    List(ListArgs),
    /// Explain anything by name: a rule, setting, scenario, field of the record
    ///
    /// Also checks, probes, bounds, movers, protocols, formats, faults of the lab, and sources of facts.
    Explain {
        /// The name, as in `goodput list`, a report or a record
        name: String,
    },
    /// Show the whole loop here: plant a fault, find it, prove the fix, put it back
    Demo,
    /// Generate shell completions, man pages and reference documents
    #[command(subcommand)]
    Generate(Generate),
}
