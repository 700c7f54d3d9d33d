//! Segmentation offload on: many segments pass the stack at once. A CPU whose time went with the number of packets then carries
//! more; one that other programs, the hypervisor or the bytes themselves keep busy does not.

use goodput_model::{EndName, Missing, Record, SettingRef};

use super::{Pair, Probe, Reading, SetUp};
use crate::names::{LINK_DEVICE, OFFLOAD_GSO, OFFLOAD_SG, OFFLOAD_TSO, OFFLOAD_TX_CHECKSUM};
use crate::thresholds::{MIN_SPARE_RATE_RATIO, MIN_WORTHWHILE_RATE_RATIO};

/// What segmentation depends on, then segmentation itself (net/core/dev.c, `netdev_fix_features`).
const NEEDED: [&str; 4] = [OFFLOAD_TX_CHECKSUM, OFFLOAD_SG, OFFLOAD_TSO, OFFLOAD_GSO];

const READ: Reading =
    Reading::Goodput { one_from: MIN_SPARE_RATE_RATIO, other_to: MIN_WORTHWHILE_RATE_RATIO };
const WHY: &str = "the same CPU at the cost that a byte has in super-packets: clearly more than now, or no more than is worth a change";

pub const PROBE: Probe = Probe {
    id: "offload-on",
    title: "segmentation offload on",
    set_up,
    pairs: &[
        Pair { one: "offload-off", other: "cpu-contention", read: READ, why: WHY },
        Pair { one: "offload-off", other: "cpu-steal", read: READ, why: WHY },
        Pair { one: "offload-off", other: "sender-cpu", read: READ, why: WHY },
        Pair { one: "offload-off", other: "receiver-cpu", read: READ, why: WHY },
    ],
};

/// The sender must be this host: the far one's device is not ours to change.
fn set_up(record: &Record) -> Result<SetUp, Missing> {
    if record.verdict.sender != EndName::Near {
        return Err(Missing::because("the sender's device is at the far end"));
    }
    let facts = &record.ends.near.get()?.before;
    let device = facts.text(LINK_DEVICE)?.to_owned();
    let on = |name: &str| {
        let scope = Some(device.clone());
        (SettingRef { end: EndName::Near, name: name.into(), scope }, "on".to_owned())
    };
    let off: Vec<&str> = NEEDED.into_iter().filter(|name| facts.text(name) == Ok("off")).collect();
    if off.is_empty() {
        return Err(Missing::because("no offload is off"));
    }
    let mut set_up = SetUp::plan(record, |_| {});
    set_up.settings = off.into_iter().map(on).collect();
    Ok(set_up)
}
