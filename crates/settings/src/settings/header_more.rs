//! `header.more`: whether a header says that a file follows.

use crate::permanent::application;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "header.more",
    title: "MSG_MORE with the header before a file",
    why: "The header waits for the first bytes of the file, without an extra system call (send(2)).",
    scope: Scope::Plan,
    values: "on, off, or default",
    example: "header.more=on,off",
    unset: Some(value::DEFAULT),
    permanent: |_, value| match value {
        "on" => application("send(fd, header, length, MSG_MORE)"),
        _ => Vec::new(),
    },
    backend: Backend::Plan(|plan, setting, value| {
        let on = value::or_default(value, |v| value::switch(setting, v))?;
        plan.storage.header_more = on.unwrap_or(false);
        Ok(())
    }),
};
