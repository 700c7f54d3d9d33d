//! Drop-ins for the file of systemd-networkd that configures a device (systemd.network(5)).
//!
//! A section in a drop-in is one more section, not a part of the file's own of the same name. So a drop-in can name the
//! root queueing discipline of a device that has none in the files so far; parameters of a discipline, classes and
//! routes of those files can't be extended, and are left to the unit that sets values at boot.

use std::path::Path;

use goodput_model::SettingRef;

use super::host::SavingHost;
use super::systemd::{DROP_IN, FOLDER, FOLDERS, is_for, is_new_enough};

/// Suffix of such files.
pub const SUFFIX: &str = ".network";
/// Suffix of drop-in folders.
pub const DROP_INS: &str = ".network.d";
/// The setting that a whole section keeps.
const WHOLE: &str = "qdisc.kind";
/// Where networkd notes what it applied to each link (`link_save`, src/network/networkd-state-file.c).
const STATES: &str = "/run/systemd/netif/links";
/// Sections of queueing disciplines (src/network/networkd-network-gperf.gperf), which are at the root if they do not say
/// otherwise. Only the first one at the root counts (`qdisc_section_verify`, src/network/tc/qdisc.c).
const DISCIPLINES: [&str; 22] = [
    "BFIFO",
    "CAKE",
    "ControlledDelay",
    "DeficitRoundRobinScheduler",
    "EnhancedTransmissionSelection",
    "FairQueueing",
    "FairQueueingControlledDelay",
    "FlowQueuePIE",
    "GenericRandomEarlyDetection",
    "HeavyHitterFilter",
    "HierarchyTokenBucket",
    "NetworkEmulator",
    "PFIFO",
    "PFIFOFast",
    "PFIFOHeadDrop",
    "PIE",
    "QDisc",
    "QuickFairQueueing",
    "StochasticFairBlue",
    "StochasticFairnessQueueing",
    "TokenBucketFilter",
    "TrivialLinkEqualizer",
];

/// The drop-in that keeps `setting`, if networkd configures its device by a file for this device alone, and nothing in
/// that file or its drop-ins contradicts.
pub fn file(host: &mut dyn SavingHost, setting: &SettingRef) -> Option<String> {
    if setting.name != WHOLE || !is_new_enough(host) {
        return None;
    }
    let device = host.device(setting.scope.as_deref()?)?;
    let state = host.read(&format!("{STATES}/{}", device.index))?;
    let applied = state.lines().find_map(|line| line.strip_prefix("NETWORK_FILE="))?;
    let text = host.read(applied)?;
    let name = Path::new(applied).file_name()?.to_str()?;
    let own = format!("{FOLDER}/{name}.d/{DROP_IN}");
    let others = drop_ins(host, name).into_iter().filter(|path| *path != own);
    let others: Vec<String> = others.filter_map(|path| host.read(&path)).collect();
    let has_root = others.iter().chain([&text]).any(|text| has_discipline(text));
    (is_for(&text, &device, None) && !has_root).then_some(own)
}

fn drop_ins(host: &mut dyn SavingHost, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for folder in FOLDERS.map(|folder| format!("{folder}/{name}.d")) {
        let names = host.list(&folder).into_iter().filter(|name| name.ends_with(".conf"));
        found.extend(names.map(|name| format!("{folder}/{name}")));
    }
    found
}

fn has_discipline(text: &str) -> bool {
    let headings = text.lines().filter_map(|line| line.trim().strip_prefix('[')?.strip_suffix(']'));
    headings.into_iter().any(|heading| DISCIPLINES.contains(&heading))
}
