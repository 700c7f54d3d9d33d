//! What the kernel may alter along with a setting: captured before a change, put back after it.
//!
//! A captured state is a flat list of cells, each with a name like `link/eth0/mtu` and a text. An
//! area reads and writes the cells of one kind; [`areas::ALL`] lists them. A setting's backend says
//! which part of the namespace it may touch ([`crate::Footprint`]); that part is compared before and
//! after.

mod areas;
mod devices;
mod drivers;
mod features;
mod host;
mod interrupts;
mod lasting;
mod links;
mod napis;
mod objects;
mod queues;
mod spreading;
mod sysctls;

use std::collections::BTreeMap;

use goodput_model::SettingRef;

use crate::error::SettingError;
use crate::footprint::Footprint;
use host::Host;
pub(crate) use lasting::same;

/// Cells by name.
pub(crate) type Cells = BTreeMap<String, String>;
/// Cells that differ from others: the text, or `None` if there is no such cell.
pub(crate) type Changed = BTreeMap<String, Option<String>>;

/// More cells than this are not kept for one setting: a router with all routes of the Internet
/// would write gigabytes before each change.
const MAX_CELLS_PER_SETTING: usize = 100_000;
/// How often cells that depend on other cells are written again.
const MAX_WRITE_ROUNDS: usize = 4;

/// The state of a setting's footprint now.
pub(crate) fn capture(setting: &SettingRef, footprint: &Footprint) -> Result<Cells, SettingError> {
    if [Footprint::Nothing, Footprint::Sysctls(Vec::new())].contains(footprint) {
        return Ok(Cells::new());
    }
    let mut cells = Cells::new();
    let mut host = Host::open().map_err(|trouble| trouble.of(setting))?;
    let part = devices::Part::of(&mut host, setting, footprint).map_err(|t| t.of(setting))?;
    for area in areas::ALL {
        (area.capture)(&mut host, &part, &mut cells).map_err(|trouble| trouble.of(setting))?;
    }
    if cells.len() > MAX_CELLS_PER_SETTING && *footprint != Footprint::Namespace {
        return Err(SettingError::Irreversible {
            setting: setting.clone(),
            why: "too much of this namespace may change with it to be saved safely",
        });
    }
    Ok(cells)
}

/// The cells of `to` that differ from those of `from`.
pub(crate) fn changed(from: &Cells, to: &Cells) -> Changed {
    let gone = from.keys().filter(|name| !to.contains_key(*name)).map(|name| (name.clone(), None));
    let is = |name, text: &str| from.get(name).is_some_and(|before| same(before, text));
    let other = to.iter().filter(|(name, text)| !is(*name, text));
    gone.chain(other.map(|(name, text)| (name.clone(), Some(text.clone())))).collect()
}

/// The cells of `target` that have another value now, or do not exist.
pub(crate) fn differing<'a>(target: &'a Cells, now: &Cells) -> Vec<(&'a str, &'a str)> {
    let is = |name, text: &str| now.get(name).is_some_and(|now| same(now, text));
    let other = target.iter().filter(|(name, text)| !is(*name, text) && !lasting::has_ended(text));
    other.map(|(name, text)| (name.as_str(), text.as_str())).collect()
}

/// Writes differences from `target` until there are none, or nothing more can be done. Returns the remaining
/// differences, in words, and the final state.
pub(crate) fn bring_about(
    setting: &SettingRef,
    footprint: &Footprint,
    target: &Cells,
) -> Result<(Vec<String>, Cells), SettingError> {
    let mut troubles = BTreeMap::new();
    for _ in 0..MAX_WRITE_ROUNDS {
        let now = capture(setting, footprint)?;
        let different = differing(target, &now);
        if different.is_empty() {
            return Ok((Vec::new(), now));
        }
        troubles = write(setting, &different, &now)?;
    }
    let now = capture(setting, footprint)?;
    let left: Vec<String> = differing(target, &now)
        .into_iter()
        .map(|(name, text)| {
            let is = now.get(name).map_or("gone", String::as_str);
            let why = troubles.remove(name).unwrap_or_else(|| "the kernel keeps it".into());
            format!("{name} is {is}, was {text} ({why})")
        })
        .collect();
    Ok((left, now))
}

/// Writes cells in the order of the areas; returns the reasons of failures, by name.
fn write(
    setting: &SettingRef,
    cells: &[(&str, &str)],
    now: &Cells,
) -> Result<BTreeMap<String, String>, SettingError> {
    let mut host = Host::open().map_err(|trouble| trouble.of(setting))?;
    let mut troubles = BTreeMap::new();
    for area in areas::ALL {
        for (name, text) in cells {
            #[cfg(test)]
            crate::testing::step();
            let Some(path) = name.strip_prefix(area.id).and_then(|rest| rest.strip_prefix('/'))
            else {
                continue;
            };
            let now = now.get(*name).map(String::as_str);
            if let Err(trouble) = area.write.cell(&mut host, path, now, text) {
                troubles.insert((*name).to_owned(), trouble.to_string());
            }
        }
    }
    Ok(troubles)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// Sets steering masks on every queue of a device.
#[cfg(test)]
pub(crate) fn steer(device: &str) {
    use std::io::Write;
    let host = Host::open().unwrap();
    let directory = host.sysfs.device(host.link(device).unwrap()).unwrap();
    for queue in 0..8 {
        for (file, text) in [("rps_cpus", "1"), ("rps_flow_cnt", "64"), ("xps_cpus", "1")] {
            let direction = if file.starts_with("rps") { "rx" } else { "tx" };
            let path = format!("queues/{direction}-{queue}/{file}");
            let opened =
                crate::machine::sysfs::attribute(&directory, &path, rustix::fs::OFlags::WRONLY);
            // There are fewer queues, or the queue has no choice.
            if let Ok(mut file) = opened {
                let _ = file.write_all(text.as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_scene;

    #[test]
    fn what_goes_with_a_link_comes_back_with_all_that_it_had() {
        in_scene(|_| {
            let setting: SettingRef = "link.mtu@eth0".parse().unwrap();
            let look = || capture(&setting, &Footprint::Device).unwrap();
            let before = look();
            for state in ["down", "up"] {
                let words = ["link", "set", "eth0", state];
                assert!(std::process::Command::new("ip").args(words).status().unwrap().success());
            }
            let gone = |cells: &Cells, kind: &str| {
                let before = before.keys().filter(|name| name.starts_with(kind));
                before.filter(|name| !cells.contains_key(*name)).count()
            };
            let down = look();
            for kind in ["address/", "route/", "nexthop/"] {
                assert!(gone(&down, kind) > 0, "{kind}");
            }
            let (left, _) = bring_about(&setting, &Footprint::Device, &before).unwrap();
            assert_eq!(left, [""; 0]);
            let after = look();
            let ends = |cells: &Cells| {
                let ends = cells.values().filter_map(|text| text.split_once(" until "));
                ends.map(|(_, end)| end.split(' ').next_back().unwrap().parse::<u64>().unwrap())
                    .collect::<Vec<_>>()
            };
            // The kernel counts whole seconds, and the remaining time began a little later.
            assert!(!ends(&before).is_empty());
            for (one, other) in ends(&before).into_iter().zip(ends(&after)) {
                assert!(one.abs_diff(other) < 3600, "{one} {other}");
            }
            assert_eq!(ends(&before).len(), ends(&after).len());
        });
    }
}
