//! `socket.priority`: the place of the data packets in queues of this host.

use crate::permanent::application;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "socket.priority",
    title: "priority of the data packets in the hosts' queues",
    why: "Queueing disciplines with bands or classes choose by the priority; values above 6 need CAP_NET_ADMIN, and servers accept at most 6.",
    scope: Scope::Plan,
    values: "a number from 0 to 2147483647, or default",
    example: "socket.priority=default,6",
    unset: Some(value::DEFAULT),
    permanent: |_, value| {
        application(match value {
            value::DEFAULT => "no setsockopt(SO_PRIORITY)".into(),
            value => format!("setsockopt(fd, SOL_SOCKET, SO_PRIORITY, {value})"),
        })
    },
    backend: Backend::Plan(|plan, setting, value| {
        plan.socket.priority =
            value::or_default(value, |v| value::number(setting, v, &(0..=0x7fff_ffff)))?;
        Ok(())
    }),
};
