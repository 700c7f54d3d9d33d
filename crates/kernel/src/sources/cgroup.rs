//! The CPU quota of the control groups, version 1 or 2, of the program that moves the payload, mostly our own process,
//! and how often the quota throttled it.
//!
//! Only groups up to the mount point are visible: inside a container, an outer quota shows at most in our own
//! throttling. `ip netns exec` hides the host's /sys, and with it the mounted groups (ip-netns(8)). They are then read
//! through our ancestor processes, as far as permitted (ptrace(2), "access mode checking").

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::parse::cgroup::{Membership, Quota, parse_cfs, parse_max, parse_membership};
use crate::parse::keyed;
use crate::parse::mountinfo::{self, Mount};
use crate::parse::process::parse_parent;
use crate::{Context, Root};

const MEMBERSHIP: &str = "cgroup";
const MOUNTS: &str = "proc/self/mountinfo";
const STAT: &str = "proc/self/stat";
/// Most ancestors that are tried: a shell, sudo, a session, a service manager and some to spare.
const MAX_ANCESTORS: usize = 16;

pub(super) struct Cgroup;

impl Source for Cgroup {
    fn id(&self) -> &'static str {
        "cgroup"
    }

    fn summary(&self) -> &'static str {
        "CPU quota of goodput's cgroups, and how often it stopped goodput"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.root.readable(&context.process_file(MEMBERSHIP)?)?;
        context.root.readable(MOUNTS)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let root = &context.root;
        let hierarchy = Hierarchy::find(root, &context.process_file(MEMBERSHIP)?)?;
        let levels = hierarchy.levels(root)?;
        snapshot.put("cgroup.version", hierarchy.version.number());
        let limited: Vec<&Level> = levels.iter().filter(|level| level.quota.is_some()).collect();
        quota(snapshot, &limited);
        throttling(snapshot, &limited, levels.first());
        Ok(())
    }

    fn lasts(&self, name: &str) -> bool {
        ["version", "quota", "quota_percent"].contains(&name)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    fn number(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }
}

/// Where our group's files are.
#[derive(Debug, PartialEq, Eq)]
struct Hierarchy {
    version: Version,
    /// Mount point, without the leading slash.
    point: String,
    /// Our group's path below it, without slashes at the ends; empty at the top.
    path: String,
}

/// One group on the path from ours to the top.
#[derive(Debug, Default)]
struct Level {
    quota: Option<Quota>,
    periods: Option<u64>,
    throttled: Option<u64>,
    throttled_us: Option<u64>,
}

/// Picks one counter of a group.
type Counter = fn(&Level) -> Option<u64>;

impl Hierarchy {
    /// The hierarchy as we see it, otherwise as the nearest ancestor sees it.
    fn find(root: &Root, membership: &str) -> Result<Self, Missing> {
        let memberships = parse_membership(&root.read(membership)?)?;
        let own = mountinfo::parse(&root.read(MOUNTS)?)?;
        if let Some(found) = Self::mounted(&own, &memberships) {
            return Ok(found);
        }
        let mut reason = Missing::because("no parent process sees any");
        for ancestor in ancestors(root) {
            match Self::seen_by(ancestor, root, &memberships) {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => {}
                Err(why) => reason = why,
            }
        }
        Err(Missing::because(format!("no cgroups with the cpu controller here; {reason}")))
    }

    /// The hierarchy through another process's root, if that process has it mounted.
    fn seen_by(
        process: u32,
        root: &Root,
        memberships: &[Membership],
    ) -> Result<Option<Self>, Missing> {
        let mounts = mountinfo::parse(&root.read(&format!("proc/{process}/mountinfo"))?)?;
        let Some(found) = Self::mounted(&mounts, memberships) else { return Ok(None) };
        let point = format!("proc/{process}/root/{}", found.point);
        root.readable(&point)?;
        Ok(Some(Self { point, ..found }))
    }

    /// The hierarchy that has the cpu controller: version 1 if one is mounted, otherwise version 2.
    fn mounted(mounts: &[Mount], memberships: &[Membership]) -> Option<Self> {
        let cpu = "cpu".to_owned();
        let first = mounts
            .iter()
            .find(|mount| mount.kind == "cgroup" && mount.options.contains(&cpu))
            .zip(memberships.iter().find(|m| m.controllers.contains(&cpu)));
        let second = mounts
            .iter()
            .find(|mount| mount.kind == "cgroup2")
            .zip(memberships.iter().find(|m| m.controllers.is_empty()));
        first
            .map(|found| Self::at(Version::One, found))
            .or_else(|| second.map(|found| Self::at(Version::Two, found)))
    }

