//! TCP connections of other programs: the kernel's facts about a transfer that is not ours.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::SocketAddr;

use goodput_model::{Known, Missing, SocketMemory, TcpInfo};
use goodput_netlink::sock_diag::{DiagSocket, tcp_sockets};

use crate::context::missing;
use crate::{decode, socket};

/// Which sockets are wanted. `None` sets no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SocketFilter {
    /// Port of either end.
    pub port: Option<u16>,
    /// Inode numbers, as [`socket_inodes_of`] finds them.
    pub inodes: Option<BTreeSet<u64>>,
}

/// A connected TCP socket of any program in this network namespace.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignSocket {
    /// Its own end.
    pub local: SocketAddr,
    /// The other end.
    pub peer: SocketAddr,
    /// Inode number by which processes hold it; 0 if no process holds it any longer.
    pub inode: u64,
    /// The kernel's facts about the connection.
    pub tcp_info: Known<TcpInfo>,
    /// Memory against its limits.
    pub memory: Known<SocketMemory>,
    /// Name of its congestion control.
    pub congestion: Known<String>,
    /// Bytes that wait for the reader.
    pub receive_queue_bytes: u64,
    /// Bytes that wait to be sent or acknowledged.
    pub send_queue_bytes: u64,
}

/// The connected TCP sockets that pass `filter`, in the network namespace of the calling thread. Needs no privilege. A
/// transfer within one host contributes both of its ends.
pub fn foreign_sockets(filter: &SocketFilter) -> Result<Vec<ForeignSocket>, Missing> {
    let sockets = match filter.port {
        None => tcp_sockets(None, None).map_err(missing)?,
        Some(port) => {
            let mut sockets = tcp_sockets(Some(port), None).map_err(missing)?;
            let others = tcp_sockets(None, Some(port)).map_err(missing)?;
            sockets.extend(others.into_iter().filter(|socket| socket.local.port() != port));
            sockets
        }
    };
    let wanted = |socket: &DiagSocket| match &filter.inodes {
        Some(inodes) => inodes.contains(&u64::from(socket.inode)),
        None => true,
    };
    Ok(sockets.into_iter().filter(wanted).map(foreign).collect())
}

/// Inode numbers of the sockets that process `pid` holds. Needs the rights of its user or of root (proc_pid_fd(5)). Its
/// sockets are in its own network namespace, which may be a different one.
pub fn socket_inodes_of(pid: u32) -> Result<BTreeSet<u64>, Missing> {
    let unreadable = |error: io::Error| {
        let advice = match error.kind() {
            io::ErrorKind::NotFound => "; check if it still runs",
            io::ErrorKind::PermissionDenied => "; run as its user or as root",
            _ => "",
        };
        Missing::because(format!("can't list the sockets of process {pid}: {error}{advice}"))
    };
    let mut inodes = BTreeSet::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).map_err(unreadable)? {
        // A descriptor that was closed meanwhile is skipped.
        let Ok(target) = fs::read_link(entry.map_err(unreadable)?.path()) else { continue };
        inodes.extend(socket_inode(&target.to_string_lossy()));
    }
    Ok(inodes)
}

/// `socket:[12345]`.
fn socket_inode(target: &str) -> Option<u64> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

fn foreign(socket: DiagSocket) -> ForeignSocket {
    let memory = socket.memory.as_deref().and_then(<[u32]>::first_chunk);
    ForeignSocket {
        local: socket.local,
        peer: socket.peer,
        inode: socket.inode.into(),
        tcp_info: known(socket.tcp_info.map(|bytes| decode(&bytes)), "tcp_info"),
        memory: known(memory.map(socket::memory), "memory"),
        congestion: known(socket.congestion, "congestion control"),
        receive_queue_bytes: socket.receive_queue_bytes.into(),
        send_queue_bytes: socket.send_queue_bytes.into(),
    }
}

fn known<T>(value: Option<T>, what: &str) -> Known<T> {
    match value {
        Some(value) => Known::Value(value),
        None => {
            Known::missing(format!("the kernel's list of sockets has no {what} for this socket"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_of_a_process_is_found_with_all_that_its_owner_would_see() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        sender.write_all(&[7; 10_000]).unwrap();
        receiver.read_exact(&mut [0; 10_000]).unwrap();
        let inodes = socket_inodes_of(std::process::id()).unwrap();
        let filter = SocketFilter { port: Some(port), inodes: Some(inodes) };
        let found = foreign_sockets(&filter).unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        let received = found.iter().find(|socket| socket.local.port() == port).unwrap();
        assert_eq!(received.peer, sender.local_addr().unwrap());
        assert_eq!(received.tcp_info.get().unwrap().received_bytes(), Ok(10_000));
        assert!(received.memory.get().unwrap().rcvbuf_bytes > 0);
        assert!(!received.congestion.get().unwrap().is_empty());
    }

    #[test]
    fn other_inodes_and_processes_that_are_gone_give_nothing() {
        let filter = SocketFilter { inodes: Some(BTreeSet::new()), ..SocketFilter::default() };
        assert_eq!(foreign_sockets(&filter), Ok(Vec::new()));
        let why = socket_inodes_of(u32::MAX).unwrap_err().to_string();
        assert!(why.contains("still runs"), "{why}");
        assert_eq!(socket_inode("pipe:[7]"), None);
        assert_eq!(socket_inode("socket:[7]"), Some(7));
    }
}
