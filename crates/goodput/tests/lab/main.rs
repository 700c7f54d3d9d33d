//! The program on virtual hosts: every built-in scenario against its expected verdict, settings
//! put back after every kind of end, probes that split what looks alike, latency and rates without loss.
//!
//! One test at a time: several would share the CPUs that they measure. Needs network namespaces,
//! which root may make, and others if the kernel lets them.

mod disturbed;
mod latency;
#[path = "../common/namespace.rs"]
mod namespace;
mod probes;
mod put_back;
mod retried;
mod scenarios;
#[path = "../common/skip.rs"]
mod skip;
mod slow_back;
mod stage;
mod turns;
mod verbs;

use std::process::ExitCode;

use libtest_mimic::Arguments;

use skip::needs;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let tests = match goodput_lab::privilege::enter() {
        Ok(_) => scenarios::all()
            .into_iter()
            .chain(put_back::all())
            .chain(probes::all())
            .chain(latency::all())
            .chain(slow_back::all())
            .chain(retried::all())
            .chain(turns::all())
            .chain(verbs::all())
            .chain(disturbed::all())
            .collect(),
        Err(why) => vec![needs("lab", why.to_string())],
    };
    libtest_mimic::run(&arguments, tests).exit_code()
}
