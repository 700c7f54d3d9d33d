//! Flows that read a file on a mount. The kernel, or the program behind the mount, talks with the server; this end sees
//! the payload, and of NFS what the kernel counts.

mod first;
mod log;
mod place;

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use goodput_kernel::FileMount;
use goodput_model::{MountReach, Plan, Snapshot};
use goodput_mover::{Awaited, EarlyPayload, MountedFile};
use goodput_wire::ticket::FlowTicket;

use crate::error::EngineError;
use crate::near::flows::Opened;
use crate::run::traffic::Connected;
use log::About;
use place::PlacedFile;

pub use log::MountLog;

/// Flows that are to read a file on a mount.
pub struct MountedFlows {
    /// The flows.
    pub opened: Opened,
    /// What becomes known of their passes.
    pub log: Arc<MountLog>,
    /// The mount.
    pub mount: FileMount,
    /// What is known of the file beside.
    pub facts: Snapshot,
}

/// Reads the file at `path` once, then opens it for the flows of `plan`. Each reads a part of its own. Blocks.
pub fn open(
    path: &Path,
    plan: &Plan,
    tickets: &[FlowTicket],
    awaited: &Awaited,
) -> Result<MountedFlows, EngineError> {
    let mut placed = PlacedFile::open(path, plan, tickets.len() + 1)?;
    let parts = parts(placed.bytes, tickets.len())?;
    let none = || EngineError::Flow("there is no flow to open".into());
    let alone = placed.files.pop().ok_or_else(none)?;
    let chunk = usize::try_from(plan.chunk_bytes.0).unwrap_or(usize::MAX);
    let about = about(&placed);
    let log = Arc::new(MountLog::new(about));
    let whole = MountedFile {
        name: path.display().to_string(),
        direct: placed.direct,
        part: 0..placed.bytes,
        passes: None,
        log: Arc::<MountLog>::clone(&log),
    };
    log.first(first::read(alone, whole.clone(), chunk, awaited)?);
    let mut facts = Snapshot::default();
    placed.note(&mut facts);
    let doubts = placed.doubts.drain(..).chain(local(path, &placed.mount)).collect();
    let flow = |((ticket, file), part): ((&FlowTicket, OwnedFd), Range<u64>)| Connected {
        flow: ticket.flow,
        socket: file,
        framing: ticket.framing.clone(),
        early: EarlyPayload::default(),
        bodies: None,
        file: Some(MountedFile { part, ..whole.clone() }),
    };
    let flows = tickets.iter().zip(placed.files.drain(..)).zip(parts).map(flow).collect();
    let opened = Opened { flows, peer: peer(&placed.mount), doubts };
    Ok(MountedFlows { opened, log, mount: placed.mount, facts })
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

/// The server, as the mount has its address (`addr=`, nfs(5) and mount.cifs(8)).
fn peer(mount: &FileMount) -> Option<SocketAddr> {
    let address: IpAddr = mount.mount.option("addr")?.parse().ok()?;
    Some(SocketAddr::new(address, 0))
}

/// No network is measured where there is none.
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

/// The part of a file that each of so many flows has, in whole pages but for its end.
fn parts(bytes: u64, flows: usize) -> Result<Vec<Range<u64>>, EngineError> {
    const PAGE_BYTES: u64 = 4096;
    let pages = bytes.div_ceil(PAGE_BYTES);
    let flows = flows.max(1) as u64;
    if pages < flows {
        return Err(EngineError::Target(format!(
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
