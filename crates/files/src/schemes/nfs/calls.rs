//! The calls of NFS version 3 (RFC 1813), its MOUNT protocol and the port mapper (RFC 1833) that reading a file takes.

use super::rpc::Procedure;
use super::xdr::{Reader, Unread, broken, put, put_opaque, put_u64};
use crate::error::FileError;

/// Bytes of a file handle at most (RFC 1813 section 2.4).
pub const HANDLE_BYTES: usize = 64;
/// Where the port mapper listens.
pub const PORTMAP_PORT: u16 = 111;

const IPPROTO_TCP: u32 = 6;

const fn nfs(number: u32, name: &'static str) -> Procedure {
    Procedure { program: 100_003, version: 3, number, name }
}

const fn mount(number: u32, name: &'static str) -> Procedure {
    Procedure { program: 100_005, version: 3, number, name }
}

pub const GETPORT: Procedure =
    Procedure { program: 100_000, version: 2, number: 3, name: "GETPORT" };
pub const MNT: Procedure = mount(1, "MNT");
pub const UMNT: Procedure = mount(3, "UMNT");
pub const GETATTR: Procedure = nfs(1, "GETATTR");
pub const LOOKUP: Procedure = nfs(3, "LOOKUP");
pub const READ: Procedure = nfs(6, "READ");
pub const FSINFO: Procedure = nfs(19, "FSINFO");

/// What names a file or directory at the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle(pub Vec<u8>);

/// What a directory entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Its kind: 1 is a file, 2 a directory, 5 a symbolic link.
    pub kind: u32,
    /// Bytes.
    pub size: u64,
}

/// The head of a good answer to a READ. Its payload follows, and then what pads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    pub bytes: u32,
    /// Whether the file ends with it.
    pub is_end: bool,
}

/// Of whom the port mapper is asked.
pub fn port_args(out: &mut Vec<u8>, of: Procedure) {
    [of.program, of.version, IPPROTO_TCP, 0].into_iter().for_each(|word| put(out, word));
}

/// The port, if the program is there.
pub fn port(reader: &mut Reader<'_>) -> Result<Option<u16>, Unread> {
    let port = reader.u32()?;
    let port = u16::try_from(port)
        .map_err(|_| broken(format!("the port mapper answers with port {port}")))?;
    Ok(Some(port).filter(|port| *port > 0))
}

/// The handle of an export, or the status of the refusal (`mountstat3`, RFC 1813 section 5.1.5).
pub fn mounted(reader: &mut Reader<'_>) -> Result<Result<Handle, u32>, Unread> {
    match reader.u32()? {
        0 => Ok(Ok(handle(reader)?)),
        status => Ok(Err(status)),
    }
}

pub fn lookup_args(out: &mut Vec<u8>, directory: &Handle, name: &[u8]) {
    put_opaque(out, &directory.0);
    put_opaque(out, name);
}

/// What was found, with its attributes if the server adds them.
pub fn found(reader: &mut Reader<'_>) -> Result<(Handle, Option<Attributes>), Unread> {
    check(reader, LOOKUP)?;
    Ok((handle(reader)?, maybe_attributes(reader)?))
}

pub fn attributes_of(reader: &mut Reader<'_>) -> Result<Attributes, Unread> {
    check(reader, GETATTR)?;
    attributes(reader)
}

/// Bytes that one READ can bring at most (`rtmax`).
pub fn most_at_once(reader: &mut Reader<'_>) -> Result<u32, Unread> {
    check(reader, FSINFO)?;
    maybe_attributes(reader)?;
    reader.u32()
}

pub fn read_args(out: &mut Vec<u8>, file: &Handle, offset: u64, bytes: u32) {
    put_opaque(out, &file.0);
    put_u64(out, offset);
    put(out, bytes);
}

/// The head of an answer to a READ.
pub fn read(reader: &mut Reader<'_>) -> Result<Read, Unread> {
    check(reader, READ)?;
    maybe_attributes(reader)?;
    let (bytes, is_end, announced) = (reader.u32()?, reader.bool()?, reader.u32()?);
    if announced != bytes {
        let why = format!("the server says that it read {bytes} bytes, and sends {announced}");
        return Err(broken(why));
    }
    Ok(Read { bytes, is_end })
}

fn handle(reader: &mut Reader<'_>) -> Result<Handle, Unread> {
    Ok(Handle(reader.opaque(HANDLE_BYTES, "a file handle")?.to_vec()))
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

/// What a status means (`nfsstat3`, RFC 1813 section 2.6; the numbers of `mountstat3` are the same).
pub fn refusal(procedure: Procedure, status: u32) -> FileError {
    let why = match status {
        1 => "the operation is not permitted",
        2 => "there is no such file or directory",
        5 => "the server's disk failed",
        13 => "permission denied",
        20 => "a part of the path is no directory",
        21 => "it is a directory",
        22 => "the server finds the arguments invalid",
        63 => "the name is too long",
        70 => "the file handle is stale: the file was removed, or its export was changed",
        10001 => "the server does not know the file handle",
        10004 => "the server does not support the operation",
        10006 => "the server had an internal error",
        10008 => "the server asks to come back later (JUKEBOX)",
        _ => "",
    };
    let name = procedure.name;
    match (status, why) {
        (1 | 13, why) => FileError::NotPermitted(format!("{name}: {why}")),
        (status, "") => FileError::Refused(format!("{name}: the server answers status {status}")),
        (_, why) => FileError::Refused(format!("{name}: {why}")),
    }
}
