//! Where results are printed: standard output, unless it takes the payload (`--sink -`).

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use goodput_model::{Direction, Plan};

static TAKEN: AtomicBool = AtomicBool::new(false);

/// Leaves standard output to the payload, where `plan` says so; results go to standard error then.
pub fn leave_to_payload(plan: &Plan) {
    let sink = plan.storage.sink.as_ref().is_some_and(|sink| sink.name == "-");
    TAKEN.store(sink && plan.direction == Direction::Reverse, Ordering::Relaxed);
}

/// Prints a part of a result.
pub fn print(text: &str) -> io::Result<()> {
    if TAKEN.load(Ordering::Relaxed) {
        return write!(anstream::stderr(), "{text}");
    }
    let mut out = anstream::stdout();
    write!(out, "{text}").and_then(|()| out.flush())
}
