//! `ring.hds_thresh`: the length up to which headers and payload stay together.

use crate::machine::HeaderSplitThreshold;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "ring.hds_thresh",
    title: "longest received packet whose headers and payload stay together",
    why: "Short packets are cheaper in one buffer; with 0 every packet is separated, as receiving without a copy needs.",
    scope: Scope::Device,
    values: "bytes, 0 for every packet",
    example: "ring.hds_thresh@eth0=0,256",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&HeaderSplitThreshold),
};
