//! Rules about the values of devices, which hold for this host and for hosts reached by SSH.

pub use crate::machine::device::no_device;
pub use crate::machine::link_number::mtu;
pub use crate::machine::qdisc_kind::{SETTABLE as QUEUE_KINDS, check_kind as check_queue_kind};
pub use crate::machine::shaped::{rate as shaper_rate, rate_text as shaper_rate_text};
