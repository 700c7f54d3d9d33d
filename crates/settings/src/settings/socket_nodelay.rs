//! `socket.nodelay`: Nagle's algorithm on the data sockets.

use goodput_model::Plan;

use crate::permanent::application;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "socket.nodelay",
    title: "TCP_NODELAY on the data sockets",
    why: "Without TCP_NODELAY a small write waits for the acknowledgement of the write before (RFC 896).",
    scope: Scope::Plan,
    values: "on, off, or default",
    example: "socket.nodelay=on,off",
    unset: Some(value::DEFAULT),
    permanent: |_, value| {
        let number = if value == "off" { 0 } else { 1 };
        application(format!("setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, {number})"))
    },
    backend: Backend::Plan(|plan, setting, value| {
        let on = value::or_default(value, |v| value::switch(setting, v))?;
        plan.socket.nodelay = on.unwrap_or(Plan::standard().socket.nodelay);
        Ok(())
    }),
};
