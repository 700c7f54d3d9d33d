//! `route.window`: the window that a route lets its connections advertise.

use crate::machine::route::WINDOW;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "route.window",
    title: "largest window advertised on a route",
    why: "A window smaller than rate × round-trip time makes the sender wait; Linux 6.18 takes \
          only the window scale from it.",
    scope: Scope::Route,
    values: "a size in bytes like 64K, or default for no limit",
    example: "route.window@192.0.2.0/24=default,64K",
    unset: Some(value::DEFAULT),
    permanent: AT_BOOT,
    backend: Backend::Machine(&WINDOW),
};
