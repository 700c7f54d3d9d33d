//! Segmentation offload off: frames leave the sender as they go over the wire. Then nothing on the way
//! drops or splits large ones any more; loss by chance stays.

use goodput_model::{EndName, Missing, Record, SettingRef};

use super::{Pair, Probe, Reading, SetUp};
use crate::names::LINK_DEVICE;

pub const PROBE: Probe = Probe {
    id: "offload-off",
    title: "segmentation offload off",
    set_up,
    pairs: &[
        Pair {
            one: "tso-oversize",
            other: "path-loss",
            read: Reading::Goodput { one_from: 2.0, other_to: 1.3 },
            why: "if every large frame is dropped, only some segments per RTO are left, measured 1.4 of 95.6 Mbit/s; random loss varies by a quarter between runs",
        },
        Pair {
            one: "tso-oversize",
            other: "policer",
            read: Reading::Goodput { one_from: 2.0, other_to: 1.3 },
            why: "a token bucket counts bytes, however they are cut",
        },
    ],
};

/// The sender must be this host: the far one's device is not ours to change.
fn set_up(record: &Record) -> Result<SetUp, Missing> {
    if record.verdict.sender != EndName::Near {
        return Err(Missing::because("the sender's device is at the far end"));
    }
    let device = record.ends.near.get()?.before.text(LINK_DEVICE)?.to_owned();
    let off = |name: &str| {
        let scope = Some(device.clone());
        (SettingRef { end: EndName::Near, name: name.into(), scope }, "off".to_owned())
    };
    let mut set_up = SetUp::plan(record, |_| {});
    set_up.settings = vec![off("offload.tso"), off("offload.gso")];
    Ok(set_up)
}
