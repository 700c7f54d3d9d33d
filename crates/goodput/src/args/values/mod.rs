//! Values as typed, and what they become. One file a kind.
//!
//! Each parser refuses a value in the same form: what it is not, and what to write instead.

use std::fmt::Display;

pub mod address;
pub mod budget;
pub mod calendar;
pub mod capture_file;
pub mod class;
pub mod dscp;
pub mod frequency;
pub mod local;
pub mod login;
pub mod mover;
pub mod number;
pub mod path;
pub mod per_second;
pub mod percent;
pub mod pin;
pub mod rate;
pub mod resolve;
pub mod router;
pub mod setting;
pub mod size;
pub mod source_ports;
pub mod spoken;
pub mod steps;
pub mod time;
pub mod when;

/// Why `text` is refused: it is not `noun`, which says what is allowed; and what to `write`, with an example.
pub fn unfit(text: &str, noun: &str, write: impl Display) -> String {
    format!("{text:?} is not {noun}; write {write}")
}
