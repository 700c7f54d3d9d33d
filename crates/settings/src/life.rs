//! Whether a network namespace is still alive, as far as is visible from here.
//!
//! Processes and their threads, descriptors and mounts keep a namespace alive (namespaces(7)), in any
//! container of the host. A process sees all of them only from the initial process namespace, with the
//! right to inspect other processes. If only a socket in another namespace keeps a namespace alive, nobody
//! can see or enter it.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use goodput_netlink::namespace;

use crate::place::Place;

/// `PROC_PID_INIT_INO` of include/linux/proc_ns.h: the inode number of the initial process namespace.
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Where ip-netns(8) keeps namespaces by name.
const NAMES: &str = "/run/netns";

/// What is known about a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Life {
    /// Something here keeps it alive: this file leads into it.
    Lives(PathBuf),
    /// Nothing on this host keeps it alive.
    Gone,
    /// Nothing visible from here keeps it alive; the reason why not everything is visible.
    Unseen(&'static str),
}

/// Where to look.
struct Sight {
    proc: PathBuf,
    names: PathBuf,
}

/// What is known about the namespace of `place`.
pub(crate) fn of(place: &Place) -> Life {
    let sight = Sight { proc: "/proc".into(), names: NAMES.into() };
    sight.life_of(place)
}

/// The prefix that makes a command run in the namespace that a file leads into.
pub(crate) fn enter(file: &Path) -> String {
    match (file.parent(), file.file_name()) {
        (Some(folder), Some(name)) if folder == Path::new(NAMES) => {
            format!("ip netns exec {}", name.display())
        }
        _ => format!("nsenter --net={}", file.display()),
    }
}

/// Whether the process with this number runs, as far as is visible from here.
pub(crate) fn runs(pid: u32) -> bool {
    is_running(Path::new(&format!("/proc/{pid}")))
}

impl Sight {
    fn life_of(&self, place: &Place) -> Life {
        let names = fs::read_dir(&self.names).into_iter().flatten().flatten();
        if let Some(name) = names.map(|entry| entry.path()).find(|name| is(name, place)) {
            return Life::Lives(name);
        }
        let mut unseen = self.blind_spot();
        for process in self.processes() {
            match look(&process, place) {
                Ok(Some(file)) => return Life::Lives(file),
                Ok(None) => {}
                Err(error) if has_ended(&error, &process) => {}
                Err(_) => unseen = Some(barred(rustix::process::geteuid().is_root())),
            }
        }
        unseen.map_or(Life::Gone, Life::Unseen)
    }

    fn processes(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.proc).into_iter().flatten().flatten();
        let number = |entry: &fs::DirEntry| {
            entry.file_name().to_str().is_some_and(|name| name.bytes().all(|b| b.is_ascii_digit()))
        };
        entries.filter(number).map(|entry| entry.path()).collect()
    }

    /// Why some processes of the host are not even listed.
    fn blind_spot(&self) -> Option<&'static str> {
        let own = fs::metadata(self.proc.join("self/ns/pid")).map(|status| status.ino());
        if own.ok() != Some(FIRST_PID_NAMESPACE) {
            return Some("processes outside this container can't be seen");
        }
        // There is always a first process; hidepid of proc(5) hides other users' processes.
        (!self.proc.join("1").exists()).then_some("/proc hides the processes of other users")
    }
}

/// The thread, descriptor or mount of a process that keeps the namespace alive, if one does.
fn look(process: &Path, place: &Place) -> io::Result<Option<PathBuf>> {
    for thread in fs::read_dir(process.join("task"))?.flatten() {
        let path = thread.path().join("ns/net");
        match fs::metadata(&path) {
            Ok(status) if status.ino() == place.netns && may_be(&path, place) => {
                return Ok(Some(path));
            }
            Err(error) if !has_ended(&error, &thread.path()) => return Err(error),
            _ => {}
        }
    }
    let name = format!("net:[{}]", place.netns);
    for descriptor in fs::read_dir(process.join("fd"))?.flatten() {
        let path = descriptor.path();
        let named = fs::read_link(&path).is_ok_and(|link| link == Path::new(&name));
        if named && may_be(&path, place) {
            return Ok(Some(path));
        }
    }
    // From here, a mount looks the same as one of a later namespace with the same number, so it counts.
    let mounts = fs::read_to_string(process.join("mountinfo"))
        .or_else(|error| if has_ended(&error, process) { Ok(String::new()) } else { Err(error) })?;
    // proc_pid_mountinfo(5): the fifth field is the mount point.
    let mut lines = mounts.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mount = lines.find(|words| words.contains(&name.as_str()));
    Ok(mount.map(|words| {
        let point = words.get(4).copied().unwrap_or_default();
        process.join("root").join(point.trim_start_matches('/'))
    }))
}

/// Whether the process or thread below `task` has ended, judged by an error on one of its files: an ended task
/// has neither files nor namespaces. If a task is gone, the kernel answers as if access were forbidden
/// (fs/proc/namespaces.c `proc_ns_get_link`); access is really forbidden only if the task still runs.
fn has_ended(error: &io::Error, task: &Path) -> bool {
    is_gone(error) || error.kind() == io::ErrorKind::PermissionDenied && !is_running(task)
}

/// Whether a process or thread exists and is neither a zombie nor dead (proc_pid_stat(5)).
pub(crate) fn is_running(task: &Path) -> bool {
    let status = fs::read_to_string(task.join("stat"));
    // The name in brackets may contain any character.
    let state = |status: String| status.rsplit_once(") ")?.1.chars().next();
    match status {
        Ok(status) => !matches!(state(status), Some('Z' | 'X' | 'x')),
        Err(error) => !is_gone(&error),
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || matches!(error.raw_os_error(), Some(libc::ESRCH | libc::EINVAL))
}

/// Why a process could not be inspected.
fn barred(root: bool) -> &'static str {
    match root {
        // A security module or a missing capability hides it.
        true => "even root may not inspect all processes here",
        false => "goodput may not inspect all processes; root may",
    }
}

