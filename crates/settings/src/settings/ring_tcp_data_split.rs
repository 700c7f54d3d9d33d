//! `ring.tcp_data_split`: whether the payload of received TCP packets has buffers of its own.

use crate::machine::HeaderSplitSwitch;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "ring.tcp_data_split",
    title: "headers and payload of received TCP packets in separate buffers",
    why: "Payload can then be mapped or received without a copy; a change resets most cards briefly.",
    scope: Scope::Device,
    values: "on or off",
    example: "ring.tcp_data_split@eth0=off,on",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&HeaderSplitSwitch),
};
