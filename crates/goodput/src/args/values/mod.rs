//! Values as typed, and what they become. One file a kind.

pub mod calendar;
pub mod frequency;
pub mod local;
pub mod path;
pub mod per_second;
pub mod percent;
pub mod pin;
pub mod rate;
pub mod resolve;
pub mod size;
pub mod source_ports;
pub mod spoken;
pub mod steps;
pub mod time;
