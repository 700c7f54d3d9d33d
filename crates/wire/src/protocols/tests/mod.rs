//! The conformance suite: every protocol of the list, with client and server joined by a virtual
//! clock. A new entry is tested here before anyone writes a test for it.
//!
//! ```text
//! registry       the list           observing  promises of protocols whose peers observe
//! keyed          clients and servers with keys of their own
//! conversations  promises of all protocols     spoilt  the same, cut short or spoilt
//! ```

mod conversations;
mod keyed;
mod observing;
mod registry;
mod spoilt;

use crate::pair::{Pair, Step, client_config, server_config};
use crate::session::Protocol;
use goodput_model::Plan;

/// Both kinds of conversation: with the shared token and without.
const TOKENS: [Option<&str>; 2] = [None, Some("the shared one")];

/// The protocols whose peers observe as goodput does.
fn observing() -> impl Iterator<Item = &'static Protocol> {
    super::ALL.iter().copied().filter(|protocol| protocol.far_end.reports)
}

/// Each of these protocols, with the shared token and without.
fn observing_with_tokens() -> impl Iterator<Item = (&'static Protocol, Option<&'static str>)> {
    observing().flat_map(|protocol| TOKENS.map(|token| (protocol, token)))
}

fn joined(protocol: &Protocol, token: Option<&str>, steps: Vec<Step>) -> Pair {
    Pair::new(protocol, client_config(token), server_config(token), steps)
}

fn measure() -> Step {
    Step::Measure(Plan::standard())
}
