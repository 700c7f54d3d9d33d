//! `qdisc.fifo.limit`: the length of a plain queue.

use crate::machine::FifoLimit;
use crate::permanent::{in_bytes, network_file};
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
    permanent: |setting, value| {
        let limit = in_bytes(value);
        let section = format!("[PFIFO]\nPacketLimit={limit}\n# or [BFIFO] with LimitBytes={limit}");
        vec![network_file(setting, &section)]
    },
    backend: Backend::Machine(&FifoLimit),
};
