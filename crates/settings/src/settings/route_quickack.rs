//! `route.quickack`: acknowledging at once on a route.

use crate::machine::route::QUICKACK;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "route.quickack",
    title: "immediate acknowledgement of every segment on a route",
    why: "A delayed acknowledgement keeps a sender waiting that has nothing more to send (RFC 1122, 4.2.3.2).",
    scope: Scope::Route,
    values: "on, off, or default",
    example: "route.quickack@192.0.2.0/24=default,on",
    unset: Some(value::DEFAULT),
    permanent: AT_BOOT,
    backend: Backend::Machine(&QUICKACK),
};
