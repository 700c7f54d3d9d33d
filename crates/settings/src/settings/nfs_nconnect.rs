//! `nfs.nconnect`: connections of an NFS mount.

use goodput_model::NfsPlan;

use crate::permanent::mount_option;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "nfs.nconnect",
    title: "connections of an NFS mount to its server",
    why: "One connection has one congestion window, one receive queue and one thread of the kernel; several share the load.",
    scope: Scope::Plan,
    values: "1 to 16, or default",
    example: "nfs.nconnect=1,4",
    unset: Some(value::DEFAULT),
    permanent: |_, value| mount_option("nconnect", value),
    backend: Backend::Plan(|plan, setting, value| {
        let range = 1..=NfsPlan::MOST_CONNECTIONS;
        plan.nfs.nconnect = value::or_default(value, |v| value::number(setting, v, &range))?;
        Ok(())
    }),
};
