//! The calls of NFS version 3 (RFC 1813) and its MOUNT protocol that are needed to read and write a file.

use std::time::Duration;

use super::rpc::Procedure;
use super::xdr::{Reader, Unread, broken, put, put_opaque, put_u64};
use crate::error::FileError;

/// Longest file handle, bytes (RFC 1813 section 2.4).
pub const HANDLE_BYTES: usize = 64;

/// How long an answer may take if nothing is read or written.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer may take if a directory or a file is changed.
const CHANGE_PATIENCE: Duration = Duration::from_secs(30);
/// How long flushing a file to disk may take.
const COMMIT_PATIENCE: Duration = Duration::from_secs(120);

pub const fn of(
    (program, version): (u32, u32),
    number: u32,
    name: &'static str,
    patience: Duration,
) -> Procedure {
    Procedure { program, version, number, name, patience }
}

const MOUNT_3: (u32, u32) = (100_005, 3);
const NFS_3: (u32, u32) = (100_003, 3);

pub const MNT: Procedure = of(MOUNT_3, 1, "MNT", ANSWER_TIMEOUT);
pub const UMNT: Procedure = of(MOUNT_3, 3, "UMNT", ANSWER_TIMEOUT);
pub const GETATTR: Procedure = of(NFS_3, 1, "GETATTR", ANSWER_TIMEOUT);
pub const SETATTR: Procedure = of(NFS_3, 2, "SETATTR", CHANGE_PATIENCE);
pub const LOOKUP: Procedure = of(NFS_3, 3, "LOOKUP", ANSWER_TIMEOUT);
pub const READ: Procedure = of(NFS_3, 6, "READ", ANSWER_TIMEOUT);
pub const WRITE: Procedure = of(NFS_3, 7, "WRITE", CHANGE_PATIENCE);
pub const CREATE: Procedure = of(NFS_3, 8, "CREATE", CHANGE_PATIENCE);
pub const REMOVE: Procedure = of(NFS_3, 12, "REMOVE", CHANGE_PATIENCE);
pub const FSINFO: Procedure = of(NFS_3, 19, "FSINFO", ANSWER_TIMEOUT);
pub const COMMIT: Procedure = of(NFS_3, 21, "COMMIT", COMMIT_PATIENCE);

/// `NFS3ERR_JUKEBOX`: the call can't be carried out in time, and must be repeated (RFC 1813 section 2.6).
const LATER: u32 = 10008;
/// `NFS3ERR_NOENT`.
const NO_ENTRY: u32 = 2;
/// Statuses of CREATE that a server returns before it makes anything (RFC 1813 section 2.6): PERM, ACCES, NOTDIR,
/// ROFS, NAMETOOLONG and NOTSUPP. After any other status there may be a file.
const LEAVES_NOTHING: [u32; 6] = [1, 13, 20, 30, 63, 10004];
/// Mode of a file made here: only its owner may read and write it.
const SCRATCH_MODE: u32 = 0o600;

/// Identifies a file or directory at the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle(pub Vec<u8>);

/// The type and size of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Its kind: 1 is a file, 2 a directory, 5 a symbolic link.
    pub kind: u32,
    /// Bytes.
    pub size: u64,
}

/// Most payload of one call, bytes (`rtmax` and `wtmax`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub read_bytes: u32,
    pub write_bytes: u32,
}

/// Constant between two starts of a server (`writeverf3`): if it changes, uncommitted writes may be lost (RFC 1813
/// section 3.3.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verifier([u8; 8]);

/// A successful answer to a WRITE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub bytes: u32,
    /// Identifies the server's start in whose memory the payload may still be; `None`: it is on disk.
    pub uncommitted: Option<Verifier>,
}

/// The head of a successful answer to a READ. Its payload follows, then its padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    pub bytes: u32,
    /// Whether the file ends here.
    pub is_end: bool,
}

/// The handle of an export, or the status of the refusal (`mountstat3`, RFC 1813 section 5.1.5).
pub fn mounted(reader: &mut Reader<'_>) -> Result<Result<Handle, u32>, Unread> {
    match reader.u32()? {
        0 => Ok(Ok(handle(reader)?)),
        status => Ok(Err(status)),
    }
}

/// A name in a directory: the arguments of LOOKUP and REMOVE.
pub fn entry_args(out: &mut Vec<u8>, directory: &Handle, name: &[u8]) {
    put_opaque(out, &directory.0);
    put_opaque(out, name);
}

