//! `socket.mss`: largest segment of the data sockets.

use crate::permanent::application;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "socket.mss",
    title: "largest segment of the data sockets",
    why: "Segments that fit the path without fragments arrive even if path MTU discovery fails; smaller ones cost more headers and CPU.",
    scope: Scope::Plan,
    values: "bytes from 88 to 32767, or default for the MTU minus headers",
    example: "socket.mss=default,1200",
    unset: Some(value::DEFAULT),
    permanent: |_, value| {
        application(match value {
            value::DEFAULT => "no setsockopt(TCP_MAXSEG)".into(),
            value => format!("setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, {value}) before connect"),
        })
    },
    backend: Backend::Plan(|plan, setting, value| {
        plan.socket.mss_bytes =
            value::or_default(value, |v| value::number(setting, v, &(88..=32_767)))?;
        Ok(())
    }),
};
