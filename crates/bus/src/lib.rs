//! What goodput asks of NATS and its JetStream, and nothing else: keys that expire, a queue of work, outcomes that are
//! written once, questions with an answer, and news.
//!
//! ```text
//! Keys      create, update, entry, hear, …    a name is held by one; a task is begun by one
//! Queue     put ──▶ Inbox ──▶ Delivery        each delivery comes again until it is done
//! Outcomes  put_once, get, hear               one for each id, whoever is first
//! Bus       ask ──▶ Questions, tell             without storage
//! Seed      sign ──▶ Public                     who is who
//! streams ──▶ Bus::lost                       whether what was opened is still there
//! refusals, reasons ──▶ BusError              what the server refuses, and what its words mean
//! ```
#![forbid(unsafe_code)]
// A library returns its messages. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod connect;
mod error;
mod keys;
mod outcomes;
mod queue;
mod reasons;
mod refusals;
mod seed;
mod streams;
mod talk;

pub use connect::{Bus, Proof, Server};
pub use error::BusError;
pub use keys::{Entry, Keys};
pub use outcomes::{Heard, Outcomes, Published, Room};
pub use queue::{Delivery, Inbox, Queue};
pub use refusals::{Refusal, Right};
pub use seed::{NkeyError, Public, Seed};
pub use talk::{Question, Questions};
