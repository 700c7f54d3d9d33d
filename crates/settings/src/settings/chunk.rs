//! `chunk`: bytes of one write or one datagram.

use goodput_model::{Bytes, Plan};

use crate::permanent::{application, in_bytes};
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// Far more than any mover gains from; each flow keeps one chunk in memory.
const MAX_BYTES: u64 = 1 << 30;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "chunk",
    title: "bytes of one write or one datagram",
    why: "Small writes cost one system call each; very large ones don't fit the CPU's cache.",
    scope: Scope::Plan,
    values: "a size in bytes like 8K or 1M, or default",
    example: "chunk=8K,128K,1M",
    unset: Some(value::DEFAULT),
    permanent: |_, value| match value {
        value::DEFAULT => Vec::new(),
        size => application(format!("write(2) with {} bytes", in_bytes(size))),
    },
    backend: Backend::Plan(|plan, setting, value| {
        let bytes = value::or_default(value, |v| value::size(setting, v, MAX_BYTES))?;
        plan.chunk_bytes = bytes.map_or(Plan::standard().chunk_bytes, Bytes);
        Ok(())
    }),
};
