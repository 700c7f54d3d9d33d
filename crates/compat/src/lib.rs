//! In place of other programs: their command lines, and what they print.
//!
//! ```text
//! programs  a table for each program of what its options become in goodput
//! formats   a file for each format that prints a measurement as a program would
//! ```
#![forbid(unsafe_code)]
// A library returns what it has to say. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod formats;
pub mod programs;
