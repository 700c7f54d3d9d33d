//! The root queueing discipline of a device: a section of systemd.network(5), if it has one.

use goodput_model::{Permanent, SettingRef};

use super::network_file;
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

/// The form of `qdisc.kind`; kinds without a section are set at boot.
pub(crate) fn qdisc_kind(setting: &SettingRef, value: &str) -> Vec<Permanent> {
    if let Some((_, section)) = SECTIONS.iter().find(|(kind, _)| *kind == value) {
        return vec![network_file(setting, &format!("[{section}]\nParent=root"))];
    }
    if value == value::DEFAULT {
        return vec![network_file(setting, "# no section with Parent=root")];
    }
    Vec::new()
}
