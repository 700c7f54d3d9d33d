//! `route.rto_min`: the smallest retransmission time-out of a route.

use crate::machine::route::RTO_MIN;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "route.rto_min",
    title: "smallest retransmission time-out of a route",
    why: "Even if the round-trip time is far below 200 ms, a lost tail costs 200 ms.",
    scope: Scope::Route,
    values: "milliseconds, or default for 200",
    example: "route.rto_min@192.0.2.0/24=default,20",
    unset: Some(value::DEFAULT),
    permanent: AT_BOOT,
    backend: Backend::Machine(&RTO_MIN),
};
