//! Protocols as pure state machines: bytes and time in, actions out. No sockets, no clock.
//!
//! What goes over the wire is specified in `docs/protocol.md`.
#![forbid(unsafe_code)]
// A library returns its messages. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod check;
pub mod clock_questions;
pub mod cookie;
pub mod datagram;
mod direct;
pub mod error;
pub mod far_end;
pub mod file_server;
mod file_target;
pub mod foreign;
pub mod frame;
pub mod greeting;
pub mod keys;
pub mod limits;
pub mod login;
pub mod mounted_file;
pub mod network;
mod outbox;
#[cfg(any(test, feature = "testing"))]
pub mod pair;
pub mod patience;
mod plain;
pub mod protocols;
pub mod session;
mod state_machine;
pub mod ticket;
pub mod token;
mod untrusted;

pub use error::WireError;
pub use session::{
    Action, ClientConfig, Cookie, Input, Limits, Output, Protocol, ServerConfig, Session,
    SettingRefusal, SettingRequest, Token,
};
pub use ticket::{FlowSetup, FlowTicket, Proof};
pub use token::TokenError;
