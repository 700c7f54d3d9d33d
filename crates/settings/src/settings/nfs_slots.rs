//! `nfs.slots`: READs or WRITEs in flight on one connection to an NFS server.

use goodput_model::NfsPlan;

use crate::permanent::sunrpc_slots;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "nfs.slots",
    title: "READs or WRITEs in flight on one NFS connection",
    why: "No more than slots × rsize can come in one round trip, and no more than slots × wsize can leave.",
    scope: Scope::Plan,
    values: "1 to 1024, or default",
    example: "nfs.slots=1,8,64",
    unset: Some(value::DEFAULT),
    permanent: |_, value| sunrpc_slots(value),
    backend: Backend::Plan(|plan, setting, value| {
        let range = 1..=NfsPlan::MOST_SLOTS;
        plan.nfs.slots = value::or_default(value, |v| value::number(setting, v, &range))?;
        Ok(())
    }),
};
