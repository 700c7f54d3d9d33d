//! `xps.rxqs`: the receive queues whose flows are sent through each queue.

use crate::machine::XPS_RXQS;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "xps.rxqs",
    title: "receive queues whose flows each queue sends (XPS)",
    why: "A flow whose packets come and go through one pair of queues stays on one CPU.",
    scope: Scope::Device,
    values: "a hexadecimal mask of receive queues (f is queues 0 to 3), or 0 for none",
    example: "xps.rxqs@eth0=0,1",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&XPS_RXQS),
};
