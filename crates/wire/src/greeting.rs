//! What the connecting side of a UDP flow sends and receives before payload. Any of these datagrams may be lost. Pure.

use std::time::Duration;

use crate::ticket::FlowTicket;

/// The greeting of one flow.
pub trait Greeting {
    /// An unanswered message is sent again after this time.
    fn repeat(&self) -> Duration;

    /// The next step after a datagram; `None` at the beginning, and whenever nothing arrived for [`Greeting::repeat`].
    fn hear(&mut self, heard: Option<&[u8]>) -> GreetingStep;
}

/// The greeting that a flow begins with, if any; or why the flow can't begin.
pub type Greeted = Result<Option<Box<dyn Greeting>>, &'static str>;

/// The next step after a datagram, or after none.
#[derive(Debug, PartialEq, Eq)]
pub enum GreetingStep {
    /// Send this.
    Say(Vec<u8>),
    /// Keep listening.
    Nothing,
    /// The datagram was the answer.
    Done,
    /// The answer was lost or overtaken: the datagram is payload.
    Payload,
}

/// The greeting of protocols whose flows begin with payload, or with a marker that belongs to it.
pub fn none(_: &FlowTicket) -> Greeted {
    Ok(None)
}
