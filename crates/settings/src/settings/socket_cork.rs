//! `socket.cork`: whole segments only, until a transfer is over.

use goodput_model::Plan;

use crate::permanent::application;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "socket.cork",
    title: "TCP_CORK on the data sockets, for the whole of each transfer",
    why: "Without TCP_CORK a header written before a file leaves in its own segment.",
    scope: Scope::Plan,
    values: "on, off, or default",
    example: "socket.cork=on,off",
    unset: Some(value::DEFAULT),
    permanent: |_, value| match value {
        "on" => application("setsockopt(fd, IPPROTO_TCP, TCP_CORK, 1) before, 0 after each file"),
        _ => Vec::new(),
    },
    backend: Backend::Plan(|plan, setting, value| {
        let on = value::or_default(value, |v| value::switch(setting, v))?;
        plan.socket.cork = on.unwrap_or(Plan::standard().socket.cork);
        Ok(())
    }),
};
