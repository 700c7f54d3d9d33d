//! `nfs.rsize`: bytes that one READ of an NFS server asks for.

use goodput_model::{Bytes, NfsPlan};

use crate::permanent::mount_option;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "nfs.rsize",
    title: "bytes of one READ from an NFS server",
    why: "A small READ costs a round trip for little data; a large one arrives as a burst of frames that a small receive ring drops.",
    scope: Scope::Plan,
    values: "a size in bytes like 8K or 1M, or default",
    example: "nfs.rsize=8K,32K,1M",
    unset: Some(value::DEFAULT),
    permanent: |_, value| mount_option("rsize", value),
    backend: Backend::Plan(|plan, setting, value| {
        let most = NfsPlan::MOST_RSIZE_BYTES;
        let bytes = value::or_default(value, |v| value::size(setting, v, most))?;
        plan.nfs.rsize_bytes = bytes.map(Bytes);
        Ok(())
    }),
};