    /// The mount shows the hierarchy from the mount's root downwards, but the group's path starts at the top. If the
    /// group is outside the visible part, the mount point stands for it.
    fn at(version: Version, (mount, membership): (&Mount, &Membership)) -> Self {
        let shown = mount.root.trim_end_matches('/');
        let below = membership.path.strip_prefix(shown).filter(|rest| {
            (rest.is_empty() || rest.starts_with('/')) && !rest.split('/').any(|part| part == "..")
        });
        let path = below.unwrap_or_default().trim_matches('/').to_owned();
        Self { version, point: mount.point.trim_matches('/').to_owned(), path }
    }

    /// Our group first, the top last.
    fn levels(&self, root: &Root) -> Result<Vec<Level>, Missing> {
        let mut levels = Vec::new();
        let mut path = self.path.as_str();
        loop {
            let separator = if path.is_empty() { "" } else { "/" };
            let directory = format!("{}{separator}{path}", self.point);
            levels.push(level(root, self.version, &directory)?);
            if path.is_empty() {
                return Ok(levels);
            }
            path = path.rsplit_once('/').map_or("", |(above, _)| above);
        }
    }
}

/// Our ancestor processes, the nearest first, as far as they are visible.
fn ancestors(root: &Root) -> impl Iterator<Item = u32> {
    let parent = |stat: &str| root.read(stat).ok().as_deref().and_then(parse_parent);
    let next = move |process: &u32| parent(&format!("proc/{process}/stat"));
    std::iter::successors(parent(STAT), next).take_while(|process| *process > 0).take(MAX_ANCESTORS)
}

/// A group without these files has no quota: the topmost group never has them.
fn level(root: &Root, version: Version, directory: &str) -> Result<Level, Missing> {
    let file = |name: &str| root.read_if_there(&format!("{directory}/{name}"));
    let quota = match version {
        Version::One => match (file("cpu.cfs_quota_us")?, file("cpu.cfs_period_us")?) {
            (Some(quota), Some(period)) => parse_cfs(&quota, &period)?,
            _ => None,
        },
        Version::Two => file("cpu.max")?.map(|text| parse_max(&text)).transpose()?.flatten(),
    };
    let stat = file("cpu.stat")?.unwrap_or_default();
    let throttled_us = match version {
        Version::One => keyed(&stat, "throttled_time").map(|ns| ns / 1000),
        Version::Two => keyed(&stat, "throttled_usec"),
    };
    let (periods, throttled) = (keyed(&stat, "nr_periods"), keyed(&stat, "nr_throttled"));
    Ok(Level { quota, periods, throttled, throttled_us })
}

/// The tightest quota counts.
fn quota(snapshot: &mut Snapshot, limited: &[&Level]) {
    let share = |quota: &Quota| quota.quota_us as f64 / quota.period_us as f64;
    let tightest = limited
        .iter()
        .filter_map(|level| level.quota)
        .min_by(|one, other| share(one).total_cmp(&share(other)));
    match tightest {
        Some(quota) => {
            let text = format!("{} us of every {} us", quota.quota_us, quota.period_us);
            snapshot.put("cgroup.quota", text);
            snapshot.put("cgroup.quota_percent", share(&quota) * 100.0);
        }
        None => {
            snapshot.put("cgroup.quota", "none");
            snapshot.lacks("cgroup.quota_percent", "no cgroup limits goodput's CPU time");
        }
    }
}

