//! The file of a target that is a path: its mount, and its descriptors, opened as the plan reads or writes it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use goodput_kernel::{FileMount, Mounts, nfs_client};
use goodput_model::{EndName, PAGE_BYTES, Plan, Snapshot};
use goodput_mover::{MountedFile, cache};
use goodput_settings::MountAgain;
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::log::MountLog;
use crate::error::{EngineError, StorageError};

/// A file that is open several times, or several files of one length on one mount.
pub struct PlacedFile {
    /// The descriptors.
    pub files: Vec<OwnedFd>,
    /// Its length, bytes; at least 1.
    pub bytes: u64,
    /// Its mount.
    pub mount: FileMount,
    /// Whether the descriptors bypass the page cache.
    pub direct: bool,
    /// Whether they are written.
    pub writes: bool,
    /// Whether the mount is this measurement's own.
    pub private: bool,
    /// What the user should know.
    pub doubts: Vec<String>,
}

impl PlacedFile {
    /// Opens the files at `paths`, none of which has links. If the plan has options of an NFS mount, the export is
    /// mounted once more with them, where nobody else sees the mount. Blocks.
    pub fn open(paths: &[PathBuf], plan: &Plan) -> Result<Self, EngineError> {
        let writes = plan.direction.senders().contains(&EndName::Near);
        let here = FileOpening { paths, direct: plan.mount.direct, writes };
        let placed = here.open()?;
        match changes(plan) {
            changes if changes.is_empty() => Ok(placed),
            changes => again(&here, &placed.mount, plan, changes),
        }
    }

    /// Adds what this end knows of the file besides what the kernel reports of its mount.
    pub fn note(&self, facts: &mut Snapshot) {
        facts.put("mount.direct", u64::from(self.direct));
        facts.put("mount.private", u64::from(self.private));
        if self.writes {
            facts.lacks("mount.resident_percent", "the file is written");
            return;
        }
        if self.direct {
            facts.lacks("mount.resident_percent", "the file is read past the page cache");
            return;
        }
        let dropped = self.files.first().map(|file| {
            cache::drop_cached(file).map(|()| cache::resident_percent(file, self.bytes))
        });
        match dropped {
            Some(Ok(goodput_model::Known::Value(percent))) => {
                facts.put("mount.resident_percent", percent);
            }
            Some(Ok(goodput_model::Known::Missing(why))) => {
                facts.lacks("mount.resident_percent", why.to_string());
            }
            Some(Err(why)) => facts.lacks("mount.resident_percent", why.to_string()),
            None => facts.lacks("mount.resident_percent", "the file is not open"),
        }
    }
}

impl PlacedFile {
    /// All of the file at `path`, to be moved again and again.
    pub fn whole(&self, path: &Path, log: &Arc<MountLog>) -> MountedFile {
        MountedFile {
            name: path.display().to_string(),
            direct: self.direct,
            part: 0..self.bytes,
            passes: None,
            log: Arc::<MountLog>::clone(log),
            confirmed: Arc::default(),
        }
    }
}

/// The NFS mount options that the plan changes.
fn changes(plan: &Plan) -> Vec<(&'static str, String)> {
    let sizes = [("rsize", plan.nfs.rsize_bytes), ("wsize", plan.nfs.wsize_bytes)];
    let sizes = sizes.into_iter().filter_map(|(name, size)| Some((name, size?.0.to_string())));
    let nconnect = plan.nfs.nconnect.map(|count| ("nconnect", count.to_string()));
    sizes.chain(nconnect).collect()
}

/// How to open files.
struct FileOpening<'a> {
    paths: &'a [PathBuf],
    direct: Option<bool>,
    writes: bool,
}

