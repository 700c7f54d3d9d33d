//! How many bytes the queues of a device hold: longer packets are dropped.

use goodput_model::SettingRef;
use goodput_netlink::QdiscOptions;

use super::device;
use crate::error::{SettingError, from_netlink};

/// The smallest bucket or queue of bytes among the qdiscs of the device; `None` if it has none.
pub(crate) fn smallest(setting: &SettingRef) -> Result<Option<u64>, SettingError> {
    let mut netlink = device::netlink(setting)?;
    let index = device::index(&mut netlink, setting)?;
    let qdiscs = netlink
        .qdiscs(index)
        .map_err(|e| from_netlink(setting, "read its qdiscs", device::name(setting), e))?;
    Ok(qdiscs.iter().filter_map(|qdisc| bytes(&qdisc.options)).min().map(u64::from))
}

fn bytes(options: &QdiscOptions) -> Option<u32> {
    match options {
        // Both limits drop longer packets (net/sched/sch_tbf.c `tbf_enqueue`, net/sched/sch_fifo.c).
        QdiscOptions::Tbf(tbf) => Some(tbf.burst_bytes.min(tbf.limit_bytes)),
        QdiscOptions::Bfifo { limit_bytes } => Some(*limit_bytes),
        _ => None,
    }
}
