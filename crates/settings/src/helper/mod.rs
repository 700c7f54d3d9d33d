//! The settings helper: a process that keeps the privileges which a server gives up, and does one thing
//! with them, the setting requests of that server's clients.
//!
//! It believes the server nothing: each request is parsed strictly and checked again. It has a journal and
//! a guard for each client, as every run has, and puts everything back when the server is gone.

mod client;
mod main;
mod message;

pub use client::Helper;
pub use main::helper_main;
pub use message::{Answer, Refusal, Request, Work};

#[cfg(test)]
mod tests;
