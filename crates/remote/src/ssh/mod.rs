//! Hosts through the system's OpenSSH client: one session, whose shell answers requests, and the dead-man there, which
//! puts settings back when the session ends.

mod client;
mod frames;
mod guard;
mod session;
mod trouble;

pub use client::Access;
pub(crate) use client::host_name;
pub(crate) use guard::{DeadMan, DeadManId, MARK};
pub use session::Session;
pub(crate) use session::{LOGIN_TIME, PROGRAM_TIME};
