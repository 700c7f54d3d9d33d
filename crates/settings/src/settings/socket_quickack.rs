//! `socket.quickack`: acknowledging at once on the data sockets.

use crate::permanent::application;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "socket.quickack",
    title: "TCP_QUICKACK on the data sockets",
    why: "A receiver delays every second acknowledgement, so a sender that has nothing more to send may wait 40 ms for it; immediate acknowledgements cost packets and CPU. The kernel forgets the option, so goodput sets it again after each read.",
    scope: Scope::Plan,
    values: "on, off, or default",
    example: "socket.quickack=default,on",
    unset: Some(value::DEFAULT),
    permanent: |_, value| {
        let number = u8::from(value == "on");
        application(match value {
            value::DEFAULT => "no setsockopt(TCP_QUICKACK)".into(),
            _ => format!("setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, {number}) after each read"),
        })
    },
    backend: Backend::Plan(|plan, setting, value| {
        plan.socket.quickack = value::or_default(value, |v| value::switch(setting, v))?;
        Ok(())
    }),
};
