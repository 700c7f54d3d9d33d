//! From a URL to the handle of its file: ports, the export, the path from there to the directory, and the file in it.

use super::calls::{self, Attributes, FSINFO, Handle, MNT, UMNT};
use super::dialogue::Dialogue;
use super::mapper;
use super::rpc;
use super::xdr::put_opaque;
use crate::error::FileError;
use crate::link::{Dial, Wait};
use crate::place::Place;

/// Most names in a path.
const MAX_NAMES: usize = 64;

/// The directory of a file, and the connection to its server.
pub struct Directory {
    pub dialogue: Dialogue,
    /// NFS's port.
    pub port: u16,
    pub handle: Handle,
    /// The last name of the place, in this directory.
    pub name: Vec<u8>,
}

/// Finds the directory of a file.
pub fn find(place: &Place, dial: &mut dyn Dial, wait: &dyn Wait) -> Result<Directory, FileError> {
    let names = place.names()?;
    let Some((name, directories)) = names.split_last() else {
        return Err(FileError::Place("the URL names no file".into()));
    };
    if names.len() > MAX_NAMES {
        return Err(FileError::Place(format!("{place} has more than {MAX_NAMES} names")));
    }
    let (port, mount_port) = ports(place, dial, wait)?;
    let mut mounting = Dialogue::connect(dial, &place.address(), mount_port, wait)?;
    let mounted = mount(&mut mounting, directories, wait);
    let (mut handle, exported) = mounted.map_err(|why| match why {
        FileError::Refused(why) if port == mount_port => FileError::Refused(format!(
            "{why}; if MOUNT has a port of its own, name it: ?mountport=PORT"
        )),
        why => why,
    })?;
    drop(mounting);
    let mut dialogue = Dialogue::connect(dial, &place.address(), port, wait)?;
    for name in &directories[exported..] {
        handle = dialogue.lookup(wait, &handle, name)?.0;
    }
    Ok(Directory { dialogue, port, handle, name: name.clone() })
}

/// A file that can be read.
pub struct Found {
    pub file: Handle,
    pub bytes: u64,
    /// Most bytes of one READ.
    pub most_at_once: u32,
}

impl Directory {
    /// Finds the file in the directory.
    pub fn file(&mut self, wait: &dyn Wait) -> Result<Found, FileError> {
        let (file, attributes) = self.dialogue.lookup(wait, &self.handle, &self.name)?;
        check(attributes)?;
        let most_at_once = self.dialogue.limits(wait, &file)?.read_bytes;
        Ok(Found { file, bytes: attributes.size, most_at_once })
    }
}

/// The ports of NFS and of MOUNT. A port in the URL applies to both, unless the URL has another one for MOUNT.
fn ports(place: &Place, dial: &mut dyn Dial, wait: &dyn Wait) -> Result<(u16, u16), FileError> {
    let mount = match place.query().as_slice() {
        [] => None,
        [(name, port)] if name == "mountport" => {
            let port = port.parse().ok().filter(|port: &u16| *port > 0);
            Some(port.ok_or_else(|| {
                FileError::Place(format!("{place}: mountport is no port from 1 to 65535"))
            })?)
        }
        _ => {
            let why = format!("{place}: only mountport=PORT may follow the question mark");
            return Err(FileError::Place(why));
        }
    };
    match (place.named_port(), mount) {
        (Some(nfs), mount) => Ok((nfs, mount.unwrap_or(nfs))),
        (None, Some(mount)) => Ok((place.port(), mount)),
        (None, None) => {
            let of = [(FSINFO, "NFS"), (MNT, "MOUNT")];
            let ports = mapper::ports(dial, &place.address(), &of, wait)?;
            Ok((ports[0], ports[1]))
        }
    }
}

/// The handle of the longest prefix of the path that the server exports, and its number of names. The server's entry
/// for this mount is removed at once: the handle stays valid.
fn mount(
    mounting: &mut Dialogue,
    directories: &[Vec<u8>],
    wait: &dyn Wait,
) -> Result<(Handle, usize), FileError> {
    let mut refused = None;
    for length in (0..=directories.len()).rev() {
        let path = path(&directories[..length]);
        let args = |out: &mut Vec<u8>| put_opaque(out, &path);
        match mounting.call(wait, MNT, args, calls::mounted)? {
            Ok(handle) => {
                mounting.call(wait, UMNT, args, |_| Ok(()))?;
                return Ok((handle, length));
            }
            Err(status) => {
                let why = calls::refusal(MNT, status);
                // An export that is closed to this host explains more than a path that is not exported.
                if refused.is_none() || why.not_permitted() {
                    refused.get_or_insert(why);
                }
            }
        }
    }
    let path = path(directories);
    let path = crate::words::shown(&path);
    let refused = refused.map(|why| rpc::with_advice(why, mounting.socket()));
    Err(match refused {
        Some(FileError::NotPermitted(why)) => FileError::NotPermitted(format!(
            "the server exports no part of {path} to this host: {why}"
        )),
        Some(why) => FileError::Refused(format!("the server exports no part of {path}: {why}")),
        None => FileError::Place("there is nothing to mount".into()),
    })
}

fn path(names: &[Vec<u8>]) -> Vec<u8> {
    if names.is_empty() {
        return b"/".to_vec();
    }
    names.iter().flat_map(|name| [b"/".as_slice(), name]).flatten().copied().collect()
}

fn check(attributes: Attributes) -> Result<(), FileError> {
    let why = match (attributes.kind, attributes.size) {
        (1, 0) => "the file is empty: there is nothing to measure",
        (1, _) => return Ok(()),
        (2, _) => "it is a directory; name a file in it",
        (5, _) => "it is a symbolic link; name the file that it leads to",
        _ => "it is not a regular file",
    };
    Err(FileError::Refused(why.into()))
}
