//! What several settings of one run have in common: two metrics of one route, an offload that goes off with
//! another.

use goodput_model::SettingRef;

use crate::journal::Entry;
use crate::lookup::machine;
use crate::side_effects::Cells;

/// What is around a setting, as it was before this run changed anything: of what an earlier setting of
/// the run changed, the original.
pub(super) fn originals(entries: &[Entry], around: &Cells) -> Cells {
    let mut originals = around.clone();
    // The earliest change has the last word.
    for entry in entries.iter().rev() {
        for name in entry.touched.keys().filter(|name| around.contains_key(*name)) {
            match entry.before.get(name) {
                Some(text) => originals.insert(name.clone(), text.clone()),
                None => originals.remove(name),
            };
        }
    }
    originals
}

/// Whether another setting of the run has changed something that `entry` changes too.
pub(super) fn is_shared(entries: &[Entry], entry: &Entry) -> bool {
    others(entries, &entry.setting)
        .any(|other| other.touched.keys().any(|name| entry.touched.contains_key(name)))
}

/// The values of the other settings of the run; `None` for one that can't be read now.
pub(super) fn values(entries: &[Entry], setting: &SettingRef) -> Vec<(SettingRef, Option<String>)> {
    let read = |setting: &SettingRef| machine(setting).and_then(|m| m.read(setting)).ok();
    others(entries, setting).map(|other| (other.setting.clone(), read(&other.setting))).collect()
}

fn others<'a>(entries: &'a [Entry], setting: &'a SettingRef) -> impl Iterator<Item = &'a Entry> {
    entries.iter().filter(move |other| other.setting != *setting)
}
