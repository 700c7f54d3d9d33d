//! `socket.notsent_lowat`: how much waits unsent in the data sockets.

use goodput_model::Bytes;

use crate::permanent::{application, in_bytes};
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "socket.notsent_lowat",
    title: "largest amount of unsent data in a data socket",
    why: "Unsent data in the kernel delays everything written after it, and fills caches; a mark too low keeps the writer from filling the path.",
    scope: Scope::Plan,
    values: "a size in bytes like 16K, or default for sysctl net.ipv4.tcp_notsent_lowat",
    example: "socket.notsent_lowat=default,128K",
    unset: Some(value::DEFAULT),
    permanent: |_, value| {
        application(match value {
            value::DEFAULT => "no setsockopt(TCP_NOTSENT_LOWAT)".into(),
            size => {
                let bytes = in_bytes(size);
                format!("setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, {bytes})")
            }
        })
    },
    backend: Backend::Plan(|plan, setting, value| {
        let size = value::or_default(value, |v| value::size(setting, v, u32::MAX.into()))?;
        plan.socket.notsent_lowat_bytes = size.map(Bytes);
        Ok(())
    }),
};
