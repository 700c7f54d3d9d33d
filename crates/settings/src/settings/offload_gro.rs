//! `offload.gro`: joining received segments before the stack handles them.

use goodput_netlink::Offload;

use crate::machine::OffloadSwitch;
use crate::permanent::offload;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "offload.gro",
    title: "joining of received segments",
    why: "The stack handles received segments of one stream as one packet, which saves CPU at the receiver.",
    scope: Scope::Device,
    values: "on or off",
    example: "offload.gro@eth0=off,on",
    unset: None,
    permanent: |setting, value| offload(setting, value, &["GenericReceiveOffload"], Some("lro")),
    backend: Backend::Machine(&OffloadSwitch(Offload::Gro)),
};
