//! `offload.gso`: segmentation by the stack, as late as possible.

use goodput_netlink::Offload;

use crate::machine::OffloadSwitch;
use crate::permanent::offload;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "offload.gso",
    title: "segmentation by the stack just before the device",
    why: "The stack carries up to 64 KiB as one packet, which saves CPU but reaches queues and token buckets as a burst.",
    scope: Scope::Device,
    values: "on or off",
    example: "offload.gso@eth0=on,off",
    unset: None,
    permanent: |setting, value| offload(setting, value, &["GenericSegmentationOffload"], None),
    backend: Backend::Machine(&OffloadSwitch(Offload::Gso)),
};
