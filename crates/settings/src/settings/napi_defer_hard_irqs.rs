//! `napi.defer_hard_irqs`: how long polling of a device continues without interrupts.

use crate::machine::DEFER_HARD_IRQS;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "napi.defer_hard_irqs",
    title: "empty polls before interrupts are on again",
    why: "With a flush time-out a timer polls a busy device instead of interrupts: Linux's equivalent of FreeBSD's polling(4).",
    scope: Scope::Device,
    values: "times, 0 for never",
    example: "napi.defer_hard_irqs@eth0=0,2",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&DEFER_HARD_IRQS),
};