/// The found entry, with its attributes if the server sends them.
pub fn found(reader: &mut Reader<'_>) -> Result<(Handle, Option<Attributes>), Unread> {
    check(reader, LOOKUP)?;
    Ok((handle(reader)?, maybe_attributes(reader)?))
}

pub fn attributes_of(reader: &mut Reader<'_>) -> Result<Attributes, Unread> {
    check(reader, GETATTR)?;
    attributes(reader)
}

/// Whether there is such an entry.
pub fn is_there(reader: &mut Reader<'_>) -> Result<bool, Unread> {
    unless_missing(reader, LOOKUP)
}

/// The limits among a file system's properties (section 3.3.19): `rtmax`, `rtpref`, `rtmult`, `wtmax` come first.
pub fn limits(reader: &mut Reader<'_>) -> Result<Limits, Unread> {
    check(reader, FSINFO)?;
    maybe_attributes(reader)?;
    let read_bytes = reader.u32()?;
    reader.take(8)?;
    Ok(Limits { read_bytes, write_bytes: reader.u32()? })
}

/// Makes a file, or empties an existing one (`UNCHECKED`, section 3.3.8).
pub fn create_args(out: &mut Vec<u8>, directory: &Handle, name: &[u8]) {
    const UNCHECKED: u32 = 0;
    entry_args(out, directory, name);
    put(out, UNCHECKED);
    put_attributes(out, Some(SCRATCH_MODE));
}

/// The handle of the new file, if the server sends it.
pub fn created(reader: &mut Reader<'_>) -> Result<Option<Handle>, Unread> {
    match reader.u32()? {
        0 => {}
        status if LEAVES_NOTHING.contains(&status) => return Err(refusal(CREATE, status).into()),
        status => return Err(refusal(CREATE, status).after_payload().into()),
    }
    if reader.bool()? { handle(reader).map(Some) } else { Ok(None) }
}

/// Empties a file, whatever its state (no guard, section 3.3.2).
pub fn empty_args(out: &mut Vec<u8>, file: &Handle) {
    put_opaque(out, &file.0);
    put_attributes(out, None);
    put(out, 0);
}

pub fn emptied(reader: &mut Reader<'_>) -> Result<(), Unread> {
    check(reader, SETATTR)
}

/// `sattr3` (section 2.5.3): a mode if there is one, no owner, no content, no times.
fn put_attributes(out: &mut Vec<u8>, mode: Option<u32>) {
    put(out, u32::from(mode.is_some()));
    mode.into_iter().for_each(|mode| put(out, mode));
    [0, 0, 1].into_iter().for_each(|word| put(out, word));
    put_u64(out, 0);
    [0, 0].into_iter().for_each(|word| put(out, word));
}

/// Whether there was something to remove.
pub fn removed(reader: &mut Reader<'_>) -> Result<bool, Unread> {
    unless_missing(reader, REMOVE)
}

/// The arguments of a WRITE before its payload, which the server may keep in memory (`UNSTABLE`, section 3.3.7).
pub fn write_args(out: &mut Vec<u8>, file: &Handle, offset: u64, bytes: u32) {
    const UNSTABLE: u32 = 0;
    put_opaque(out, &file.0);
    put_u64(out, offset);
    [bytes, UNSTABLE, bytes].into_iter().for_each(|word| put(out, word));
}

pub fn written(reader: &mut Reader<'_>) -> Result<Written, Unread> {
    const FILE_SYNC: u32 = 2;
    check(reader, WRITE)?;
    before_and_after(reader)?;
    let (bytes, stability) = (reader.u32()?, reader.u32()?);
    let verifier = verifier(reader)?;
    Ok(Written { bytes, uncommitted: (stability < FILE_SYNC).then_some(verifier) })
}

/// Commits a whole file.
pub fn commit_args(out: &mut Vec<u8>, file: &Handle) {
    put_opaque(out, &file.0);
    put_u64(out, 0);
    put(out, 0);
}

pub fn committed(reader: &mut Reader<'_>) -> Result<Verifier, Unread> {
    check(reader, COMMIT)?;
    before_and_after(reader)?;
    verifier(reader)
}

pub fn read_args(out: &mut Vec<u8>, file: &Handle, offset: u64, bytes: u32) {
    put_opaque(out, &file.0);
    put_u64(out, offset);
    put(out, bytes);
}

