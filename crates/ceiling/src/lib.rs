//! The arithmetic of ceilings: how fast a path could be at best, by what is known of it.
//!
//! Pure: [`ceiling`] reads a [`goodput_model::CeilingInputs`] and nothing else. One bound is one file in
//! [`bounds`]; what differs only in numbers (tunnels, link framings, buses) is a row of a table. The
//! diagnosis computes with the same functions.
#![forbid(unsafe_code)]
// A library returns its results. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod all;
pub mod answers;
pub mod bounds;
pub mod bucket;
pub mod buses;
pub mod counting;
pub mod fit;
pub mod framings;
mod inputs;
pub mod lateness;
mod lines;
pub mod models;
mod packet;
pub mod tunnels;

pub use all::{Ceiling, MAX_EXCESS_SHARE, ceiling};
pub use fit::fit;
pub use lines::{Lines, number, rate, time};
pub use packet::{ETHERNET_HEADER_BYTES, Packet, TIMESTAMPS_BYTES, WIRE_EXTRA_BYTES};
