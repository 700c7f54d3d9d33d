//! `socket.congestion`: the congestion control of the data sockets.

use crate::permanent::application;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "socket.congestion",
    title: "congestion control of the data sockets",
    why: "The sender's reaction to loss and delay decides its rate through short queues and on lossy paths.",
    scope: Scope::Plan,
    values: "a name from /proc/sys/net/ipv4/tcp_available_congestion_control, or default",
    example: "socket.congestion=cubic,bbr",
    unset: Some(value::DEFAULT),
    permanent: |_, value| {
        application(if value == value::DEFAULT {
            "no setsockopt(TCP_CONGESTION): net.ipv4.tcp_congestion_control then applies".into()
        } else {
            format!("setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, \"{value}\") before connect(2)")
        })
    },
    backend: Backend::Plan(|plan, setting, value| {
        plan.socket.congestion =
            value::or_default(value, |v| value::word(setting, v, value::CONGESTION_NAME_MAX))?;
        Ok(())
    }),
};
