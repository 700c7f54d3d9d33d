//! The program against the real ones whose protocols it speaks: every cell of the matrix, both ways,
//! and what else a user of theirs would try.
//!
//! Each test has a network namespace of its own with a loopback device, so that all use the usual
//! ports at the same time. `cargo xtask peers` makes docs/peers.md of what they found.
//!
//! To add a program: a file here with a [`matrix::Peer`], and a line in [`matrix::PEERS`].

mod crowd;
mod iperf2;
mod iperf3;
mod link_local;
mod matrix;
#[path = "../common/moved.rs"]
mod moved;
mod nuttcp;
mod results;
#[path = "../common/skip.rs"]
mod skip;
mod space;
mod ttcp;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Tests at the same time, if nobody says otherwise: they compare counts, which other load on the
/// CPUs does not change.
const TOGETHER: usize = 6;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(TOGETHER);
    let tests = match goodput_lab::privilege::enter() {
        // The longest first, so that others run beside them to the end.
        Ok(_) => unpackaged().chain(together()).chain(matrix::PEERS.iter().flat_map(of)).collect(),
        Err(why) => vec![skip::needs("peers", why.to_string())],
    };
    libtest_mimic::run(&arguments, tests).exit_code()
}

/// The tests that need no other program: of one that nobody packages, and of addresses.
fn unpackaged() -> impl Iterator<Item = Trial> {
    ttcp::all().into_iter().chain(link_local::all()).map(|(name, test)| Trial::test(name, test))
}

/// The tests that need all programs.
fn together() -> Vec<Trial> {
    let missing = matrix::PEERS.iter().find(|peer| peer.version().is_none());
    match missing {
        Some(peer) => vec![skip::needs("crowd", format!("{} on the path", peer.program))],
        None => crowd::all().into_iter().map(|(name, test)| Trial::test(name, test)).collect(),
    }
}

/// The tests with one program.
fn of(peer: &'static matrix::Peer) -> Vec<Trial> {
    let Some(version) = peer.version() else {
        return vec![skip::needs(peer.id, format!("{} on the path", peer.program))];
    };
    let cells = peer.cases().into_iter().map(|case| {
        let version = version.clone();
        Trial::test(case.name(), move || results::keep(&case, &version, (peer.measure)(&case)))
    });
    let more = (peer.more)().into_iter();
    cells.chain(more.map(|(name, test)| Trial::test(format!("{}/{name}", peer.id), test))).collect()
}
