//! `qdisc.fifo.limit`: the length of a plain queue.

use crate::machine::FifoLimit;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "qdisc.fifo.limit",
    title: "length of the device's pfifo or bfifo queue",
    why: "A queue shorter than a burst drops part of it; a long one delays later packets.",
    scope: Scope::Device,
    values: "packets (pfifo) or bytes (bfifo)",
    example: "qdisc.fifo.limit@eth3=100,1000",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&FifoLimit),
};
