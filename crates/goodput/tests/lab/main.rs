//! The program on virtual hosts: every built-in scenario against its expected verdict, settings
//! put back after every kind of end or saved as asked, how-tos, probes that split what looks alike, what a watch says of
//! changes, latency and rates without loss.
//!
//! `neighbours` says which tests run beside each other. Needs network namespaces, which root may make, and others if
//! the kernel lets them.

mod changes;
mod confirmed;
mod crossed;
mod disturbed;
mod fleet;
mod howtos;
#[path = "../common/journals.rs"]
mod journals;
mod kept;
#[path = "../common/kept.rs"]
mod kept_records;
mod latency;
mod long_path;
mod majority;
#[path = "../common/namespace.rs"]
mod namespace;
mod neighbours;
mod probes;
mod put_back;
mod raw_frames;
mod retried;
mod scenarios;
mod server_limit;
mod shaping;
mod shaping_classes;
mod shaping_elsewhere;
mod shaping_judged;
mod slow_back;
mod stage;
mod turns;
mod verbs;
mod watched_cpu;

use std::process::ExitCode;

use libtest_mimic::Arguments;

use neighbours::Test;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let tests = match goodput_lab::privilege::enter() {
        // The longest first, so that others run beside them to the end.
        Ok(_) => verbs::all()
            .into_iter()
            .chain(scenarios::all())
            .chain(put_back::all())
            .chain(confirmed::all())
            .chain(crossed::all())
            .chain(changes::all())
            .chain(watched_cpu::all())
            .chain(probes::all())
            .chain(latency::all())
            .chain(server_limit::all())
            .chain(slow_back::all())
            .chain(long_path::all())
            .chain(fleet::all())
            .chain(raw_frames::all())
            .chain(retried::all())
            .chain(turns::all())
            .chain(kept::all())
            .chain(howtos::all())
            .chain(shaping::all())
            .chain(shaping_classes::all())
            .chain(shaping_elsewhere::all())
            .chain(shaping_judged::all())
            .chain(disturbed::all())
            .chain(majority::all())
            .chain(neighbours::all())
            .collect(),
        Err(why) => vec![Test::skipped("lab", why.to_string())],
    };
    neighbours::run_all(&arguments, tests)
}
