//! `napi.threaded`: whether a device is polled by threads.

use crate::machine::Threaded;
use crate::permanent::udev_rule;
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
    permanent: |setting, value| {
        let number = u8::from(value == "on");
        vec![udev_rule(setting, &format!("ATTR{{threaded}}=\"{number}\""))]
    },
    backend: Backend::Machine(&Threaded),
};
