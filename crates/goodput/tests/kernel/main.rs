//! What only a kernel and devices other than the build machine's can host: cards with rings and channels, netem
//! below the lab, queueing disciplines of every kind, parameters of the whole host.
//!
//! `cargo xtask test kernel` runs it as root of a virtual machine, which says so in its environment. Anywhere else
//! there is nothing to run: these tests change the cards of the machine that they run on. The machine is emulated
//! and slow, so nothing here is judged by its speed.

mod cards;
#[path = "../common/journals.rs"]
mod journals;
mod netem;
mod nfs;
mod paced;
mod parameters;
mod program;
mod queues;
mod shapers;
mod victim;

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use libtest_mimic::{Arguments, Failed, Trial};

/// Which kernel the guest has; no variable, no guest.
const GUEST: &str = "GOODPUT_GUEST";

fn main() -> ExitCode {
    if let Some(code) = victim::play_a_part() {
        return code;
    }
    let mut arguments = Arguments::from_args();
    let Some(_) = std::env::var_os(GUEST) else {
        return libtest_mimic::run(&arguments, Vec::new()).exit_code();
    };
    let (cards, servers) = (cards::all(), nfs::all());
    // Those that wait for their turn take no thread from the others.
    arguments.test_threads = Some(cards.len() + servers.len());
    let tests = cards.into_iter().chain(servers).chain(queues::all());
    let tests = tests.chain(netem::all()).chain(paced::all()).chain(parameters::all());
    let tests = tests.chain(shapers::all()).collect();
    libtest_mimic::run(&arguments, tests).exit_code()
}

/// A test that uses what the guest has once, one after the other with all that name the same `turn`. All others have
/// network namespaces of their own, and run beside each other.
fn in_turn(
    turn: &'static Mutex<()>,
    name: impl Into<String>,
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    Trial::test(name, move || {
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        test()
    })
}
