//! The root queueing discipline of a device: a section of systemd.network(5), or a call of tc(8).

use goodput_model::{Permanent, SettingRef};

use super::{device, network_file, udev};
use crate::value;

/// Sections of systemd.network(5).
const SECTIONS: [(&str, &str); 10] = [
    ("fq_codel", "FairQueueingControlledDelay"),
    ("fq", "FairQueueing"),
    ("codel", "ControlledDelay"),
    ("cake", "CAKE"),
    ("pie", "PIE"),
    ("sfq", "StochasticFairnessQueueing"),
    ("pfifo", "PFIFO"),
    ("bfifo", "BFIFO"),
    ("pfifo_fast", "PFIFOFast"),
    ("pfifo_head_drop", "PFIFOHeadDrop"),
];

/// The form of `qdisc.kind`.
pub(crate) fn qdisc_kind(setting: &SettingRef, value: &str) -> Vec<Permanent> {
    if let Some((_, section)) = SECTIONS.iter().find(|(kind, _)| *kind == value) {
        return vec![network_file(setting, &format!("[{section}]\nParent=root"))];
    }
    if value == value::DEFAULT {
        return vec![network_file(setting, "# no section with Parent=root")];
    }
    let (device, kind) = (device(setting), super::plain(value));
    let command = format!("RUN+=\"/usr/sbin/tc qdisc replace dev {device} root {kind}\"");
    vec![udev::udev_rule(setting, &command)]
}
