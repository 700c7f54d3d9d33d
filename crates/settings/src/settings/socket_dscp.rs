//! `socket.dscp`: the code point of the data packets.

use goodput_model::dscp_typed;
use goodput_model::traffic_class::traffic_class;

use crate::permanent::application;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "socket.dscp",
    title: "differentiated services code point of the data packets",
    why: "Networks queue, police and route by code points; a code point that is treated worse, or cleared on the path, explains a slow class.",
    scope: Scope::Plan,
    values: "a code point: 0 to 63, or a name like ef, af41 or cs1; default for 0",
    example: "socket.dscp=default,ef",
    unset: Some(value::DEFAULT),
    permanent: |_, value| {
        application(match dscp_typed(value) {
            Some(dscp) => format!(
                "setsockopt(fd, IPPROTO_IP, IP_TOS, {0}), or IPPROTO_IPV6, IPV6_TCLASS, {0}",
                traffic_class(dscp)
            ),
            None => "no setsockopt(IP_TOS)".into(),
        })
    },
    backend: Backend::Plan(|plan, setting, value| {
        plan.socket.dscp = value::or_default(value, |v| value::code_point(setting, v))?;
        Ok(())
    }),
};
