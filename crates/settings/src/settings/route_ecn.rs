//! `route.ecn`: congestion marks for connections over a route.

use crate::machine::route::ECN;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "route.ecn",
    title: "congestion marks on a route (features ecn)",
    why: "Routers that mark packets instead of dropping them slow a sender down without loss (RFC 3168); a route asks for marks even if the whole host does not.",
    scope: Scope::Route,
    values: "on, or default for sysctl net.ipv4.tcp_ecn",
    example: "route.ecn@192.0.2.0/24=default,on",
    unset: Some(value::DEFAULT),
    permanent: AT_BOOT,
    backend: Backend::Machine(&ECN),
};
