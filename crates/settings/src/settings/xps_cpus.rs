//! `xps.cpus`: the CPUs that send through each queue.

use crate::machine::XPS_CPUS;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "xps.cpus",
    title: "CPUs that send through each queue (XPS)",
    why: "CPUs that share a send queue wait for its lock; a queue for each keeps them apart, and its completions on the CPU that sent.",
    scope: Scope::Device,
    values: "a hexadecimal mask of CPUs (f is CPUs 0 to 3), or 0 for any",
    example: "xps.cpus@eth0=0,1",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&XPS_CPUS),
};
