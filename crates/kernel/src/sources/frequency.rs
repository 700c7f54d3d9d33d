//! The CPUs' clock rates, their limits, and how often heat slowed the CPUs down
//! (Documentation/admin-guide/pm/cpufreq.rst; /sys/devices/system/cpu/cpu*/thermal_throttle). No host with these files
//! was available: tested on files based on this documentation.

use std::collections::BTreeSet;

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::parse::cpu_list;
use crate::{Context, Root};

const DIRECTORY: &str = "sys/devices/system/cpu";
const ONLINE: &str = "sys/devices/system/cpu/online";
/// Most CPUs that are read: on some machines each costs tens of microseconds.
const MAX_CPUS: usize = 16;

pub(super) struct Frequency;

impl Source for Frequency {
    fn id(&self) -> &'static str {
        "frequency"
    }

    fn summary(&self) -> &'static str {
        "clock of the first 16 CPUs: governor, current, limit, maximum, and thermal throttling"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.root.readable(ONLINE)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let root = &context.root;
        let mut cpus = cpu_list::parse("/sys/devices/system/cpu/online", &root.read(ONLINE)?)?;
        cpus.truncate(MAX_CPUS);
        let clocked = clock(snapshot, root, &cpus);
        let throttled = throttling(snapshot, root, &cpus);
        if clocked || throttled {
            return Ok(());
        }
        Err(Missing::because("the CPUs' clock is not visible here, as usual in a virtual machine"))
    }

    fn lasts(&self, name: &str) -> bool {
        ["limit_hz", "max_hz", "governor"].contains(&name)
    }
}

/// Records what cpufreq reports, if anything.
fn clock(snapshot: &mut Snapshot, root: &Root, cpus: &[u32]) -> bool {
    let read = |file: &str| per_cpu(root, cpus, &format!("cpufreq/{file}"));
    let hertz = |file: &str| read(file)?.iter().map(|text| kilohertz(text)).collect();
    let current: Option<Vec<u64>> = hertz("scaling_cur_freq");
    let limit: Option<Vec<u64>> = hertz("scaling_max_freq");
    let most: Option<Vec<u64>> = hertz("cpuinfo_max_freq");
    let facts = [
        ("current_min_hz", current.iter().flatten().min()),
        ("current_max_hz", current.iter().flatten().max()),
        ("limit_hz", limit.iter().flatten().min()),
        ("max_hz", most.iter().flatten().max()),
    ];
    for (name, value) in facts {
        if let Some(value) = value {
            snapshot.put(format!("frequency.{name}"), *value);
        }
    }
    let governors = read("scaling_governor");
    if let Some(governors) = &governors {
        let names: BTreeSet<&str> = governors.iter().map(|name| name.trim()).collect();
        snapshot.put("frequency.governor", names.into_iter().collect::<Vec<_>>().join(", "));
    }
    governors.is_some() || facts.iter().any(|(_, value)| value.is_some())
}

/// Records how often heat slowed a core down, if the machine counts it.
fn throttling(snapshot: &mut Snapshot, root: &Root, cpus: &[u32]) -> bool {
    let counts = per_cpu(root, cpus, "thermal_throttle/core_throttle_count");
    let counts: Option<Vec<u64>> =
        counts.and_then(|texts| texts.iter().map(|text| text.trim().parse().ok()).collect());
    if let Some(counts) = &counts {
        let sum = counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
        snapshot.put("frequency.throttle_events", sum);
    }
    counts.is_some()
}

/// The text of `file` for each CPU; `None` unless all of them have it.
fn per_cpu(root: &Root, cpus: &[u32], file: &str) -> Option<Vec<String>> {
    cpus.iter().map(|cpu| root.read(&format!("{DIRECTORY}/cpu{cpu}/{file}")).ok()).collect()
}

fn kilohertz(text: &str) -> Option<u64> {
    text.trim().parse::<u64>().ok()?.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_held_below_its_most_shows_it() {
        let host = tempfile::tempdir().unwrap();
        for (cpu, current) in [(0, "1200000"), (1, "800000")] {
            for (file, text) in [
                ("cpufreq/scaling_cur_freq", current),
                ("cpufreq/scaling_max_freq", "1600000"),
                ("cpufreq/cpuinfo_max_freq", "3600000"),
                ("cpufreq/scaling_governor", "powersave"),
                ("thermal_throttle/core_throttle_count", "3"),
            ] {
                let path = host.path().join(format!("{DIRECTORY}/cpu{cpu}/{file}"));
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, format!("{text}\n")).unwrap();
            }
        }
        std::fs::write(host.path().join(ONLINE), "0-1\n").unwrap();
        let context = Context { root: Root::at(host.path()), ..Context::default() };
        let mut snapshot = Snapshot::default();
        Frequency.snapshot(&context, &mut snapshot).unwrap();
        assert_eq!(snapshot.count("frequency.current_min_hz"), Ok(800_000_000));
        assert_eq!(snapshot.count("frequency.current_max_hz"), Ok(1_200_000_000));
        assert_eq!(snapshot.count("frequency.limit_hz"), Ok(1_600_000_000));
        assert_eq!(snapshot.count("frequency.max_hz"), Ok(3_600_000_000));
        assert_eq!(snapshot.text("frequency.governor"), Ok("powersave"));
        assert_eq!(snapshot.count("frequency.throttle_events"), Ok(6));
    }
}
