//! `socket.cork`: whole segments only, until a transfer is over.

use goodput_model::Plan;

use crate::permanent::application;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "socket.cork",
    title: "TCP_CORK on the data sockets, from before each transfer to its end",
    why: "A header that is written before a file leaves in a segment of its own without it.",
    scope: Scope::Plan,
    values: "on, off, or default",
    example: "socket.cork=on,off",
    unset: Some(value::DEFAULT),
    permanent: |_, value| match value {
        "on" => application("setsockopt(fd, IPPROTO_TCP, TCP_CORK, 1) before, 0 behind each file"),
        _ => Vec::new(),
    },
    backend: Backend::Plan(|plan, setting, value| {
        let on = value::or_default(value, |v| value::switch(setting, v))?;
        plan.socket.cork = on.unwrap_or(Plan::standard().socket.cork);
        Ok(())
    }),
};
