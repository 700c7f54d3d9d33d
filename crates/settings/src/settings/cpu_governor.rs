//! `cpu.governor`: how the frequencies of the CPUs are chosen.

use crate::machine::Governor;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "cpu.governor",
    title: "how the CPUs' frequencies are chosen",
    why: "A CPU that is idle between packets is clocked down, and the next burst meets a slow one; performance keeps it fast and costs power.",
    scope: Scope::Host,
    values: "a name that the host offers, such as performance, schedutil or powersave",
    example: "cpu.governor=performance,powersave",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&Governor),
};
