//! The mount that a file is on, and its counters.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use goodput_model::Missing;

use crate::Root;
use crate::parse::mountinfo::{self, Mount};
use crate::parse::mountstats::{self, NfsStatistics};

/// Most bytes read of either file. A host with thousands of mounts stays below.
const MAX_BYTES: usize = 8 << 20;

/// The mounts of one mount namespace. Their files stay open, so they can be queried when no thread is in the namespace
/// any longer.
#[derive(Debug)]
pub struct Mounts {
    info: File,
    statistics: Result<File, Missing>,
}

impl Mounts {
    /// The mounts of the calling thread's namespace.
    pub fn here() -> io::Result<Self> {
        // Only a folder directly below /proc has mountstats, and each thread has one there (proc(5)).
        let own = std::fs::read_link("/proc/thread-self")?;
        let thread = own.file_name().ok_or(io::ErrorKind::NotFound)?;
        Self::of(&Path::new("/proc").join(thread))
    }

    /// The mounts that the files in a thread's folder list.
    fn of(folder: &Path) -> io::Result<Self> {
        let statistics = File::open(folder.join("mountstats"));
        let why = |cause: io::Error| Missing::because(format!("can't read mountstats: {cause}"));
        Ok(Self {
            info: File::open(folder.join("mountinfo"))?,
            statistics: statistics.map_err(why),
        })
    }

    fn all(&self) -> Result<Vec<Mount>, Missing> {
        Ok(mountinfo::parse(&text(&self.info, "mountinfo")?)?)
    }
}

/// The mount that a file is on.
#[derive(Debug, Clone)]
pub struct FileMount {
    mounts: Arc<Mounts>,
    /// The mount's properties.
    pub mount: Mount,
}

impl FileMount {
    /// The mount of an open file, by the kernel's number for the mount (`mnt_id`, proc_pid_fdinfo(5)).
    pub fn of(file: BorrowedFd<'_>, mounts: Arc<Mounts>) -> Result<Self, Missing> {
        let name = format!("proc/self/fdinfo/{}", file.as_raw_fd());
        let text = Root::default().read(&name)?;
        let id = text.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
        let id: u64 = id.ok_or_else(|| Missing::because(format!("/{name} names no mount")))?;
        Self::with(id, mounts)
    }

    pub(crate) fn with(id: u64, mounts: Arc<Mounts>) -> Result<Self, Missing> {
        let none = || Missing::because("the file's mount is not visible in this mount namespace");
        let mount = mounts.all()?.into_iter().find(|mount| mount.id == id).ok_or_else(none)?;
        Ok(Self { mounts, mount })
    }

    /// Its counts so far; missing unless it is NFS.
    pub fn statistics(&self) -> Result<NfsStatistics, Missing> {
        let file = self.mounts.statistics.as_ref().map_err(Clone::clone)?;
        // Mounts on top of each other share one name; both files list them in the same order.
        let above = |mount: &Mount| mount.point == self.mount.point;
        let all = self.mounts.all()?;
        let place = all.iter().filter(|mount| above(mount)).position(|m| m.id == self.mount.id);
        let gone = || Missing::because("it was unmounted meanwhile");
        let place = place.ok_or_else(gone)?;
        let counted = mountstats::parse(&text(file, "mountstats")?)?;
        let mut same = counted.into_iter().filter(|mount| mount.point == self.mount.point);
        let own = same.nth(place).ok_or_else(gone)?;
        own.nfs.ok_or_else(|| {
            let kind = &self.mount.kind;
            Missing::because(format!("the kernel keeps no statistics of a mount of type {kind}"))
        })
    }
}

/// `Ok`, or why this kernel can't mount NFS: it has neither the client nor a module for it.
pub fn nfs_client() -> Result<(), Missing> {
    let root = Root::default();
    let known = root.read("proc/filesystems")?;
    if known.lines().any(|line| line.split_whitespace().last() == Some("nfs")) {
        return Ok(());
    }
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let folder = format!("lib/modules/{release}");
    // Lists of paths, the latter with each module's dependencies (modules.dep(5)).
    let lists =
        ["modules.builtin", "modules.dep"].map(|list| root.read(&format!("{folder}/{list}")));
    let is_nfs =
        |line: &str| line.split(':').next().is_some_and(|path| path.contains("/fs/nfs/nfs.ko"));
    if lists.iter().flatten().any(|list| list.lines().any(is_nfs)) {
        return Err(Missing::because("this kernel has not loaded its NFS client: modprobe nfs"));
    }
    Err(Missing::because(format!(
        "this kernel ({release}) has no NFS client: /proc/filesystems does not list it, and /{folder} has no module nfs"
    )))
}

/// The whole text of a file that the kernel rewrites whenever it is read from the beginning.
fn text(file: &File, name: &str) -> Result<String, Missing> {
    let mut bytes = Vec::new();
    let mut room = vec![0; 1 << 16];
    while bytes.len() < MAX_BYTES {
        match file.read_at(&mut room, bytes.len() as u64) {
            Ok(0) => break,
            Ok(read) => bytes.extend_from_slice(&room[..read]),
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(Missing::because(format!("can't read {name}: {cause}"))),
        }
    }
    match bytes.last() {
        None => Err(Missing::because(format!("{name} is empty"))),
        Some(b'\n') => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Some(_) => Err(Missing::because(format!("{name} is cut short"))),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::fd::AsFd;

    use super::*;

    /// The mounts that the files in a folder list.
    pub(crate) fn listed_in(folder: &Path) -> io::Result<Arc<Mounts>> {
        Mounts::of(folder).map(Arc::new)
    }

    #[test]
    fn the_mount_of_an_open_file_is_found() {
        let proc = File::open("/proc/self/stat").unwrap();
        let found = FileMount::of(proc.as_fd(), Arc::new(Mounts::here().unwrap())).unwrap();
        assert_eq!((found.mount.point.as_str(), found.mount.kind.as_str()), ("/proc", "proc"));
        let why = found.statistics().unwrap_err().to_string();
        assert!(why.contains("type proc") || why.contains("mountstats"), "{why}");
    }

    #[test]
    fn of_two_mounts_on_one_place_the_right_one_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let info = |id: u64| format!("{id} 1 0:{id} / /mnt/a\\040b rw - nfs4 n:/e rw,rsize=1\n");
        file("mountinfo", &(info(7) + &info(8)));
        let counted = |calls: u64| {
            let head = "device n:/e mounted on /mnt/a\\040b with fstype nfs4 statvers=1.1\n";
            format!("{head}\tper-op statistics\n\t        READ: {calls} 1 0 1 1 1 1 1 0\n\n")
        };
        file("mountstats", &(counted(3) + &counted(5)));
        let mounts = listed_in(folder.path()).unwrap();
        let calls = |id| {
            let mount = FileMount::with(id, Arc::clone(&mounts)).unwrap();
            mount.statistics().unwrap().operations[0].calls
        };
        assert_eq!((calls(7), calls(8)), (3, 5));
        assert!(FileMount::with(9, Arc::clone(&mounts)).is_err());
        let kept = FileMount::with(8, Arc::clone(&mounts)).unwrap();
        file("mountinfo", &info(7));
        assert!(kept.statistics().unwrap_err().to_string().contains("unmounted"));
    }
}
