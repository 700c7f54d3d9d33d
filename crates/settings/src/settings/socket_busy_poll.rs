//! `socket.busy_poll`: polling the device from the data sockets.

use crate::permanent::application;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "socket.busy_poll",
    title: "time that a data socket polls its device",
    why: "A reader that polls the device itself saves the interrupt and the wake-up, which shortens delays and costs a CPU; older kernels want CAP_NET_ADMIN for more than net.core.busy_read.",
    scope: Scope::Plan,
    values: "microseconds from 0 to 1000000, or default for sysctl net.core.busy_read",
    example: "socket.busy_poll=default,50",
    unset: Some(value::DEFAULT),
    permanent: |_, value| {
        application(match value {
            value::DEFAULT => "no setsockopt(SO_BUSY_POLL)".into(),
            value => format!("setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL, {value})"),
        })
    },
    backend: Backend::Plan(|plan, setting, value| {
        plan.socket.busy_poll_us =
            value::or_default(value, |v| value::number(setting, v, &(0..=1_000_000)))?;
        Ok(())
    }),
};