fn is(path: &Path, place: &Place) -> bool {
    fs::metadata(path).is_ok_and(|status| status.ino() == place.netns) && may_be(path, place)
}

/// Whether the namespace that `path` names, which has the same inode, has no other cookie.
fn may_be(path: &Path, place: &Place) -> bool {
    let cookie = namespace::open(path)
        .and_then(|namespace| namespace::inside(namespace.as_fd(), namespace::cookie));
    match (cookie, place.netns_cookie) {
        (Ok(Some(one)), Some(other)) => one == other,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A made-up /proc with one process, as seen from the initial process namespace or from a container.
    fn sight(folder: &Path) -> (Sight, Place) {
        let proc = folder.join("proc");
        fs::create_dir_all(proc.join("1/task/1/ns")).unwrap();
        fs::create_dir_all(proc.join("1/fd")).unwrap();
        fs::write(proc.join("1/mountinfo"), "21 1 0:4 net:[4026531840] /run/x rw - nsfs nsfs rw\n")
            .unwrap();
        fs::write(proc.join("1/task/1/ns/net"), "").unwrap();
        let place = Place { netns: 7, netns_cookie: None, ..Place::here().unwrap() };
        (Sight { proc, names: folder.join("netns") }, place)
    }

    #[test]
    fn threads_descriptors_mounts_and_names_keep_a_namespace_alive() {
        let folder = tempfile::tempdir().unwrap();
        let (sight, place) = sight(folder.path());
        let of = |netns| sight.life_of(&Place { netns, ..place.clone() });
        let thread = fs::metadata(sight.proc.join("1/task/1/ns/net")).unwrap().ino();
        let lives = |file: &str| Life::Lives(sight.proc.join(file));
        assert_eq!(of(thread), lives("1/task/1/ns/net"));
        assert_eq!(of(4026531840), lives("1/root/run/x"), "a mount");
        symlink("net:[77]", sight.proc.join("1/fd/5")).unwrap();
        assert_eq!(of(77), lives("1/fd/5"), "a descriptor");
        fs::create_dir(&sight.names).unwrap();
        fs::write(sight.names.join("lab"), "").unwrap();
        let name = sight.names.join("lab");
        assert_eq!(of(fs::metadata(&name).unwrap().ino()), Life::Lives(name));
        assert!(matches!(of(8), Life::Unseen(_)), "this made-up /proc is no initial namespace's");
    }

    #[test]
    fn the_way_into_a_namespace_is_a_command() {
        assert_eq!(enter(Path::new("/run/netns/lab")), "ip netns exec lab");
        assert_eq!(enter(Path::new("/proc/7/ns/net")), "nsenter --net=/proc/7/ns/net");
    }

    #[test]
    fn a_process_runs_until_it_has_ended() {
        assert!(runs(std::process::id()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        goodput_testing::wait_for("a zombie", || !runs(child.id()));
        child.wait().unwrap();
        assert!(!runs(child.id()));
    }

    #[test]
    fn what_ends_while_it_is_looked_at_is_gone_and_what_runs_is_forbidden() {
        let folder = tempfile::tempdir().unwrap();
        let forbidden = io::Error::from(io::ErrorKind::PermissionDenied);
        let status = |state| fs::write(folder.path().join("stat"), format!("7 (a) b) {state} 1 7"));
        for (state, ended) in [("S", false), ("R", false), ("Z", true), ("X", true)] {
            status(state).unwrap();
            assert_eq!(has_ended(&forbidden, folder.path()), ended, "{state}");
        }
        assert!(has_ended(&forbidden, &folder.path().join("none")));
        status("S").unwrap();
        assert!(has_ended(&io::Error::from_raw_os_error(libc::ESRCH), folder.path()));
    }

    #[test]
    fn root_is_not_sent_to_root() {
        assert!(barred(false).contains("root may"));
        assert!(barred(true).contains("even root may not"));
        let folder = tempfile::tempdir().unwrap();
        let (sight, place) = sight(folder.path());
        // Not even root can list a file.
        fs::create_dir(sight.proc.join("2")).unwrap();
        fs::write(sight.proc.join("2/task"), "").unwrap();
        let root = rustix::process::geteuid().is_root();
        let nowhere = Place { netns: 8, ..place };
        assert_eq!(sight.life_of(&nowhere), Life::Unseen(barred(root)));
    }

    #[test]
    fn from_a_container_a_namespace_is_unseen_rather_than_gone() {
        let name = "from_a_container_a_namespace_is_unseen_rather_than_gone";
        // A number that no namespace has.
        let nowhere = Place { netns: 1, netns_cookie: Some(u64::MAX), ..Place::here().unwrap() };
        if std::env::var_os("GOODPUT_TEST_CONTAINED").is_some() {
            let life = of(&nowhere);
            assert!(matches!(life, Life::Unseen(why) if why.contains("container")), "{life:?}");
            return;
        }
        let run = std::process::Command::new("unshare")
            .args(["--pid", "--fork", "--mount-proc", "--"])
            .arg(fs::read_link("/proc/self/exe").unwrap())
            .args(["--exact", &format!("life::tests::{name}"), "--nocapture"])
            .env("GOODPUT_TEST_CONTAINED", "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        if said.contains("Operation not permitted") {
            return goodput_testing::skip("root for a process namespace");
        }
        assert!(run.status.success(), "{said}");
        assert!(String::from_utf8_lossy(&run.stdout).contains("1 passed"));
    }
}
