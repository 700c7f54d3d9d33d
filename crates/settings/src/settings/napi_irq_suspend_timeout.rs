//! `napi.irq_suspend_timeout`: how long a polling program may keep interrupts off.

use crate::machine::IrqSuspendTimeout;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "napi.irq_suspend_timeout",
    title: "time for which a busy program may keep interrupts off",
    why: "A program that prefers to poll (SO_PREFER_BUSY_POLL with epoll) is not interrupted while it is busy; after this time without a poll interrupts are on again. Linux 6.13 and later.",
    scope: Scope::Device,
    values: "nanoseconds up to 3600000000000, 0 for never",
    example: "napi.irq_suspend_timeout@eth3=0,20000000",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&IrqSuspendTimeout),
};
