//! `napi.threaded`: whether a device is polled by threads.

use crate::machine::Threaded;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "napi.threaded",
    title: "polling by kernel threads instead of soft interrupts",
    why: "Threads are scheduled like any other work, so they can move from a busy CPU to another.",
    scope: Scope::Device,
    values: "on or off",
    example: "napi.threaded@eth3=off,on",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&Threaded),
};
