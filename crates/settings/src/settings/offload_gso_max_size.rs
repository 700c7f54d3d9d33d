//! `offload.gso_max_size`: the largest segment handed to a device.

use crate::machine::GSO_SIZE;
use crate::permanent::link_file;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "offload.gso_max_size",
    title: "largest super-packet handed to the device",
    why: "Large super-packets save CPU; small ones fit token buckets and queues that a burst of 64 KiB overruns, without switching segmentation off.",
    scope: Scope::Device,
    values: "bytes; usually 65536",
    example: "offload.gso_max_size@eth0=65536,16384",
    unset: None,
    permanent: |setting, value| {
        vec![link_file(setting, &format!("GenericSegmentOffloadMaxBytes={value}"))]
    },
    backend: Backend::Machine(&GSO_SIZE),
};
