//! ONC RPC version 2 (RFC 5531) over TCP: calls and replies in records, each of one or more fragments.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::getsockname;

use super::xdr::{Reader, Unread, broken, put, put_opaque};
use crate::error::FileError;

/// The top bit of a record mark: the fragment is the last of its record (RFC 5531 section 11).
pub const LAST_FRAGMENT_BIT: u32 = 1 << 31;
/// Longest credential or verifier, bytes (RFC 5531 section 8.2).
const MAX_AUTH_BYTES: usize = 400;
/// Most groups of a credential (RFC 5531 appendix A).
const MAX_GROUPS: usize = 16;

/// The first port that any user may bind (ip(7), ip_unprivileged_port_start).
const FIRST_UNPRIVILEGED_PORT: u16 = 1024;

const CALL: u32 = 0;
const REPLY: u32 = 1;
const VERSION: u32 = 2;
const AUTH_SYS: u32 = 1;

/// A procedure of a program.
#[derive(Debug, Clone, Copy)]
pub struct Procedure {
    pub program: u32,
    pub version: u32,
    pub number: u32,
    /// Its name, for errors.
    pub name: &'static str,
    /// How long its answer may take.
    pub patience: Duration,
}

/// The caller: the flavour `AUTH_SYS` (RFC 5531 appendix A), which the server may or may not believe.
pub struct Credential(Vec<u8>);

impl Credential {
    /// Of the user who runs goodput.
    pub fn own() -> Self {
        let groups = rustix::process::getgroups().unwrap_or_default();
        let groups: Vec<u32> = groups.iter().map(|group| group.as_raw()).collect();
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        Self::of(user.as_raw(), group.as_raw(), &groups)
    }

    fn of(user: u32, group: u32, groups: &[u32]) -> Self {
        let groups = &groups[..groups.len().min(MAX_GROUPS)];
        let mut out = Vec::new();
        put(&mut out, 0);
        put_opaque(&mut out, b"goodput");
        put(&mut out, user);
        put(&mut out, group);
        put(&mut out, groups.len() as u32);
        groups.iter().for_each(|group| put(&mut out, *group));
        Self(out)
    }
}

/// Adds a call, as a record of one fragment.
pub fn call(
    out: &mut Vec<u8>,
    xid: u32,
    procedure: Procedure,
    credential: &Credential,
    args: impl FnOnce(&mut Vec<u8>),
) {
    call_with_tail(out, xid, procedure, credential, 0, args);
}

/// Adds a call without the last `tail` bytes of its record, which follow.
pub fn call_with_tail(
    out: &mut Vec<u8>,
    xid: u32,
    procedure: Procedure,
    credential: &Credential,
    tail: usize,
    args: impl FnOnce(&mut Vec<u8>),
) {
    let mark = out.len();
    for word in [0, xid, CALL, VERSION, procedure.program, procedure.version, procedure.number] {
        put(out, word);
    }
    put(out, AUTH_SYS);
    put_opaque(out, &credential.0);
    // No verifier.
    put(out, 0);
    put_opaque(out, &[]);
    args(out);
    let length = (out.len() - mark - 4 + tail) as u32;
    out[mark..mark + 4].copy_from_slice(&(LAST_FRAGMENT_BIT | length).to_be_bytes());
}

/// Reads the head of a reply up to its results, and returns the number of the call.
pub fn reply(reader: &mut Reader<'_>) -> Result<u32, Unread> {
    let xid = reader.u32()?;
    if reader.u32()? != REPLY {
        return Err(broken("the server called back, instead of answering"));
    }
    match reader.u32()? {
        0 => accepted(reader)?,
        1 => return Err(denied(reader)?.into()),
        other => return Err(broken(format!("the server's answer has the unknown kind {other}"))),
    }
    Ok(xid)
}

/// For an accepted call: whether it succeeded (RFC 5531 section 9).
fn accepted(reader: &mut Reader<'_>) -> Result<(), Unread> {
    reader.u32()?;
    reader.opaque(MAX_AUTH_BYTES, "a verifier")?;
    let why = match reader.u32()? {
        0 => return Ok(()),
        1 => "nothing at this port of the server speaks the program".into(),
        2 => {
            let (low, high) = (reader.u32()?, reader.u32()?);
            format!("the server speaks versions {low} to {high} of the program only")
        }
        3 => "the server does not have this procedure".into(),
        4 => "the server could not read the call".into(),
        5 => "the server had an internal error".into(),
        other => format!("the server did not execute the call, for the unknown reason {other}"),
    };
    Err(FileError::Refused(why).into())
}

