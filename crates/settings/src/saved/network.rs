//! Drop-ins for the file of systemd-networkd that configures a device (systemd.network(5)).
//!
//! A section in a drop-in is one more section, not a part of the file's own of the same name. So a drop-in can name the
//! root queueing discipline of a device that has none in the files so far; parameters of a discipline, classes and
//! routes of those files can't be extended, and are left to the unit that sets values at boot.

use std::fs;
use std::path::{Path, PathBuf};

use goodput_model::SettingRef;
use goodput_netlink::Netlink;

use super::root::below;
use super::systemd::{DROP_IN, FOLDER, is_for, is_new_enough};

/// Suffix of drop-in folders.
pub const DROP_INS: &str = ".network.d";
/// The setting that a whole section keeps.
const WHOLE: &str = "qdisc.kind";
/// Where networkd notes what it applied to each link (`link_save`, src/network/networkd-state-file.c).
const STATES: &str = "/run/systemd/netif/links";
/// Folders of such files and their drop-ins.
const FOLDERS: [&str; 4] =
    [FOLDER, "/run/systemd/network", "/usr/local/lib/systemd/network", "/usr/lib/systemd/network"];
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
pub fn file(root: &Path, setting: &SettingRef) -> Option<String> {
    if setting.name != WHOLE || !is_new_enough(root) {
        return None;
    }
    let link = Netlink::open().ok()?.link(setting.scope.as_deref()?).ok()?;
    let state = fs::read_to_string(below(root, &format!("{STATES}/{}", link.index))).ok()?;
    let applied = state.lines().find_map(|line| line.strip_prefix("NETWORK_FILE="))?;
    let text = fs::read_to_string(below(root, applied)).ok()?;
    let name = Path::new(applied).file_name()?.to_str()?;
    let own = format!("{FOLDER}/{name}.d/{DROP_IN}");
    let others = drop_ins(root, name).into_iter().filter(|path| *path != below(root, &own));
    let others: Vec<String> = others.filter_map(|path| fs::read_to_string(path).ok()).collect();
    let has_root = others.iter().chain([&text]).any(|text| has_discipline(text));
    (is_for(&text, &link, None) && !has_root).then_some(own)
}

fn drop_ins(root: &Path, name: &str) -> Vec<PathBuf> {
    let folders = FOLDERS.map(|folder| below(root, &format!("{folder}/{name}.d")));
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let is_read = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "conf");
    entries.map(|entry| entry.path()).filter(is_read).collect()
}

fn has_discipline(text: &str) -> bool {
    let headings = text.lines().filter_map(|line| line.trim().strip_prefix('[')?.strip_suffix(']'));
    headings.into_iter().any(|heading| DISCIPLINES.contains(&heading))
}
