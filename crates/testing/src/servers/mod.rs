//! Servers from Debian's packages, each on its own ports, for as long as a test holds them.

mod nats;
mod nginx;
mod postgres;
mod vsftpd;

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub use nats::{Heard, Nats, nats, nats_cluster, nats_cluster_at, nats_in, nats_with};
pub use nginx::{Nginx, nginx};
pub use postgres::{Postgres, own_postgres, postgres};
pub use vsftpd::vsftpd;

use crate::{skip, wait_for};

/// A program that ends with the test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a program with this name is installed; if not, the test is skipped.
pub fn has(program: &str) -> bool {
    let found = ["/usr/sbin", "/usr/bin"].iter().any(|dir| Path::new(dir).join(program).exists());
    if !found {
        skip(&format!("{program} is not installed"));
    }
    found
}

/// A port for a server. The kernel gives it to nobody else for a minute, such as a test beside this one: a closed
/// connection keeps it (TIME-WAIT, RFC 9293 section 3.6). Only a server that asks for this very port gets it, with
/// `SO_REUSEADDR`.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let client = TcpStream::connect(address).expect("it listens");
    let (accepted, _) = listener.accept().expect("it was connected");
    // The end that closes first keeps its port.
    drop(accepted);
    drop(client);
    address.port()
}

/// Whether this host has an IPv6 address of its own.
pub fn has_v6() -> bool {
    TcpListener::bind("[::1]:0").is_ok()
}

/// A self-signed certificate for 127.0.0.1, `cert.pem` and `key.pem` in `folder`, which states whether it is an
/// authority.
pub fn certificate(folder: &Path, is_authority: bool) {
    let authority = if is_authority { "TRUE" } else { "FALSE" };
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "cert.pem"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", &format!("basicConstraints=critical,CA:{authority}")])
        .current_dir(folder)
        .stderr(Stdio::null())
        .status();
    assert!(made.expect("openssl can be started").success());
}

/// Starts a server that stays in the foreground, and waits until it listens.
fn start(program: &str, arguments: &[&str], address: SocketAddr) -> Running {
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server can be started");
    let running = Running(child);
    let process = running.0.id();
    wait_for(&format!("{program} to listen"), || listens(process, address.port()));
    running
}

/// Whether a process listens at a port. That someone can connect says less: while another thread starts a program, all
/// sockets of this process are open in the new one too until it is executed, such as the listener of [`free_port`].
fn listens(process: u32, port: u16) -> bool {
    let tables = ["tcp", "tcp6"].map(|family| format!("/proc/{process}/net/{family}"));
    let tables = tables.iter().filter_map(|table| fs::read_to_string(table).ok());
    let sockets: Vec<String> = tables.flat_map(|table| listening(&table, port)).collect();
    let Ok(open) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    let mut links = open.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    links.any(|link| sockets.iter().any(|socket| link.as_os_str() == socket.as_str()))
}

/// The sockets that listen at a port, according to a table of the kernel, by what links to them say: `st` is 0A, TCP_LISTEN
/// (proc_pid_net(5), `tcp`).
fn listening(table: &str, port: u16) -> Vec<String> {
    let port = format!(":{port:04X}");
    let socket = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [_, local, _, "0A", _, _, _, _, _, inode, ..] = fields[..] else { return None };
        local.ends_with(&port).then(|| format!("socket:[{inode}]"))
    };
    table.lines().filter_map(socket).collect()
}

/// Writes a server's file.
fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).expect("the folder is writable");
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_gets_the_port_that_was_kept_for_it_and_nobody_else() {
        let port = free_port();
        let others: Vec<_> = (0..500).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
        let mut others = others.iter().flatten().filter_map(|other| other.local_addr().ok());
        assert!(others.all(|other| other.port() != port));
        TcpListener::bind(("127.0.0.1", port)).expect("a server may listen there");
    }

    #[test]
    fn a_process_listens_where_it_has_a_listening_socket() {
        let own = std::process::id();
        let listener = TcpListener::bind("[::]:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listens(own, port));
        let mut other = Running(Command::new("sleep").arg("100").spawn().unwrap());
        assert!(!listens(other.0.id(), port), "someone else listens there");
        let connected = TcpStream::connect(("127.0.0.1", port)).unwrap();
        assert!(!listens(own, connected.local_addr().unwrap().port()), "it is only connected");
        drop(listener);
        assert!(!listens(own, port));
        other.0.kill().unwrap();
    }
}
