//! `irq.affinity`: the CPUs to which the interrupts of a device may go.

use crate::machine::Affinity;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "irq.affinity",
    title: "CPUs that a device's interrupts go to",
    why: "A CPU that handles the interrupts of several queues, or a busy program too, is the first to be full. If the CPU is on another memory node than the device, every packet crosses between the nodes.",
    scope: Scope::Device,
    values: "CPUs like 0-3,8 for all interrupts, or one list for each, or spread for a CPU each",
    example: "irq.affinity@eth0=0,1",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&Affinity),
};
