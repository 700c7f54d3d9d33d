//! Joins the parts: one test, one comparison, the serving side. What an embedder would call; its
//! events and records are the contract, not the terminal's text.
#![forbid(unsafe_code)]

mod acknowledged;
pub mod attach;
mod budget;
mod check;
pub mod client;
mod clock;
pub mod compare;
pub mod conclude;
mod conversation;
mod credentials;
mod dial;
mod doubts;
pub mod error;
pub mod events;
mod far_totals;
mod find_rate;
mod interrupt;
mod intervals;
mod joined;
pub mod keeping;
mod kept;
mod latency;
pub mod measurement;
mod movers;
mod near;
mod observe;
mod open;
mod outcome;
pub mod probe;
mod retry;
mod sampler;
mod seating;
pub mod serve;
mod spread;
mod storage;
pub mod target;
mod traffic;

pub use attach::{AttachRequest, AttachTo, attach};
pub use check::check;
pub use client::Client;
pub use conclude::{Conclusion, conclude, conclude_at_least};
pub use credentials::{Credentials, OwnKey, Servers};
pub use error::EngineError;
pub use events::{Event, Listener};
pub use find_rate::{FindRateRequest, find_rate};
pub use goodput_mover::run_promptly;
pub use interrupt::{Interrupt, Raise, interrupt};
pub use measurement::{Incomplete, Measurement};
pub use storage::StorageError;
pub use target::Target;
