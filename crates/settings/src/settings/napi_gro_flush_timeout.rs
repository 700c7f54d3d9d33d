//! `napi.gro_flush_timeout`: when a device is polled again without an interrupt.

use crate::machine::GRO_FLUSH_TIMEOUT;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "napi.gro_flush_timeout",
    title: "time to the next poll without an interrupt",
    why: "Deferred interrupts need this timeout; it also joins received segments of several polls, and delays them by this time.",
    scope: Scope::Device,
    values: "nanoseconds, 0 for none",
    example: "napi.gro_flush_timeout@eth0=0,20000",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&GRO_FLUSH_TIMEOUT),
};
