//! `offload.tso`: segmentation of TCP streams by the device.

use goodput_netlink::Offload;

use crate::machine::OffloadSwitch;
use crate::permanent::offload;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "offload.tso",
    title: "TCP segmentation by the device",
    why: "The stack hands the device up to 64 KiB at once, which saves CPU but arrives as a burst \
          that a small token bucket drops.",
    scope: Scope::Device,
    values: "on or off",
    example: "offload.tso@eth0=on,off",
    unset: None,
    permanent: |setting, value| {
        let keys = ["TCPSegmentationOffload", "TCP6SegmentationOffload"];
        offload(setting, value, &keys, Some("tso"))
    },
    backend: Backend::Machine(&OffloadSwitch(Offload::Tso)),
};
