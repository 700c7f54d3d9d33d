//! `polling`: polling against interrupts, as one choice.

use crate::machine::Polling;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "polling",
    title: "polling or interrupts, as a whole",
    why: "interrupts: the device interrupts the CPU. deferred: a timer polls while there is traffic, which saves interrupts and adds up to 20 us. threaded: kernel threads poll, and the scheduler can move them. busy: waiting programs poll, which has the shortest delay but takes a whole CPU.",
    scope: Scope::Device,
    values: "interrupts, deferred, threaded or busy; mixed is read if it is none of them",
    example: "polling@eth2=interrupts,deferred",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&Polling),
};
