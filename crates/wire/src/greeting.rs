//! What the connecting side of a UDP flow says before payload, and hears. Any datagram of it may be lost. Pure.

use std::time::Duration;

use crate::ticket::FlowTicket;

/// The greeting of one flow.
pub trait Greeting {
    /// After which what was said is said again, if nothing is heard.
    fn repeat(&self) -> Duration;

    /// What follows from a datagram; `None` in the beginning, and whenever nothing came for
    /// [`Greeting::repeat`].
    fn hear(&mut self, heard: Option<&[u8]>) -> GreetingStep;
}

/// The greeting that a flow begins with, if any; or why it can't.
pub type Greeted = Result<Option<Box<dyn Greeting>>, &'static str>;

/// What follows from a datagram, or from none.
#[derive(Debug, PartialEq, Eq)]
pub enum GreetingStep {
    /// Send this.
    Say(Vec<u8>),
    /// Listen on.
    Nothing,
    /// That was the answer.
    Done,
    /// The answer was lost or overtaken: this is payload already.
    Payload,
}

/// The greeting of protocols whose flows begin with payload, or with a marker that belongs to it.
pub fn none(_: &FlowTicket) -> Greeted {
    Ok(None)
}
