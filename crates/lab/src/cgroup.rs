//! CPU quotas by control groups, versions 1 and 2
//! (Documentation/scheduler/sched-bwc.rst, Documentation/admin-guide/cgroup-v2.rst).

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::need::Lack;

/// Length of one period of a quota: the kernel's own default, microseconds.
const PERIOD_US: u64 = 100_000;

/// The kernel's minimum quota per period, microseconds (`min_cfs_quota_period`).
const MIN_QUOTA_US: u64 = 1_000;

/// Names of our groups begin with this, followed by the number of the process that created the group.
const PREFIX: &str = "goodput-lab-";

/// Where the CPU controller is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Hierarchy {
    V1(PathBuf),
    V2(PathBuf),
}

/// A control group of ours with one process in it. Dropping it releases the process and removes the group.
#[derive(Debug)]
pub(crate) struct Group {
    hierarchy: Hierarchy,
    path: PathBuf,
}

impl Group {
    /// A group in which `pid` may use `percent` of one CPU.
    pub(crate) fn with_quota(percent: f64, pid: u32) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let hierarchy = hierarchy()?;
        remove_abandoned(hierarchy.mount());
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let path = hierarchy.mount().join(name);
        fs::create_dir(&path).map_err(|error| at(&path, error))?;
        let group = Self { hierarchy, path };
        let quota = ((percent / 100.0 * PERIOD_US as f64) as u64).max(MIN_QUOTA_US);
        group.limit(quota)?;
        write(&group.path.join("cgroup.procs"), &pid.to_string())?;
        Ok(group)
    }

    fn limit(&self, quota: u64) -> io::Result<()> {
        match self.hierarchy {
            Hierarchy::V1(_) => {
                write(&self.path.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
                write(&self.path.join("cpu.cfs_quota_us"), &quota.to_string())
            }
            Hierarchy::V2(_) => write(&self.path.join("cpu.max"), &format!("{quota} {PERIOD_US}")),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let outside = self.hierarchy.mount().join("cgroup.procs");
        let inside = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        for pid in inside.lines() {
            // If the process has ended meanwhile, nothing is left to do.
            let _ = fs::write(&outside, pid);
        }
        if let Err(error) = fs::remove_dir(&self.path) {
            let path = self.path.display();
            // If nobody reads standard error, nothing more can be reported.
            let _ = writeln!(io::stderr(), "goodput lab: can't remove {path}: {error}");
        }
    }
}

impl Hierarchy {
    fn mount(&self) -> &Path {
        match self {
            Self::V1(path) | Self::V2(path) => path,
        }
    }
}

/// Removes groups of labs that were killed. A group that still has a process stays, because the kernel refuses.
fn remove_abandoned(mount: &Path) {
    let entries = fs::read_dir(mount).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        let gone = |pid: &str| !Path::new("/proc").join(pid).exists();
        if maker.is_some_and(gone) {
            // Another lab may have been faster.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Why no group can be created here, in words; `None` if it can.
pub(crate) fn missing() -> Option<Lack> {
    let forbids = |cause: &io::Error| cause.kind() == io::ErrorKind::PermissionDenied;
    let hierarchy = match hierarchy() {
        Ok(hierarchy) => hierarchy,
        Err(error) => return Some(Lack { not_permitted: forbids(&error), why: error.to_string() }),
    };
    let mount = hierarchy.mount();
    let error = io::Error::from(rustix::fs::access(mount, rustix::fs::Access::WRITE_OK).err()?);
    let why = format!("{} is not writable ({error}): run as root", mount.display());
    Some(Lack { not_permitted: forbids(&error), why })
}

/// The kernel's quota for the group of `pid`.
pub(crate) fn quota_of(pid: u32) -> io::Result<String> {
    let hierarchy = hierarchy()?;
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    let own = groups.lines().find_map(|line| own_group(line, &hierarchy));
    let own = own.ok_or_else(|| io::Error::other("the process is in no CPU group"))?;
    let path = hierarchy.mount().join(own.trim_start_matches('/'));
    match hierarchy {
        Hierarchy::V1(_) => read(&path.join("cpu.cfs_quota_us")),
        Hierarchy::V2(_) => read(&path.join("cpu.max")),
    }
}

/// The group in a line of /proc/PID/cgroup, `ID:CONTROLLERS:PATH`, if it belongs to this hierarchy.
fn own_group<'a>(line: &'a str, hierarchy: &Hierarchy) -> Option<&'a str> {
    let (_, rest) = line.split_once(':')?;
    let (controllers, path) = rest.split_once(':')?;
    let fits = match hierarchy {
        Hierarchy::V1(_) => controllers.split(',').any(|controller| controller == "cpu"),
        Hierarchy::V2(_) => controllers.is_empty(),
    };
    fits.then_some(path)
}

fn hierarchy() -> io::Result<Hierarchy> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let found = mounts.lines().find_map(|line| {
        hierarchy_of(line, |path| {
            fs::read_to_string(path.join("cgroup.controllers")).unwrap_or_default()
        })
    });
    found.ok_or_else(|| {
        io::Error::other("no control group hierarchy with the cpu controller is mounted")
    })
}

/// The CPU hierarchy in a line of /proc/self/mountinfo, proc_pid_mountinfo(5): the mount point is the fifth word; type
/// and options of the file system follow a lone dash.
fn hierarchy_of(line: &str, controllers: impl Fn(&Path) -> String) -> Option<Hierarchy> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let path = PathBuf::from(mount.split(' ').nth(4)?);
    let mut filesystem = filesystem.split(' ');
    let kind = filesystem.next()?;
    let options = filesystem.nth(1)?;
    let has = |list: &str, separator| list.trim().split(separator).any(|name| name == "cpu");
    match kind {
        "cgroup" if has(options, ',') => Some(Hierarchy::V1(path)),
        "cgroup2" if has(&controllers(&path), ' ') => Some(Hierarchy::V2(path)),
        _ => None,
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text).map_err(|error| at(path, error))
}

fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).map_err(|error| at(path, error))
}

fn at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str, controllers: &str) -> Option<Hierarchy> {
        hierarchy_of(line, |_| controllers.into())
    }

    #[test]
    fn both_versions_are_found_in_mountinfo() {
        let v1 = "35 25 0:30 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct";
        assert_eq!(found(v1, ""), Some(Hierarchy::V1("/sys/fs/cgroup/cpu".into())));
        let v2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
        assert_eq!(found(v2, "cpuset cpu io\n"), Some(Hierarchy::V2("/sys/fs/cgroup".into())));
        assert_eq!(found(v2, "memory\n"), None);
        let cpuset = "36 25 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset";
        assert_eq!(found(cpuset, ""), None);
    }

    #[test]
    fn broken_lines_are_passed_over() {
        for line in ["", " - ", "a b - cgroup", "1 2 3 4 /x - cgroup"] {
            assert_eq!(found(line, "cpu"), None, "{line:?}");
        }
    }

    #[test]
    fn a_process_finds_its_own_group() {
        let v1 = Hierarchy::V1("/sys/fs/cgroup/cpu".into());
        assert_eq!(own_group("4:cpu,cpuacct:/a/b", &v1), Some("/a/b"));
        assert_eq!(own_group("0::/a", &v1), None);
        assert_eq!(own_group("0::/a", &Hierarchy::V2("/c".into())), Some("/a"));
    }
}
