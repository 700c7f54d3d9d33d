//! `qdisc.tbf.burst`: the size of a token bucket.

use crate::machine::BURST;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "qdisc.tbf.burst",
    title: "bucket of the device's token bucket filter",
    why: "A bucket smaller than what the rate brings between two timer interrupts never reaches the rate; a bucket smaller than a packet passes nothing.",
    scope: Scope::Device,
    values: "a size in bytes like 16K or 125K, at least one whole packet; read back in steps of rate × 64 ns",
    example: "qdisc.tbf.burst@eth0=16K,125K",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&BURST),
};
