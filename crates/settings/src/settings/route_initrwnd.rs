//! `route.initrwnd`: the initial receive window of connections over a route.

use crate::machine::route::INITRWND;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "route.initrwnd",
    title: "initial receive window of a route",
    why: "A sender can't begin with more than the receiver first advertises.",
    scope: Scope::Route,
    values: "segments, or default",
    example: "route.initrwnd@192.0.2.0/24=default,40",
    unset: Some(value::DEFAULT),
    permanent: AT_BOOT,
    backend: Backend::Machine(&INITRWND),
};
