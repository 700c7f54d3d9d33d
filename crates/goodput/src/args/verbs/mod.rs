//! The verbs, and what each takes besides the options of a measurement. One file a verb.

mod ceiling;
mod check;
mod compare;
mod fleet;
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
mod top;
mod tune;
mod watch;
mod web;

use clap::Subcommand;

pub use ceiling::CeilingArgs;
pub use check::CheckArgs;
pub use compare::{Combination, CompareArgs, ComparisonArgs};
pub use fleet::{
    Fleet, FleetAgentArgs, FleetKeysArgs, FleetMatrixArgs, FleetPlanArgs, FleetRunArgs,
    FleetTestArgs, NatsArgs,
};
pub use generate::Generate;
pub use history::{
    ExportArgs, HistoryArgs, HistoryDeed, ImportArgs, Named, PruneArgs, WantedArgs, days_kept,
};
pub use key::KeyArgs;
pub use lab::Lab;
pub use list::{ListArgs, Listed, Narrowed};
pub use old_names::AsArgs;
pub use report::ReportArgs;
pub use serve::{ServeArgs, ServedFileArgs, WhenBusy};
pub use settings::{AtArgs, Settings};
pub use shaping::{
    DEFAULT_TOLERANCE_PERCENT, ProofArgs, RouterArgs, ScheduleArgs, ShaperArgs, ShapingArgs,
    TrafficArgs,
};
pub use test::TestArgs;
pub use top::{Order, TopArgs};
pub use tune::TuneArgs;
pub use watch::WatchArgs;
pub use web::WebArgs;

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
    /// Test whether a shaper gives its rate, and what it does to bursts
    Shaping(Box<ShapingArgs>),
    /// Test paths on a schedule, and say when one changed and why
    Watch(Box<WatchArgs>),
    /// Plan the tests of a mesh of hosts, and explain its slow pairs
    #[command(subcommand)]
    Fleet(Fleet),
    /// Find what could limit this host, without traffic
    ///
    /// goodput reads the host's settings and counters.
    Check(CheckArgs),
    /// Show all TCP connections of this host, by rate, with what limits each
    ///
    /// goodput reads the kernel's counters, which needs no privilege, and sends nothing. It sees this end only, and the
    /// connections of this network namespace. Of another one: `ip netns exec NAME goodput top`.
    Top(TopArgs),
    /// Compute how fast a path could be at best, with the arithmetic
    Ceiling(Box<CeilingArgs>),
    /// Read and change settings; undo what an interrupted run left
    #[command(subcommand)]
    Settings(Settings),
    /// Run virtual hosts and links on this machine, with faults on demand
    #[command(subcommand)]
    Lab(Lab),
    /// List, show, compare, export and import earlier results
    History(HistoryArgs),
    /// Draw earlier results, as a web page or as pictures for a ticket
    Report(ReportArgs),
    /// Show results, checks and settings of this host in a browser
    ///
    /// The pages are for this host's browsers, unless --listen names another address. With the token, they also start
    /// tests and put back what an interrupted run left changed.
    Web(WebArgs),
    /// Make a key that identifies you to servers
    ///
    /// goodput keeps the private key, and prints a line for the server's file of authorized keys.
    Key(KeyArgs),
    /// Act as iperf3, iperf, nuttcp or ttcp
    ///
    /// goodput takes the options of these programs, and prints what they print.
    As(AsArgs),
    /// List what goodput knows
    List(ListArgs),
    /// Explain a name: a rule, a setting, a field of the record, or others
    ///
    /// goodput explains everything that `goodput list` lists. A field of the record is found by its path, like
    /// verdict.limit, or by its name alone.
    Explain {
        /// Name from `goodput list`, from a report or from a record
        name: String,
    },
    /// Show the whole loop: plant a fault, find it, prove a fix, undo it
    Demo,
    /// Generate shell completions, man pages and reference documents
    #[command(subcommand)]
    Generate(Generate),
    /// Open packet captures for a server (started by goodput itself)
    #[command(hide = true)]
    CaptureHelper,
}
