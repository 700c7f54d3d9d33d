//! `socket.dscp`: the code point of the data packets.

use crate::permanent::application;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "socket.dscp",
    title: "differentiated services code point of the data packets",
    why: "Networks queue, police and route by code points; a code point that is treated worse, or cleared on the path, explains a slow class.",
    scope: Scope::Plan,
    values: "a number from 0 to 63, or default for 0",
    example: "socket.dscp=default,46",
    unset: Some(value::DEFAULT),
    permanent: |_, value| {
        application(match value.parse::<u8>() {
            Ok(dscp) => format!(
                "setsockopt(fd, IPPROTO_IP, IP_TOS, {0}), or IPPROTO_IPV6, IPV6_TCLASS, {0}",
                u16::from(dscp) << 2
            ),
            Err(_) => "no setsockopt(IP_TOS)".into(),
        })
    },
    backend: Backend::Plan(|plan, setting, value| {
        plan.socket.dscp = value::or_default(value, |v| value::number(setting, v, &(0..=63)))?;
        Ok(())
    }),
};
