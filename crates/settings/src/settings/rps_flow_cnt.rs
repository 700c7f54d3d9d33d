//! `rps.flow_cnt`: flows that are received where they are read (RFS).

use crate::machine::RPS_FLOW_CNT;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "rps.flow_cnt",
    title: "flows of each receive queue that are handled where they are read (RFS)",
    why: "Packets handled on the CPU of the program that reads them find its data in the cache. RFS also needs sysctl net.core.rps_sock_flow_entries, for all queues together, and rps.cpus.",
    scope: Scope::Device,
    values: "flows, a power of two up to 16777216, or 0 for none",
    example: "rps.flow_cnt@eth0=0,4096",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&RPS_FLOW_CNT),
};
