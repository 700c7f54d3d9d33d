//! `route.mtu`: the path MTU of a route.

use crate::machine::route::MTU;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "route.mtu",
    title: "path MTU of a route",
    why: "If the path's MTU is below the device's and nobody reports it, larger packets vanish.",
    scope: Scope::Route,
    values: "bytes, or default for what path MTU discovery finds",
    example: "route.mtu@192.0.2.0/24=default,1400",
    unset: Some(value::DEFAULT),
    permanent: AT_BOOT,
    backend: Backend::Machine(&MTU),
};
