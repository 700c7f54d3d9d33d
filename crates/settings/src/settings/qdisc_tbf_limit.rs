//! `qdisc.tbf.limit`: the queue in front of a token bucket.

use crate::machine::LIMIT;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "qdisc.tbf.limit",
    title: "queue of the device's token bucket filter",
    why: "A queue shorter than the sender's bursts drops packets; a long one delays them.",
    scope: Scope::Device,
    values: "a size in bytes like 64K, at least one whole packet",
    example: "qdisc.tbf.limit@eth0=30K,300K",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&LIMIT),
};
