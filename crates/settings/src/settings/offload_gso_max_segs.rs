//! `offload.gso_max_segs`: most packets in a segment handed to a device.

use crate::machine::GSO_PACKETS;
use crate::permanent::link_file;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "offload.gso_max_segs",
    title: "most packets in a super-packet handed to the device",
    why: "With 1 every packet passes queues and token buckets separately: more CPU, but no bursts.",
    scope: Scope::Device,
    values: "packets from 1 to 65535",
    example: "offload.gso_max_segs@eth0=65535,8",
    unset: None,
    permanent: |setting, value| {
        vec![link_file(setting, &format!("GenericSegmentOffloadMaxSegments={value}"))]
    },
    backend: Backend::Machine(&GSO_PACKETS),
};
