//! `route.advmss`: the maximum segment size that a route advertises.

use crate::machine::route::ADVMSS;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "route.advmss",
    title: "maximum segment size advertised on a route",
    why: "The other end sends no larger segments, so they fit a path with a smaller MTU than its device.",
    scope: Scope::Route,
    values: "bytes, or default for the MTU minus 40",
    example: "route.advmss@192.0.2.0/24=default,1360",
    unset: Some(value::DEFAULT),
    permanent: AT_BOOT,
    backend: Backend::Machine(&ADVMSS),
};
