//! Where results are printed: standard output, unless it takes the payload (`--sink -`).

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use goodput_model::{Direction, Plan};

static TAKEN: AtomicBool = AtomicBool::new(false);

/// Leaves standard output to the payload, where `plan` says so; results go to standard error then.
pub fn leave_to_payload(plan: &Plan) {
    let sink = plan.storage.sink.as_ref().is_some_and(|sink| sink.name == "-");
    TAKEN.store(sink && plan.direction == Direction::Reverse, Ordering::Relaxed);
}

/// Prints what a program reads, which has no colours to drop: to look for them took most of the time of a
/// record of many flows.
pub fn print_data(text: &str) -> io::Result<()> {
    if TAKEN.load(Ordering::Relaxed) {
        return io::stderr().write_all(text.as_bytes());
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Prints a line of a result. Unlike `println!` it never panics: a reader that has seen enough
/// (`| head`) is an error, and of a kind that ends goodput in good order.
pub fn line(text: impl Display) -> io::Result<()> {
    print(&format!("{text}\n"))
}

/// Prints a part of a result.
pub fn print(text: &str) -> io::Result<()> {
    if TAKEN.load(Ordering::Relaxed) {
        return write!(anstream::stderr(), "{text}");
    }
    let mut out = anstream::stdout();
    write!(out, "{text}").and_then(|()| out.flush())
}
