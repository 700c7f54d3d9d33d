//! What the clients of a server may read and change: everything on [`list::ALL`], within its bounds, as
//! far as the operator has named it ([`AllowedSettings`]). For this host's own administrator only the
//! settings' own rules apply.

mod list;
mod pattern;

use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use goodput_model::{BitRate, Bytes, ETHERNET_HEADER_BYTES, SettingRef};

pub use list::{ALL, Bounds, Entry};
pub use pattern::Pattern;

use crate::error::SettingError;
use crate::machine::{device, fifo, queue_bytes, sysctl_name};
use list::{FEWEST_PACKETS, WORK_CONSERVING};

/// Queueing disciplines that every kernel with any of them has (net/sched/Makefile: sch_generic, sch_fifo).
const BUILT_IN: [&str; 4] = ["pfifo_fast", "pfifo", "bfifo", "pfifo_head_drop"];

/// What a link may add to a packet, bytes: an Ethernet header and two VLAN tags (IEEE 802.1Q).
const LINK_HEADER_BYTES: u64 = ETHERNET_HEADER_BYTES as u64 + 2 * 4;

/// The settings that the operator lets others reach: none, unless patterns name them.
#[derive(Debug, Clone, Default)]
pub struct AllowedSettings(Vec<Pattern>);

impl AllowedSettings {
    /// Everything that matches any of these.
    pub fn new(patterns: Vec<Pattern>) -> Self {
        Self(patterns)
    }

    /// Whether nothing is allowed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether others may read a setting.
    pub fn check_read(&self, setting: &SettingRef) -> Result<(), SettingError> {
        self.entry(setting).map(|_| ())
    }

    /// Whether others may change a setting at all.
    pub fn check_change(&self, setting: &SettingRef) -> Result<(), SettingError> {
        let entry = self.entry(setting)?;
        if entry.bounds != Bounds::ReadOnly {
            return Ok(());
        }
        let why = format!("a client may only read it ({})", entry.why);
        Err(SettingError::NotForOthers { setting: setting.clone(), why })
    }

    /// Whether others may give a setting this value.
    pub fn check_apply(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let entry = self.entry(setting)?;
        let why = match objection(setting, entry.bounds, value) {
            None => return Ok(()),
            Some(why) => why,
        };
        let why = format!("a client may not set it to {value:?}: {why} ({})", entry.why);
        Err(SettingError::NotForOthers { setting: setting.clone(), why })
    }

    fn entry(&self, setting: &SettingRef) -> Result<&'static Entry, SettingError> {
        let refused = |why: &str| {
            Err(SettingError::NotForOthers { setting: setting.clone(), why: why.into() })
        };
        let Some(entry) = listed(&setting.name) else {
            return refused("clients may never access this setting");
        };
        if !self.0.iter().any(|pattern| pattern.matches(entry.name, setting.scope.as_deref())) {
            let name = entry.name;
            return refused(&format!(
                "the server does not allow it; `serve --allow-settings {name}` would"
            ));
        }
        Ok(entry)
    }
}

/// The entry of a setting that others may reach, if there is one, however a sysctl's name is spelled.
pub fn listed(name: &str) -> Option<&'static Entry> {
    let canonical = sysctl_name::canonical(name);
    ALL.iter().find(|entry| entry.name == canonical)
}

/// Why a value is out of bounds.
fn objection(setting: &SettingRef, bounds: Bounds, value: &str) -> Option<String> {
    if value == "default" && bounds != Bounds::ReadOnly {
        return None;
    }
    let within: &dyn Fn(&str) -> bool = match bounds {
        Bounds::ReadOnly => return Some("it can only be read".into()),
        Bounds::AsItIs => return None,
        Bounds::Congestion => return offered(value),
        Bounds::QdiscKind => return loaded(value),
        Bounds::Frames(_) | Bounds::Queue(_) => return short(setting, bounds, value),
        Bounds::LargestFrame(least, most) => return long(setting, least..=most, value),
        Bounds::Numbers(least, most) => {
            &move |text| text.parse().is_ok_and(|n: i64| (least..=most).contains(&n))
        }
        Bounds::Sizes(least, most) => {
            &move |text| text.parse().is_ok_and(|size: Bytes| (least..=most).contains(&size.0))
        }
        Bounds::Rates(least, most) => &move |text| {
            text.parse().is_ok_and(|rate: BitRate| (least as f64..=most as f64).contains(&rate.0))
        },
    };
    let words: Vec<_> = value.split_whitespace().collect();
    let good = !words.is_empty() && words.into_iter().all(within);
    (!good).then(|| format!("the bounds are {bounds}"))
}

fn offered(value: &str) -> Option<String> {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    // If the file can't be read, nothing is offered.
    let offered = fs::read_to_string(file).unwrap_or_default();
    let good = offered.split_whitespace().any(|name| name == value);
    (!good).then(|| format!("only what the kernel already offers is allowed: {}", offered.trim()))
}

fn loaded(value: &str) -> Option<String> {
    if !WORK_CONSERVING.contains(&value) {
        return Some(format!("the bounds are {}", Bounds::QdiscKind));
    }
    let module = Path::new("/sys/module").join(format!("sch_{value}"));
    let good = BUILT_IN.contains(&value) || module.is_dir();
    (!good).then(|| format!("the kernel may have to load the module sch_{value} for it"))
}

/// Why a burst or a queue may be too short for the packets of its device, or is too long.
fn short(setting: &SettingRef, bounds: Bounds, value: &str) -> Option<String> {
    let (least, most) = match bounds {
        Bounds::Queue(most) if fifo::counts_packets(setting) => (FEWEST_PACKETS, most),
        Bounds::Queue(most) | Bounds::Frames(most) => match device::mtu(setting) {
            Ok(mtu) => (two_frames(mtu), most),
            Err(why) => return Some(format!("its minimum is unknown: {why}")),
        },
        _ => return None,
    };
    let sizes: Option<Vec<u64>> =
        value.split_whitespace().map(|word| word.parse().ok().map(|size: Bytes| size.0)).collect();
    let good = sizes.is_some_and(|sizes| {
        !sizes.is_empty() && sizes.iter().all(|size| (least..=most).contains(size))
    });
    (!good).then(|| format!("the bounds are {bounds}, here {least} to {most}"))
}

/// Why frames may be too long for the queues of their device, or why the MTU is invalid.
fn long(setting: &SettingRef, bounds: RangeInclusive<u32>, value: &str) -> Option<String> {
    let within = value.parse().ok().filter(|mtu: &u32| bounds.contains(mtu));
    let Some(wanted) = within else {
        return Some(format!("the bounds are {} to {}", bounds.start(), bounds.end()));
    };
    match device::mtu(setting) {
        // Shorter frames than now fit better.
        Ok(mtu) if wanted <= mtu => return None,
        Ok(_) => {}
        Err(why) => return Some(format!("the MTU now is unknown: {why}")),
    }
    let smallest = match queue_bytes::smallest(setting) {
        Ok(smallest) => smallest?,
        Err(why) => return Some(format!("the device's queues are unknown: {why}")),
    };
    let least = two_frames(wanted);
    (smallest < least).then(|| {
        format!("a queue of the device holds {smallest} bytes, and two frames would take {least}")
    })
}

/// Two of the largest frames of a device with this MTU, bytes.
fn two_frames(mtu: u32) -> u64 {
    2 * (u64::from(mtu) + LINK_HEADER_BYTES)
}

#[cfg(test)]
mod tests;
