//! `route.initcwnd`: the initial congestion window of connections over a route.

use crate::machine::route::INITCWND;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "route.initcwnd",
    title: "initial congestion window of a route",
    why: "Short transfers on long paths spend most of their time in slow start; a larger start saves round trips but risks loss in short queues (RFC 6928).",
    scope: Scope::Route,
    values: "segments, or default for 10",
    example: "route.initcwnd@192.0.2.0/24=default,30",
    unset: Some(value::DEFAULT),
    permanent: AT_BOOT,
    backend: Backend::Machine(&INITCWND),
};
