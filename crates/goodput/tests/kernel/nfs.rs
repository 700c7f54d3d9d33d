//! The kernel's NFS client, against nfs-ganesha on loopback: options and counts of a mount, and the export mounted once
//! more with other options, for files that are read and files that are written.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use goodput_model::{Known, MountReach, Record};
use goodput_testing::{skip, wait_for};
use libtest_mimic::{Failed, Trial};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::in_turn;
use crate::program::{exe, goodput};

const FILE_BYTES: usize = 4 << 20;
const SERVER: &str = "/usr/bin/ganesha.nfsd";

/// The server has one port.
static TURN: Mutex<()> = Mutex::new(());

/// Every test of this module.
pub fn all() -> Vec<Trial> {
    vec![
        in_turn(&TURN, "an_nfs_mount_is_read_with_its_counts_and_with_other_options", read),
        in_turn(&TURN, "an_nfs_mount_is_written_with_its_counts_and_with_other_options", written),
        in_turn(&TURN, "a_mount_whose_server_is_gone_ends_the_test", gone),
    ]
}

/// A program until it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A mount until it is dropped. Without its server it can't be left otherwise than so.
struct Mounted(String);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = unmount(self.0.as_str(), UnmountFlags::DETACH | UnmountFlags::FORCE);
    }
}

fn start(program: &str, arguments: &[&str]) -> Result<Running, Failed> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(Running(command.spawn()?))
}

fn configuration(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "NFS_CORE_PARAM {{ NFS_Port = 2049; Protocols = 4; Enable_NLM = false; Enable_RQUOTA = false; }}\n\
         NFSV4 {{ Graceless = true; Minor_Versions = 1,2; RecoveryBackend = fs; RecoveryRoot = \"{folder}\"; }}\n\
         EXPORT {{ Export_Id = 1; Path = {folder}/export; Pseudo = /export; Protocols = 4; Access_Type = RW; \
         Squash = None; SecType = sys; Transports = TCP; FSAL {{ Name = VFS; }} }}\n"
    )
}

/// Mounts of NFS in this mount namespace.
fn nfs_mounts() -> Result<usize, Failed> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    Ok(mounts.lines().filter(|line| line.contains(" - nfs4 ")).count())
}

fn test(path: &str, more: &[&str]) -> Result<Record, Failed> {
    let arguments = [&["test", path, "--json", "--no-store", "-n", "8M"][..], more].concat();
    Ok(serde_json::from_str(&goodput(&arguments)?)?)
}

/// An export of one file that is mounted, until it is dropped. What goes first stands first.
struct Share {
    _mounted: Mounted,
    server: Running,
    _mapper: Running,
    /// What the server has.
    export: PathBuf,
    /// Where it is mounted.
    place: String,
    _folder: TempDir,
}

/// `None`: there is no server.
fn share() -> Result<Option<Share>, Failed> {
    if !Path::new(SERVER).exists() {
        skip("nfs-ganesha-vfs");
        return Ok(None);
    }
    let folder = tempfile::tempdir_in("/dev/shm")?;
    let (export, point) = (folder.path().join("export"), folder.path().join("mnt"));
    fs::create_dir(&export)?;
    fs::create_dir(&point)?;
    fs::write(export.join("file"), vec![7; FILE_BYTES])?;
    fs::create_dir_all("/run/ganesha")?;
    let conf = folder.path().join("conf");
    fs::write(&conf, configuration(folder.path()))?;
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (log, pid) = (file("log"), file("pid"));
    let mapper = start("/usr/sbin/rpcbind", &["-f"])?;
    let conf = conf.display().to_string();
    let server = start(SERVER, &["-F", "-f", &conf, "-L", &log, "-p", &pid])?;
    wait_for("ganesha to listen", || TcpStream::connect(("127.0.0.1", 2049)).is_ok());
    let options = c"vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1,proto=tcp";
    let place = point.display().to_string();
    mount("127.0.0.1:/export", place.as_str(), "nfs4", MountFlags::empty(), options)?;
    Ok(Some(Share {
        _mounted: Mounted(place.clone()),
        server,
        _mapper: mapper,
        export,
        place,
        _folder: folder,
    }))
}

fn read() -> Result<(), Failed> {
    let Some(share) = share()? else { return Ok(()) };
    let path = format!("{}/file", share.place);
    as_it_is_mounted(&test(&path, &[])?)?;
    with_other_options(&test(&path, &["--rsize", "64K", "--nconnect", "2"])?)?;
    let rounded = test(&path, &["--rsize", "3000"])?;
    let said = "nfs.rsize=3000: the server or the kernel made it 2048";
    if !rounded.doubts.iter().any(|doubt| doubt.starts_with(said)) {
        return Err(format!("a size that is rounded is said: {:?}", rounded.doubts).into());
    }
    if nfs_mounts()? != 1 {
        return Err("a mount of the program's own is visible to others".into());
    }
    Ok(())
}