/// The head of an answer to a READ; `None`: the server asks to repeat the call later.
pub fn read(reader: &mut Reader<'_>) -> Result<Option<Read>, Unread> {
    match check(reader, READ) {
        Err(Unread::Failed(FileError::Later(_))) => {
            maybe_attributes(reader)?;
            return Ok(None);
        }
        checked => checked?,
    }
    maybe_attributes(reader)?;
    let (bytes, is_end, announced) = (reader.u32()?, reader.bool()?, reader.u32()?);
    if announced != bytes {
        let why = format!("the server says that it read {bytes} bytes, and sends {announced}");
        return Err(broken(why));
    }
    Ok(Some(Read { bytes, is_end }))
}

fn handle(reader: &mut Reader<'_>) -> Result<Handle, Unread> {
    Ok(Handle(reader.opaque(HANDLE_BYTES, "a file handle")?.to_vec()))
}

fn verifier(reader: &mut Reader<'_>) -> Result<Verifier, Unread> {
    let mut verifier = [0; 8];
    verifier.copy_from_slice(reader.take(8)?);
    Ok(Verifier(verifier))
}

/// `wcc_data` (section 2.6): 24 bytes of attributes before the change, and attributes after it, if the server sends
/// them.
fn before_and_after(reader: &mut Reader<'_>) -> Result<(), Unread> {
    if reader.bool()? {
        reader.take(24)?;
    }
    maybe_attributes(reader).map(drop)
}

fn maybe_attributes(reader: &mut Reader<'_>) -> Result<Option<Attributes>, Unread> {
    if reader.bool()? { attributes(reader).map(Some) } else { Ok(None) }
}

/// `fattr3` (RFC 1813 section 2.6): 84 bytes.
fn attributes(reader: &mut Reader<'_>) -> Result<Attributes, Unread> {
    let kind = reader.u32()?;
    reader.take(16)?;
    let size = reader.u64()?;
    reader.take(56)?;
    Ok(Attributes { kind, size })
}

fn check(reader: &mut Reader<'_>, procedure: Procedure) -> Result<(), Unread> {
    match reader.u32()? {
        0 => Ok(()),
        status => Err(refusal(procedure, status).into()),
    }
}

/// The same, but a missing entry is a valid answer: returns whether the entry exists.
fn unless_missing(reader: &mut Reader<'_>, procedure: Procedure) -> Result<bool, Unread> {
    match reader.u32()? {
        0 => Ok(true),
        NO_ENTRY => Ok(false),
        status => Err(refusal(procedure, status).into()),
    }
}

/// The meaning of a status (`nfsstat3`, RFC 1813 section 2.6; the numbers of `mountstat3` are the same).
pub fn refusal(procedure: Procedure, status: u32) -> FileError {
    let why = match status {
        1 => "the operation is not permitted",
        NO_ENTRY => "there is no such file or directory",
        5 => "the server's disk failed",
        13 => "permission denied",
        20 => "a part of the path is no directory",
        21 => "it is a directory",
        27 => "the file would be larger than the server allows",
        28 => "the server's disk is full: choose a smaller --size or fewer --flows",
        30 => "the file system is read-only, or exported so",
        69 => "the user's quota at the server is used up: choose a smaller --size or fewer --flows",
        22 => "the server finds the arguments invalid",
        63 => "the name is too long",
        70 => "the file handle is stale: the file was removed, or its export was changed",
        10001 => "the server does not know the file handle",
        10004 => "the server does not support the operation",
        10006 => "the server had an internal error",
        LATER => "the server asks to come back later (JUKEBOX)",
        _ => "",
    };
    let name = procedure.name;
    match (status, why) {
        (LATER, why) => FileError::Later(format!("{name}: {why}")),
        // Kernel servers answer so if they insist on a low port: MOUNT by 13, NFS by 1 (nfsd_setuser_and_check_port,
        // fs/nfsd/nfsfh.c).
        (1, why) => FileError::Distrusted(format!("{name}: {why}")),
        (13, why) if procedure.program == MNT.program => {
            FileError::Distrusted(format!("{name}: {why}"))
        }
        (13, why) => FileError::NotPermitted(format!("{name}: {why}")),
        (status, "") => FileError::Refused(format!("{name}: the server answers status {status}")),
        (_, why) => FileError::Refused(format!("{name}: {why}")),
    }
}
