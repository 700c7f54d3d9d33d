//! `route.congctl`: the congestion control of connections over a route.

use crate::machine::route::CONGCTL;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "route.congctl",
    title: "congestion control of a route",
    why: "The sender's reaction to loss and delay decides its rate through short queues and on lossy paths; a route sets it for every program of the host.",
    scope: Scope::Route,
    values: "a name from /proc/sys/net/ipv4/tcp_available_congestion_control, or default",
    example: "route.congctl@192.0.2.0/24=default,reno",
    unset: Some(value::DEFAULT),
    permanent: AT_BOOT,
    backend: Backend::Machine(&CONGCTL),
};
