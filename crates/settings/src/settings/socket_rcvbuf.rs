//! `socket.rcvbuf`: the fixed receive buffer of the data sockets.

use goodput_model::Bytes;

use crate::permanent::socket_buffer;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// `SO_RCVBUF` takes an int, which the kernel doubles (socket(7)).
const MAX_BYTES: u64 = (i32::MAX / 2) as u64;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "socket.rcvbuf",
    title: "receive buffer of the data sockets",
    why: "A fixed receive buffer switches the kernel's autotuning off; one smaller than rate × round-trip time closes the window.",
    scope: Scope::Plan,
    values: "a size in bytes like 64K or 4M, or default for the kernel's autotuning",
    example: "socket.rcvbuf=default,64K,4M",
    unset: Some(value::DEFAULT),
    permanent: |_, value| socket_buffer("SO_RCVBUF", value),
    backend: Backend::Plan(|plan, setting, value| {
        let bytes = value::or_default(value, |v| value::size(setting, v, MAX_BYTES))?;
        plan.socket.rcvbuf_bytes = bytes.map(Bytes);
        Ok(())
    }),
};
