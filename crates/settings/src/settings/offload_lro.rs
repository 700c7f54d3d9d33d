//! `offload.lro`: joining of received segments by the device.

use goodput_netlink::Offload;

use crate::machine::OffloadSwitch;
use crate::permanent::offload;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "offload.lro",
    title: "joining of received segments by the device",
    why: "It saves CPU at the receiver, but breaks forwarded packets.",
    scope: Scope::Device,
    values: "on or off",
    example: "offload.lro@eth0=off,on",
    unset: None,
    permanent: |setting, value| offload(setting, value, &["LargeReceiveOffload"], Some("lro")),
    backend: Backend::Machine(&OffloadSwitch(Offload::Lro)),
};
