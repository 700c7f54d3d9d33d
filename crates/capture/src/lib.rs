//! The headers of a test's packets, as they pass a device of this host: kept for the report, and written to a file that
//! Wireshark reads.
//!
//! Only headers of packets between this host and the target are captured. Their times are the kernel's:
//! outgoing packets have them when they leave the queueing discipline for the device, and incoming ones when the device's
//! driver hands them over. A capture changes nothing, but takes CAP_NET_RAW.
// A library returns its results. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod block;
mod capture;
mod error;
mod filter;
pub mod packet;
pub mod pcapng;
mod ring;

pub use capture::{Capture, Captured, Wanted};
pub use error::CaptureError;
pub use packet::Packet;

/// What is kept of each packet, bytes: the longest headers of IPv4 and TCP (60 each), or of IPv6 and TCP (40 and 60).
pub const SNAP_BYTES: u32 = 128;
