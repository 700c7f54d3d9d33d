//! Stands in for other programs: their command lines, and their output.
//!
//! ```text
//! programs  a table for each program that maps its options to goodput's
//! formats   a file for each format that prints a measurement as a program would
//! ```
#![forbid(unsafe_code)]
// A library returns its output. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod formats;
pub mod programs;
