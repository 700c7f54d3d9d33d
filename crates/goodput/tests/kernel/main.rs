//! What only a kernel and devices other than the build machine's can host: cards with rings and channels, netem
//! below the lab, queueing disciplines of every kind.
//!
//! `cargo xtask test kernel` runs it as root of a virtual machine, which says so in its environment. Anywhere else
//! there is nothing to run: these tests change the cards of the machine that they run on. The machine is emulated
//! and slow, so nothing here is judged by its speed.

mod cards;
mod netem;
mod nfs;
mod paced;
mod program;
mod queues;
mod victim;

use std::process::ExitCode;

use libtest_mimic::Arguments;

/// Which kernel the guest has; no variable, no guest.
const GUEST: &str = "GOODPUT_GUEST";

fn main() -> ExitCode {
    if let Some(code) = victim::play_a_part() {
        return code;
    }
    let mut arguments = Arguments::from_args();
    // The tests share the cards.
    arguments.test_threads = Some(1);
    let tests = match std::env::var_os(GUEST) {
        Some(_) => cards::all()
            .into_iter()
            .chain(queues::all())
            .chain(netem::all())
            .chain(nfs::all())
            .chain(paced::all())
            .collect(),
        None => Vec::new(),
    };
    libtest_mimic::run(&arguments, tests).exit_code()
}
