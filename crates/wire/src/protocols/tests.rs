//! The conformance suite: every protocol of the list, with client and server joined by a virtual
//! clock. A new entry is tested here before anyone writes a test for it.

mod conversations;
mod registry;
mod spoilt;

use crate::pair::{Pair, Step, client_config, server_config};
use crate::session::Protocol;
use goodput_model::Plan;

/// Both ways to hold a conversation: with the shared token and without.
const TOKENS: [Option<&str>; 2] = [None, Some("the shared one")];

fn joined(protocol: &Protocol, token: Option<&str>, steps: Vec<Step>) -> Pair {
    Pair::new(protocol, client_config(token), server_config(token), steps)
}

fn measure() -> Step {
    Step::Measure(Plan::standard())
}
