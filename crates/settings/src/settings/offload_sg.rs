//! `offload.sg`: sending from scattered memory.

use goodput_netlink::Offload;

use crate::machine::OffloadSwitch;
use crate::permanent::ethtool;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "offload.sg",
    title: "sending from scattered memory",
    why: "Without it every packet is first copied into one piece, and segmentation offload is off too.",
    scope: Scope::Device,
    values: "on or off",
    example: "offload.sg@eth1=on,off",
    unset: None,
    permanent: |setting, value| vec![ethtool(setting, "-K", &format!("sg {value}"))],
    backend: Backend::Machine(&OffloadSwitch(Offload::ScatterGather)),
};