fn denied(reader: &mut Reader<'_>) -> Result<FileError, Unread> {
    if reader.u32()? == 0 {
        return Ok(FileError::Refused("the server speaks another version of RPC".into()));
    }
    let why = match reader.u32()? {
        5 => "the server finds this user's credential too weak".into(),
        other => format!("the server does not take this user's credential (reason {other})"),
    };
    Ok(FileError::Distrusted(why))
}

/// Adds the likely reason for a missing permission: whom the server trusts, as far as the local port shows it, or whom the
/// file belongs to.
pub fn with_advice(why: FileError, socket: &OwnedFd) -> FileError {
    let port = || {
        let address = getsockname(socket).ok()?;
        SocketAddr::try_from(address).ok().map(|address| address.port())
    };
    FileError::NotPermitted(match why {
        FileError::Distrusted(why) => match port() {
            Some(port) if port >= FIRST_UNPRIVILEGED_PORT => format!(
                "{why}; the call came from port {port}, and the server may insist on one below 1024, which takes root or \
                 CAP_NET_BIND_SERVICE; the export's option \"insecure\" (nfs-ganesha: PrivilegedPort = false) allows others"
            ),
            _ => format!("{why}; look at the export's clients, and who may read or write there"),
        },
        FileError::NotPermitted(why) => format!(
            "{why}; goodput asks as user {}: look at the modes of the file and its folders, and whether the export maps \
             users (root_squash, all_squash)",
            rustix::process::geteuid().as_raw()
        ),
        other => return other,
    })
}

/// Joins the fragments of a record: returns the bytes consumed, and the record. `None`: it is incomplete.
pub fn record(bytes: &[u8]) -> Option<(usize, Vec<u8>)> {
    let (mut at, mut whole) = (0, Vec::new());
    loop {
        let mark = bytes.get(at..at + 4)?;
        let mark = u32::from_be_bytes([mark[0], mark[1], mark[2], mark[3]]);
        let end = at + 4 + (mark & !LAST_FRAGMENT_BIT) as usize;
        whole.extend(bytes.get(at + 4..end)?);
        at = end;
        if mark & LAST_FRAGMENT_BIT != 0 {
            return Some((at, whole));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NULL: Procedure =
        Procedure { program: 1, version: 2, number: 0, name: "NULL", patience: Duration::ZERO };

    #[test]
    fn a_call_is_a_record() {
        let mut out = Vec::new();
        call(&mut out, 9, NULL, &Credential::of(1, 2, &[3; 40]), |out| put(out, 77));
        let (used, whole) = record(&out).unwrap();
        assert_eq!((used, whole.len()), (out.len(), out.len() - 4));
        assert!(record(&out[..out.len() - 1]).is_none());
        assert_eq!(whole[..8], [0, 0, 0, 9, 0, 0, 0, 0]);
        assert_eq!(whole[whole.len() - 4..], [0, 0, 0, 77]);
        let mut rest = Vec::new();
        call_with_tail(&mut rest, 9, NULL, &Credential::of(1, 2, &[3; 40]), 4, |_| ());
        put(&mut rest, 77);
        assert_eq!(rest, out, "what follows is counted");
    }

    #[test]
    fn fragments_are_put_together() {
        let bytes = [0, 0, 0, 1, 7, 0, 0, 0, 0, 0x80, 0, 0, 2, 8, 9, 1, 1];
        assert_eq!(record(&bytes).unwrap(), (15, vec![7, 8, 9]));
    }

    fn read(words: &[u32]) -> Result<u32, Unread> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        reply(&mut Reader::new(&bytes))
    }

    #[test]
    fn a_reply_says_whether_it_is_one() {
        assert_eq!(read(&[5, 1, 0, 0, 0, 0]).unwrap(), 5);
        assert!(matches!(read(&[5, 1, 0, 0, 0]), Err(Unread::Short)));
        let weak = read(&[5, 1, 1, 1, 5]).unwrap_err();
        let Unread::Failed(FileError::Distrusted(why)) = weak else { panic!("{weak:?}") };
        assert!(why.contains("too weak"), "{why}");
        let versions = read(&[5, 1, 0, 0, 0, 2, 4, 4]).unwrap_err();
        assert!(format!("{versions:?}").contains("4 to 4"), "{versions:?}");
    }
}
