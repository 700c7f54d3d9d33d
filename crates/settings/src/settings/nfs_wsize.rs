//! `nfs.wsize`: bytes that one WRITE to an NFS server carries.

use goodput_model::{Bytes, NfsPlan};

use crate::permanent::mount_option;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "nfs.wsize",
    title: "bytes of one WRITE to an NFS server",
    why: "A small WRITE costs a round trip for little data; a large one arrives as a burst of frames at the server.",
    scope: Scope::Plan,
    values: "a size in bytes like 8K or 1M, or default",
    example: "nfs.wsize=32K,1M",
    unset: Some(value::DEFAULT),
    permanent: |_, value| mount_option("wsize", value),
    backend: Backend::Plan(|plan, setting, value| {
        let most = NfsPlan::MOST_RSIZE_BYTES;
        let bytes = value::or_default(value, |v| value::size(setting, v, most))?;
        plan.nfs.wsize_bytes = bytes.map(Bytes);
        Ok(())
    }),
};
