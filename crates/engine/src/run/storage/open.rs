//! Opens files: the user's own by any path, a server's only within its directories for clients.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use goodput_model::{EndName, Plan, Sink, Source};
use goodput_mover::{Allowance, Awaited, FileSink, FileSource, Waiter};
use rustix::fs::{Access, CWD, FileType, Mode, OFlags, ResolveFlags, access, fstat, openat2};

use super::{FileAccess, ServedFiles};
use crate::error::StorageError;

/// The sink that keeps nothing; anyone may write to it.
const NULL: &str = "/dev/null";

/// Opens what a sender sends.
pub fn source(
    source: &Source,
    again: bool,
    reach: &FileAccess,
    awaited: &Awaited,
) -> Result<FileSource, StorageError> {
    match (source, reach) {
        (Source::Memory(bytes), _) => {
            FileSource::memory(bytes.0, again, awaited).map_err(|cause| {
                cannot("make", &format!("a file in memory of {} bytes", bytes.0), &cause)
            })
        }
        (Source::File { name, .. }, FileAccess::User) => {
            let file = OpenOptions::new().read(true).custom_flags(nonblock()).open(name);
            known(file.map_err(|cause| cannot("read", name, &cause))?.into(), name, again)
        }
        (Source::File { name, .. }, FileAccess::Served(served)) => {
            known(served_source(name, served)?, name, again)
        }
        (Source::Input, FileAccess::User) => known(own_description(0)?, "standard input", again),
        (Source::Input, FileAccess::Served(_)) => {
            let words =
                "the far end has no standard input to send; name a file, or send from this end";
            Err(words.to_string().into())
        }
    }
}

/// Don't wait for the other end of a named pipe; files ignore this.
fn nonblock() -> i32 {
    OFlags::NONBLOCK.bits() as i32
}

fn cannot(what: &str, name: &str, cause: &io::Error) -> StorageError {
    StorageError::of(format!("can't {what} {name}: {cause}"), cause)
}

/// A source whose kind and length are known.
fn known(file: OwnedFd, name: &str, again: bool) -> Result<FileSource, StorageError> {
    let stat = fstat(&file).map_err(|cause| cannot("ask about", name, &cause.into()))?;
    let bytes = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_size == 0 => {
            return Err(format!("{name} is empty: there is nothing to send").into());
        }
        FileType::RegularFile => Some(stat.st_size as u64),
        FileType::Directory => {
            return Err(format!("{name} is a directory; name a file in it").into());
        }
        FileType::BlockDevice => Some(device_bytes(&file, name)?),
        _ => None,
    };
    Ok(FileSource { file, name: name.into(), bytes, again: again && bytes.is_some() })
}

/// A disk's length is the position of its end.
fn device_bytes(file: &OwnedFd, name: &str) -> Result<u64, StorageError> {
    let end = rustix::fs::seek(file, rustix::fs::SeekFrom::End(0));
    match end.map_err(|cause| cannot("find the end of", name, &cause.into()))? {
        0 => Err(format!("{name} is empty: there is nothing to send").into()),
        bytes => Ok(bytes),
    }
}

fn served_source(name: &str, served: &ServedFiles) -> Result<OwnedFd, StorageError> {
    let directory = served.files.as_deref().ok_or_else(|| {
        "this server sends no files; its operator can allow it with serve --files DIR".to_string()
    })?;
    let file = beneath(directory, name, OFlags::RDONLY)?;
    is_regular(&file, name).map(|()| file)
}

/// Opens a file in a directory or beneath it, wherever links and `..` in its name lead (openat2(2)).
fn beneath(directory: &Path, name: &str, flags: OFlags) -> Result<OwnedFd, StorageError> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let directory =
        File::open(directory).map_err(|cause| cannot("open", "the directory for files", &cause))?;
    let mode = if flags.contains(OFlags::CREATE) { Mode::RUSR | Mode::WUSR } else { Mode::empty() };
    openat2(directory.as_fd(), name, flags, mode, within).map_err(|cause| match cause {
        rustix::io::Errno::XDEV => {
            format!("can't open {name:?}: it is not beneath the directory for files").into()
        }
        cause => cannot("open", &format!("{name:?}"), &cause.into()),
    })
}

fn is_regular(file: &OwnedFd, name: &str) -> Result<(), StorageError> {
    let stat = fstat(file).map_err(|cause| cannot("ask about", name, &cause.into()))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(format!("{name:?} is a directory; name a file in it").into()),
        _ => Err(format!("{name:?} is not a regular file").into()),
    }
}

/// Opens a sink for each flow that `end` receives. Returns it with the flow's number.
pub fn sinks(
    sink: &Sink,
    plan: &Plan,
    end: EndName,
    reach: &FileAccess,
) -> Result<Vec<(u16, Arc<FileSink>)>, StorageError> {
    let each = |(flow, name): (u16, String)| {
        let (file, allowance) = open_sink(&name, sink.direct, reach)?;
        let sink = FileSink { file, name, direct: sink.direct, fsync: sink.fsync, allowance };
        Ok((flow, Arc::new(sink)))
    };
    sink_names(sink, plan, end, reach)?.into_iter().map(each).collect()
}

