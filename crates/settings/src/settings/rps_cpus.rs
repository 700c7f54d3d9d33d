//! `rps.cpus`: the CPUs over which received packets are spread.

use crate::machine::RPS_CPUS;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "rps.cpus",
    title: "CPUs that received packets are spread over",
    why: "A device with one queue, or no hardware queues, keeps one CPU busy with everything it receives.",
    scope: Scope::Device,
    values: "a hexadecimal mask of CPUs (f is CPUs 0 to 3), or 0 for the CPU that was interrupted",
    example: "rps.cpus@eth0=0,1",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&RPS_CPUS),
};
