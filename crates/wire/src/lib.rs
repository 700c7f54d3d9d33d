//! Protocols as pure state machines: bytes and time in, actions out. No sockets, no clock.
#![forbid(unsafe_code)]

pub mod error;
pub mod session;