/// The name of each received flow's sink, with the flow's number.
fn sink_names(
    sink: &Sink,
    plan: &Plan,
    end: EndName,
    reach: &FileAccess,
) -> Result<Vec<(u16, String)>, StorageError> {
    let received: Vec<u16> =
        plan.flow_plans().iter().filter(|flow| flow.sender != end).map(|flow| flow.id).collect();
    if sink.name == "-" && received.len() > 1 {
        let words = "several flows can't be written to standard output; name a file";
        return Err(words.to_string().into());
    }
    // A file that a client names is not even looked up, unless it is in the directory for sinks.
    let keeps_all_apart = match reach {
        FileAccess::User => is_device(&sink.name),
        FileAccess::Served(_) => sink.name == NULL,
    };
    let alone = received.len() == 1 || keeps_all_apart;
    let name = |flow| if alone { sink.name.clone() } else { format!("{}.{flow}", sink.name) };
    Ok(received.into_iter().map(|flow| (flow, name(flow))).collect())
}

/// Refuses a source of the user that can't be read. A pipe is not opened: its writer would notice.
pub fn check_source(source: &Source) -> Result<(), StorageError> {
    match source {
        Source::File { name, .. } if !is_device(name) => {
            self::source(source, true, &FileAccess::User, &Waiter::default().awaited()).map(drop)
        }
        _ => Ok(()),
    }
}

/// Refuses sinks of the user that can't be written. None is created: the far end may still refuse the plan.
pub fn check_sinks(sink: &Sink, plan: &Plan) -> Result<(), StorageError> {
    let names = sink_names(sink, plan, EndName::Near, &FileAccess::User)?;
    names.iter().map(|(_, name)| name).filter(|name| *name != "-").try_for_each(|name| {
        let exists = std::fs::symlink_metadata(name).is_ok();
        let folder = Path::new(name).parent().filter(|folder| !folder.as_os_str().is_empty());
        let writable = match exists {
            true if is_device(name) => Ok(()),
            true => OpenOptions::new().write(true).open(name).map(drop),
            false => access(folder.unwrap_or(Path::new(".")), Access::WRITE_OK | Access::EXEC_OK)
                .map_err(Into::into),
        };
        writable.map_err(|cause| cannot("write to", name, &cause))
    })
}

fn is_device(name: &str) -> bool {
    std::fs::metadata(name).is_ok_and(|found| {
        let kind = found.file_type();
        kind.is_char_device() || kind.is_fifo()
    })
}

type OpenedSink = (OwnedFd, Option<Arc<dyn Allowance>>);

fn open_sink(name: &str, direct: bool, reach: &FileAccess) -> Result<OpenedSink, StorageError> {
    match reach {
        FileAccess::User if name == "-" => Ok((own_description(1)?, None)),
        FileAccess::User => user_sink(name, direct).map(|file| (file, None)),
        FileAccess::Served(_) if name == NULL => user_sink(name, false).map(|file| (file, None)),
        FileAccess::Served(served) => served_sink(name, direct, served),
    }
}

fn user_sink(name: &str, direct: bool) -> Result<OwnedFd, StorageError> {
    let direct_flag = if direct { OFlags::DIRECT.bits() as i32 } else { 0 };
    // The file keeps its content until there is payload: the test may be refused. Opening a named pipe that nobody
    // reads would wait for its reader and ignore interrupts.
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(direct_flag | nonblock())
        .open(name)
        .map_err(|cause| cannot("write to", name, &cause).and(sink_advice(direct, &cause)))?;
    Ok(file.into())
}

fn sink_advice(direct: bool, cause: &io::Error) -> &'static str {
    match rustix::io::Errno::from_io_error(cause) {
        Some(rustix::io::Errno::INVAL) if direct => {
            "; its file system can't bypass the page cache: leave out --direct"
        }
        Some(rustix::io::Errno::NXIO) => "; nobody reads it: start its reader first",
        _ => "",
    }
}

fn served_sink(name: &str, direct: bool, served: &ServedFiles) -> Result<OpenedSink, StorageError> {
    let sinks = served.sinks.as_ref().ok_or_else(|| {
        "this server writes no files; its operator can allow it with serve --sinks DIR".to_string()
    })?;
    sinks.check()?;
    let direct = if direct { OFlags::DIRECT } else { OFlags::empty() };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | direct;
    let file = beneath(sinks.directory(), name, flags)?;
    is_regular(&file, name)?;
    rustix::fs::ftruncate(&file, 0).map_err(|cause| cannot("empty", name, &cause.into()))?;
    let allowance = sinks.opened(&file, name)?;
    Ok((file, Some(allowance)))
}

/// Standard input or output, reopened if it is a pipe or a terminal: waiting for it must not block, and its mode is
/// shared with other programs.
fn own_description(number: u8) -> Result<OwnedFd, StorageError> {
    let (name, access) = match number {
        0 => ("standard input", OFlags::RDONLY),
        _ => ("standard output", OFlags::WRONLY),
    };
    let stat = match number {
        0 => fstat(io::stdin().as_fd()),
        _ => fstat(io::stdout().as_fd()),
    };
    let stat = stat.map_err(|cause| cannot("use", name, &cause.into()))?;
    let duplicate = || match number {
        0 => io::stdin().as_fd().try_clone_to_owned(),
        _ => io::stdout().as_fd().try_clone_to_owned(),
    };
    if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
        return duplicate().map_err(|cause| cannot("use", name, &cause));
    }
    let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let path = format!("/proc/self/fd/{number}");
    // A socket can't be reopened.
    rustix::fs::openat(CWD, path, flags, Mode::empty())
        .or_else(|_| duplicate().map_err(|cause| cannot("use", name, &cause)))
}
