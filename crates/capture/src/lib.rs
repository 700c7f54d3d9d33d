//! The headers of a test's packets, as they pass a device of this host: kept for the report, and written to a file that
//! Wireshark reads.
//!
//! Only headers of packets between this host and the target are captured. Their times are the kernel's:
//! outgoing packets have them when they leave the queueing discipline for the device, and incoming ones when the device's
//! driver hands them over. A capture changes nothing, but takes CAP_NET_RAW. A server has a helper process for that, and
//! captures some flows alone.
// A library returns its results. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod block;
mod capture;
mod error;
mod filter;
mod flows;
pub mod helper;
pub mod packet;
pub mod pcapng;
mod ring;
mod taking;

pub use capture::{Capture, Captured, Wanted};
pub use error::CaptureError;
pub use flows::{FlowCapture, FlowCaptured, FlowPorts, OpenedCapture};
pub use helper::CaptureHelper;
pub use packet::Packet;

/// What is kept of each packet, bytes: the longest headers of IPv4 and TCP (60 each), or of IPv6 and TCP (40 and 60).
pub const SNAP_BYTES: u32 = 128;
