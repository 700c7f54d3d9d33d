//! Servers from Debian's packages, each on its own ports, for as long as a test holds them.

mod nginx;
mod vsftpd;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub use nginx::{Nginx, nginx};
pub use vsftpd::vsftpd;

use crate::{skip, wait_for};

/// A program that ends with the test.
pub struct Running(Child);

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

/// A port that nobody listened on a moment ago.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
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
    wait_for(&format!("{program} to listen"), || TcpStream::connect(address).is_ok());
    running
}

/// Writes a server's file.
fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("the folder is writable");
    path.display().to_string()
}
