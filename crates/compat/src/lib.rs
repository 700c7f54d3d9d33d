//! In place of other programs: their command lines, and what they print.
//!
//! ```text
//! programs  a table for each program of what its options become in goodput
//! formats   a file for each format that prints a measurement as a program would
//! ```
#![forbid(unsafe_code)]

pub mod formats;
pub mod programs;