/// Throttling of all groups with a quota together; if there is none, the count of our own group from the time when it
/// had one.
fn throttling(snapshot: &mut Snapshot, limited: &[&Level], own: Option<&Level>) {
    let counters: [(&str, Counter); 3] = [
        ("nr_periods", |level| level.periods),
        ("nr_throttled", |level| level.throttled),
        ("throttled_us", |level| level.throttled_us),
    ];
    for (name, get) in counters {
        let value = if limited.is_empty() {
            own.and_then(get)
        } else {
            limited.iter().map(|level| get(level)).sum()
        };
        let name = format!("cgroup.{name}");
        match value {
            Some(value) => snapshot.put(name, value),
            None => snapshot.lacks(name, "not in cpu.stat of goodput's cgroup"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(directory: &tempfile::TempDir, file: &str, text: &str) {
        let path = directory.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(directory: &tempfile::TempDir) -> Snapshot {
        let context = Context { root: Root::at(directory.path()), ..Context::default() };
        let mut snapshot = Snapshot::default();
        Cgroup.snapshot(&context, &mut snapshot).unwrap();
        snapshot
    }

    #[test]
    fn version_1_counts_the_tightest_of_our_groups_and_adds_up_throttling() {
        let host = tempfile::tempdir().unwrap();
        write(&host, MOUNTS, "1 2 0:3 / /cg rw - cgroup cgroup rw,cpu,cpuacct\n");
        write(&host, "proc/self/cgroup", "4:cpu,cpuacct:/a/b\n0::/else\n");
        for (group, quota, throttled) in [("cg/a", 30_000, 5), ("cg/a/b", 50_000, 7)] {
            write(&host, &format!("{group}/cpu.cfs_quota_us"), &format!("{quota}\n"));
            write(&host, &format!("{group}/cpu.cfs_period_us"), "100000\n");
            let stat = format!("nr_periods 10\nnr_throttled {throttled}\nthrottled_time 9000\n");
            write(&host, &format!("{group}/cpu.stat"), &stat);
        }
        let snapshot = read(&host);
        assert_eq!(snapshot.count("cgroup.version"), Ok(1));
        assert_eq!(snapshot.number("cgroup.quota_percent"), Ok(30.0));
        assert_eq!(snapshot.count("cgroup.nr_throttled"), Ok(12));
        assert_eq!(snapshot.count("cgroup.throttled_us"), Ok(18));
    }

    #[test]
    fn version_2_in_a_container_is_found_below_the_mounts_root() {
        let host = tempfile::tempdir().unwrap();
        write(&host, MOUNTS, "1 2 0:3 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        write(&host, "proc/self/cgroup", "0::/docker/x/job\n");
        write(&host, "sys/fs/cgroup/cpu.max", "150000 100000\n");
        write(
            &host,
            "sys/fs/cgroup/cpu.stat",
            "usage_usec 5\nnr_periods 1\nnr_throttled 1\nthrottled_usec 4\n",
        );
        write(&host, "sys/fs/cgroup/job/cpu.max", "max 100000\n");
        let snapshot = read(&host);
        assert_eq!(snapshot.number("cgroup.quota_percent"), Ok(150.0));
        assert_eq!(snapshot.count("cgroup.throttled_us"), Ok(4));
    }

    #[test]
    fn groups_that_ip_netns_exec_hides_are_seen_through_an_ancestor() {
        let host = tempfile::tempdir().unwrap();
        write(&host, MOUNTS, "1 2 0:3 / / rw - ext4 /dev/vda rw\n");
        write(&host, STAT, "9 (good put) S 8 9 9 0\n");
        write(&host, "proc/8/stat", "8 (a) b) S 7 8 8 0\n");
        write(&host, "proc/8/mountinfo", "1 2 0:3 / / rw - ext4 /dev/vda rw\n");
        write(&host, "proc/7/stat", "7 (init) S 0 7 7 0\n");
        write(&host, "proc/7/mountinfo", "1 2 0:3 / /cg rw - cgroup cgroup rw,cpu,cpuacct\n");
        write(&host, "proc/self/cgroup", "4:cpu,cpuacct:/a\n0::/else\n");
        let context = Context { root: Root::at(host.path()), ..Context::default() };
        let why = Cgroup.snapshot(&context, &mut Snapshot::default()).unwrap_err().to_string();
        assert!(why.contains("can't read /proc/7/root/cg"), "{why}");
        write(&host, "proc/7/root/cg/a/cpu.cfs_quota_us", "20000\n");
        write(&host, "proc/7/root/cg/a/cpu.cfs_period_us", "100000\n");
        write(&host, "proc/7/root/cg/a/cpu.stat", "nr_throttled 3\nthrottled_time 4000\n");
        let snapshot = read(&host);
        assert_eq!(snapshot.number("cgroup.quota_percent"), Ok(20.0));
        assert_eq!(snapshot.count("cgroup.throttled_us"), Ok(4));
    }

    #[test]
    fn no_quota_is_said_in_words_and_never_as_zero() {
        let host = tempfile::tempdir().unwrap();
        write(&host, MOUNTS, "1 2 0:3 / /cg rw - cgroup2 cgroup2 rw\n");
        write(&host, "proc/self/cgroup", "0::/../outside\n");
        let snapshot = read(&host);
        assert_eq!(snapshot.text("cgroup.quota"), Ok("none"));
        assert!(snapshot.number("cgroup.quota_percent").is_err());
        assert!(snapshot.count("cgroup.nr_throttled").is_err());
    }
}