impl FileOpening<'_> {
    /// Opens it in the mount namespace of the calling thread.
    fn open(&self) -> Result<PlacedFile, EngineError> {
        let path = self.path();
        let failed = |cause| cannot(if self.writes { "write" } else { "read" }, path, &cause);
        let file = self.once(path, OFlags::empty()).map_err(failed)?;
        let about = file.metadata().map_err(|cause| cannot("ask about", path, &cause))?;
        let name = path.display();
        if !about.is_file() {
            return Err(EngineError::Flow(format!(
                "{name} is not a regular file; name one to read"
            )));
        }
        if about.len() == 0 {
            let why = "is empty: there is nothing to measure; name a file of some hundred MB";
            return Err(EngineError::Flow(format!("{name} {why}")));
        }
        let mounts = Mounts::here().map_err(|cause| cannot("find the mount of", path, &cause))?;
        let mount = FileMount::of(file.as_fd(), Arc::new(mounts))
            .map_err(|why| EngineError::Flow(format!("can't find the mount of {name}: {why}")))?;
        let direct = self.can_be_direct(&mount)?;
        let flags = if direct { OFlags::DIRECT } else { OFlags::empty() };
        let open = |path: &PathBuf| self.once(path, flags).map(OwnedFd::from);
        let files = self.paths.iter().map(open).collect::<io::Result<_>>().map_err(failed)?;
        let (bytes, writes, doubts) = (about.len(), self.writes, Vec::new());
        Ok(PlacedFile { files, bytes, mount, direct, writes, private: false, doubts })
    }

    /// One of the paths: all are on one mount.
    fn path(&self) -> &Path {
        self.paths.first().map_or(Path::new(""), PathBuf::as_path)
    }

    fn once(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        // Don't wait for the other end of a named pipe; files ignore this.
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(self.writes).custom_flags(flags.bits() as i32).open(path)
    }

    /// Whether the page cache can be bypassed: some file systems then refuse to open the file, others to read it.
    fn can_be_direct(&self, mount: &FileMount) -> Result<bool, EngineError> {
        if self.direct == Some(false) {
            return Ok(false);
        }
        match self.once(self.path(), OFlags::DIRECT).and_then(|file| read_page(&file)) {
            Ok(()) => Ok(true),
            Err(cause) if cause.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                if self.direct == Some(true) {
                    let (path, kind) = (self.path().display(), &mount.mount.kind);
                    let why = format!(
                        "{path} is on a file system without O_DIRECT ({kind}): leave out mount.direct=on"
                    );
                    return Err(EngineError::Flow(why));
                }
                Ok(false)
            }
            Err(cause) => Err(cannot("read", self.path(), &cause)),
        }
    }
}

/// Reads the beginning of a file into page-aligned memory, as `O_DIRECT` demands.
fn read_page(file: &File) -> io::Result<()> {
    let page = PAGE_BYTES as usize;
    let mut room = vec![0; 2 * page];
    let start = room.as_ptr().align_offset(page).min(page);
    file.read_at(&mut room[start..start + page], 0).map(drop)
}

pub fn cannot(what: &str, path: &Path, cause: &io::Error) -> EngineError {
    StorageError::of(format!("can't {what} {}: {cause}", path.display()), cause).into()
}

/// The same file on this measurement's own mount with the changed options.
fn again(
    here: &FileOpening<'_>,
    mount: &FileMount,
    plan: &Plan,
    changes: Vec<(&'static str, String)>,
) -> Result<PlacedFile, EngineError> {
    let there = &mount.mount;
    if !there.is_nfs() {
        return Err(EngineError::Flow(not_nfs(here.path(), mount, &changes)));
    }
    let mut again = MountAgain {
        source: there.whole_source(),
        point: there.point.clone(),
        kind: there.kind.clone(),
        options: there.options.clone(),
        changes,
    };
    // Mounts with the same server and minor version share their connections (`nfs_match_client`, fs/nfs/client.c).
    let apart = plan.nfs.nconnect.and_then(|_| other_version(there.option("vers")));
    again.changes.extend(apart.map(|(_, other)| ("vers", other.to_string())));
    let placed = again.with(|| here.open())??;
    check(&placed, plan)?;
    let doubt = apart.map(|(version, other)| {
        format!(
            "measured with NFS {other}: mounts of one server and version share their connections, and {} is mounted with \
             NFS {version}",
            there.source
        )
    });
    Ok(PlacedFile { private: true, doubts: doubt.into_iter().collect(), ..placed })
}

/// Another minor version, whose connections the kernel keeps apart.
fn other_version(version: Option<&str>) -> Option<(&str, &'static str)> {
    match version? {
        "4.2" => Some(("4.2", "4.1")),
        "4.1" => Some(("4.1", "4.2")),
        _ => None,
    }
}

/// Whether the mount has the connections that the plan wants. Its sizes may be others: the server and the kernel have the
/// last word, and the record says what they made of them.
fn check(placed: &PlacedFile, plan: &Plan) -> Result<(), EngineError> {
    let mount = &placed.mount.mount;
    let Some(wanted) = plan.nfs.nconnect else { return Ok(()) };
    let statistics = placed.mount.statistics();
    let statistics = statistics.map_err(|why| EngineError::Flow(format!("nfs.nconnect: {why}")))?;
    match statistics.transports.len() {
        count if count == usize::from(wanted) => Ok(()),
        count => Err(EngineError::Flow(format!(
            "nfs.nconnect={wanted} has no effect: the kernel lets all mounts of {} share {count} of them; unmount the \
             others, or name the server by another of its addresses",
            mount.source
        ))),
    }
}

fn not_nfs(path: &Path, mount: &FileMount, changes: &[(&'static str, String)]) -> String {
    let names: Vec<_> = changes.iter().map(|(name, _)| format!("nfs.{name}")).collect();
    let (path, kind, point) = (path.display(), &mount.mount.kind, &mount.mount.point);
    let client = match nfs_client() {
        Ok(()) => String::new(),
        Err(why) => format!("; {why}"),
    };
    let takes = if names.len() == 1 { "is an option" } else { "are options" };
    format!("{path} is on {point} ({kind}), and {} {takes} of NFS mounts{client}", names.join(", "))
}
