//! Flows that read a file on a mount, or write files there. The kernel, or the program behind the mount, talks to the
//! server; this end sees the payload and, for NFS, the kernel's counters.

mod first;
mod log;
mod place;
mod scratch;

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use goodput_kernel::FileMount;
use goodput_model::{EndName, MountReach, PAGE_BYTES, Plan, Snapshot};
use goodput_mover::{Awaited, EarlyPayload, MountedFile};
use goodput_wire::ticket::FlowTicket;

use crate::control::target::MountedTarget;
use crate::error::EngineError;
use crate::near::flows::Opened;
use crate::run::traffic::Connected;
use log::About;
use place::PlacedFile;

pub use log::MountLog;
pub use scratch::{ScratchFiles, undo};

/// Flows that will read a file on a mount, or write files there.
pub struct MountedFlows {
    /// The flows.
    pub opened: Opened,
    /// What becomes known of their passes.
    pub log: Arc<MountLog>,
    /// The mount.
    pub mount: FileMount,
    /// What else is known of the file.
    pub facts: Snapshot,
    /// The files that they write, to be removed.
    pub scratch: Option<ScratchFiles>,
}

/// Opens what the flows of `plan` read or write at `target`. Blocks.
pub fn open(
    target: &MountedTarget,
    plan: &Plan,
    tickets: &[FlowTicket],
    awaited: &Awaited,
) -> Result<MountedFlows, EngineError> {
    if plan.direction.senders().contains(&EndName::Near) {
        return write(target, plan, tickets);
    }
    read(&target.path, plan, tickets, awaited)
}

/// Reads the file at `path` once, then opens it for each flow, which reads its own part.
fn read(
    path: &Path,
    plan: &Plan,
    tickets: &[FlowTicket],
    awaited: &Awaited,
) -> Result<MountedFlows, EngineError> {
    let path = find(path)?;
    let mut placed = PlacedFile::open(&vec![path.clone(); tickets.len() + 1], plan)?;
    let parts = parts(placed.bytes, tickets.len())?;
    let none = || EngineError::Flow("there is no flow to open".into());
    let alone = placed.files.pop().ok_or_else(none)?;
    let chunk = usize::try_from(plan.chunk_bytes.0).unwrap_or(usize::MAX);
    let log = Arc::new(MountLog::new(about(&placed)));
    let whole = placed.whole(&path, &log);
    log.first(first::read(alone, whole, chunk, awaited)?);
    Ok(flows(placed, tickets, &vec![path; tickets.len()], parts, log))
}

/// Creates a file for each flow beside the file at the path of `target`, or in that folder, and opens it.
fn write(
    target: &MountedTarget,
    plan: &Plan,
    tickets: &[FlowTicket],
) -> Result<MountedFlows, EngineError> {
    let folder = folder(&target.path)?;
    let notes = target.notes.as_deref();
    let done = notes.map(|notes| scratch::settle(&folder, notes));
    let scratch = ScratchFiles::make(&folder, tickets.len(), notes)?;
    let mut placed = PlacedFile::open(scratch.paths(), plan)?;
    placed.doubts.extend(done.into_iter().flatten());
    let parts = std::iter::repeat_n(0..placed.bytes, tickets.len()).collect();
    let log = Arc::new(MountLog::new(about(&placed)));
    let flows = flows(placed, tickets, scratch.paths(), parts, log);
    Ok(MountedFlows { scratch: Some(scratch), ..flows })
}

/// The folder at a path, or the folder of the file at that path, without links.
fn folder(path: &Path) -> Result<PathBuf, EngineError> {
    if path.is_dir() {
        return find(path);
    }
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => find(Path::new(".")),
        Some(parent) => find(parent),
        None => find(path),
    }
}

fn find(path: &Path) -> Result<PathBuf, EngineError> {
    path.canonicalize().map_err(|cause| place::cannot("find", path, &cause))
}

/// The flows, each with its part of the file at its path.
fn flows(
    mut placed: PlacedFile,
    tickets: &[FlowTicket],
    paths: &[PathBuf],
    parts: Vec<Range<u64>>,
    log: Arc<MountLog>,
) -> MountedFlows {
    let mut facts = Snapshot::default();
    placed.note(&mut facts);
    let at = paths.first().map_or(Path::new(""), PathBuf::as_path);
    let doubts = placed.doubts.drain(..).chain(local(at, &placed.mount)).collect();
    let files: Vec<_> = placed.files.drain(..).collect();
    let each = tickets.iter().zip(files).zip(paths.iter().zip(parts));
    let flows = each.map(|((ticket, file), (path, part))| Connected {
        flow: ticket.flow,
        socket: file,
        framing: ticket.framing.clone(),
        early: EarlyPayload::default(),
        bodies: None,
        file: Some(MountedFile { part, ..placed.whole(path, &log) }),
    });
    let opened = Opened { flows: flows.collect(), peer: peer(&placed.mount), doubts };
    MountedFlows { opened, log, mount: placed.mount, facts, scratch: None }
}

fn about(placed: &PlacedFile) -> About {
    let mount = &placed.mount.mount;
    let version = mount.option("vers").map_or(String::new(), |version| format!(" {version}"));
    About {
        version: format!("{}{version}", mount.kind),
        source: mount.source.clone(),
        file_bytes: placed.bytes,
        connections: placed.mount.statistics().map(|nfs| nfs.transports.len() as u64).into(),
    }
}

/// The server, by the address in the mount's options (`addr=`, nfs(5) and mount.cifs(8)).
fn peer(mount: &FileMount) -> Option<SocketAddr> {
    let address: IpAddr = mount.mount.option("addr")?.parse().ok()?;
    Some(SocketAddr::new(address, 0))
}

/// Without a network, no network is measured.
fn local(path: &Path, mount: &FileMount) -> Option<String> {
    let (path, kind, point) = (path.display(), &mount.mount.kind, &mount.mount.point);
    match MountReach::of(kind) {
        MountReach::Network => None,
        MountReach::Local => Some(format!(
            "{path} is on a local file system ({kind} on {point}): this is a disk, or memory, and no network"
        )),
        MountReach::Unknown => Some(format!(
            "{path} is on {point} ({kind}), which a program provides: whether a network is behind it, and what it keeps \
             in its memory, can't be seen"
        )),
    }
}

/// The part of a file for each of this many flows, in whole pages except at its end.
fn parts(bytes: u64, flows: usize) -> Result<Vec<Range<u64>>, EngineError> {
    let pages = bytes.div_ceil(PAGE_BYTES);
    let flows = flows.max(1) as u64;
    if pages < flows {
        return Err(EngineError::Flow(format!(
            "a file of {bytes} bytes has no part for each of {flows} flows: name a longer one, or use fewer --flows"
        )));
    }
    let begin = |flow: u64| pages * flow / flows * PAGE_BYTES;
    Ok((0..flows).map(|flow| begin(flow)..begin(flow + 1).min(bytes)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_a_file_without_gaps() {
        assert_eq!(parts(10_000, 1).unwrap().first(), Some(&(0..10_000)));
        assert_eq!(parts(10_000, 2).unwrap(), [0..4096, 4096..10_000]);
        assert_eq!(parts(3 * 4096, 3).unwrap(), [0..4096, 4096..8192, 8192..12_288]);
        assert!(parts(4096, 2).unwrap_err().to_string().contains("fewer --flows"));
    }
}
