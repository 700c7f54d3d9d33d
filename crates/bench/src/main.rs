//! Measures goodput itself: `goodput-bench bench | crowd | soak | views`, which `cargo xtask` starts under the same names.
#![forbid(unsafe_code)]

mod bench;
mod crowd;
mod soak;
mod views;

use std::process::ExitCode;

use clap::Parser;

/// Measures goodput itself.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// Measures goodput side by side with its peers and writes docs/performance.md.
    Bench(bench::Options),
    /// Measures what a crowd of hostile clients leaves to an honest client.
    Crowd(crowd::Options),
    /// Lets clients come and go for a while, and says whether the server grows.
    Soak(soak::Options),
    /// Measures what it costs to look: a page, a list, every connection, a whole terminal.
    Views(views::Options),
}

fn main() -> ExitCode {
    let outcome = match Task::parse() {
        Task::Bench(options) => bench::run(&options),
        Task::Crowd(options) => crowd::run(&options),
        Task::Soak(options) => soak::run(&options),
        Task::Views(options) => views::run(&options),
    };
    goodput_tools::exit(outcome)
}