fn written() -> Result<(), Failed> {
    let Some(share) = share()? else { return Ok(()) };
    // Past the page cache, through it, and by other options.
    for (more, bytes_of_a_call) in [
        (&[][..], 1024.0..2e6),
        (&["--page-cache"], 1024.0..2e6),
        (&["--wsize", "64K", "--nconnect", "2"], 1024.0..70_000.0),
    ] {
        let record = test(&share.place, &[&["--write"], more].concat())?;
        writes_were_counted(&record, &bytes_of_a_call).map_err(|why| format!("{more:?}: {why}"))?;
        let left: Vec<_> = fs::read_dir(&share.export)?.collect::<Result<_, _>>()?;
        if left.len() != 1 || left[0].file_name() != "file" {
            return Err(format!("{more:?}: {left:?} is at the server").into());
        }
    }
    if fs::read(share.export.join("file"))? != vec![7; FILE_BYTES] {
        return Err("the file beside was changed".into());
    }
    if nfs_mounts()? != 1 {
        return Err("a mount of the program's own is visible to others".into());
    }
    Ok(())
}

fn gone() -> Result<(), Failed> {
    let Some(share) = share()? else { return Ok(()) };
    let path = format!("{}/file", share.place);
    let mut command = Command::new(exe());
    command.args(["test", &path, "--json-stream", "--no-store", "-t", "2"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn()?;
    let events = running.stdout.take().ok_or("it has an output")?;
    let mut lines = BufReader::new(events).lines();
    let began = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains(r#""began""#)));
    began.ok_or("no payload began to move")??;
    let server = Pid::from_child(&share.server.0);
    kill_process(server, Signal::STOP)?;
    lines.for_each(drop);
    let ended = running.wait_with_output()?;
    // Otherwise nobody can leave the mount.
    kill_process(server, Signal::CONT)?;
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    if ended.status.code() == Some(2) && said.contains("a call has not returned") {
        return Ok(());
    }
    Err(format!("{:?}: {said}", ended.status).into())
}

/// Whether all that was written went in WRITEs of such a size, and is at the server.
fn writes_were_counted(record: &Record, sizes: &Range<f64>) -> Result<(), String> {
    let mount = record.mount.as_ref().ok_or("no mount in the record")?;
    let calls = mount.calls.get().map_err(|why| why.to_string())?;
    let write = calls.iter().find(|calls| calls.name == "WRITE").ok_or("no WRITE was counted")?;
    let near = record.ends.near.value().ok_or("this end reports nothing")?;
    let last = near.samples.last().ok_or("there is no sample")?;
    let taken: Option<u64> = last.flows.iter().map(|flow| flow.acked_payload_bytes).sum();
    let is_whole = write.calls as f64 * write.mean_bytes >= last.sent_bytes as f64;
    if is_whole && sizes.contains(&write.mean_bytes) && taken == Some(last.sent_bytes) {
        return Ok(());
    }
    Err(format!("{write:?}, {taken:?} of {} bytes confirmed", last.sent_bytes))
}

fn as_it_is_mounted(record: &Record) -> Result<(), Failed> {
    let mount = record.mount.as_ref().ok_or("no mount in the record")?;
    let read = mount.calls.get()?.iter().find(|calls| calls.name == "READ");
    let read = read.ok_or("no READ was counted")?;
    let bytes = read.calls as f64 * read.mean_bytes;
    let is_whole = bytes >= (2 * FILE_BYTES) as f64;
    if mount.direct && !mount.private && mount.reach == MountReach::Network && is_whole {
        return Ok(());
    }
    Err(format!("{mount:?}").into())
}

fn with_other_options(record: &Record) -> Result<(), Failed> {
    let mount = record.mount.as_ref().ok_or("no mount in the record")?;
    let options: Vec<&str> = mount.options.split(',').collect();
    let has = |option: &str| options.contains(&option);
    let counted = mount.calls.get()?.iter().any(|calls| calls.mean_bytes < 70_000.0);
    let connections = mount.connections == Known::Value(2);
    if mount.private
        && has("rsize=65536")
        && has("nconnect=2")
        && has("vers=4.1")
        && connections
        && counted
    {
        return Ok(());
    }
    Err(format!("{mount:?}").into())
}
