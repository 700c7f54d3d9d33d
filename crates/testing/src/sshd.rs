//! A real OpenSSH server on loopback, whose only account is the user who runs the test.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tempfile::TempDir;

use crate::{skip, write_script};

/// The program; it must be started by its full path.
const SSHD: &str = "/usr/sbin/sshd";

/// A server with its own keys, and a client configuration with five hosts: `b` is this server, `unknown` is this
/// server with a host key that the client does not know, `changed` had another key before, `locked` is this server
/// without a key to log in with, `gone` is a port at which nobody answers.
pub struct Sshd {
    folder: TempDir,
    address: SocketAddr,
    over: Arc<AtomicBool>,
}

impl Sshd {
    /// Starts a server that runs `forced`, a shell's line, for any request of a client. `None`, and the test is
    /// skipped, if OpenSSH is missing.
    ///
    /// # Panics
    /// If it can't be started for another reason.
    pub fn start(forced: &str) -> Option<Self> {
        if !Path::new(SSHD).exists() {
            skip("openssh-server and openssh-client");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its number");
        configure(folder.path(), address, forced).expect("keys and configuration");
        let over = Arc::new(AtomicBool::new(false));
        let (flag, config) = (over.clone(), folder.path().join("sshd_config"));
        thread::spawn(move || serve(&listener, &config, &flag));
        Some(Self { folder, address, over })
    }

    /// The configuration for a client (`ssh -F`).
    pub fn config(&self) -> PathBuf {
        self.folder.path().join("ssh_config")
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes up the accepting thread.
        let _ = TcpStream::connect(self.address);
    }
}

/// Writes the keys of both sides and their knowledge of each other.
fn configure(folder: &Path, address: SocketAddr, forced: &str) -> io::Result<()> {
    for key in ["host", "user"] {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(folder.join(key))
            .status()?;
        assert!(made.success(), "ssh-keygen failed");
    }
    let host_key = fs::read_to_string(folder.join("host.pub"))?;
    fs::write(folder.join("known"), format!("[127.0.0.1]:{} {host_key}", address.port()))?;
    fs::write(folder.join("nobody"), "")?;
    let other_key = fs::read_to_string(folder.join("user.pub"))?;
    fs::write(folder.join("before"), format!("[127.0.0.1]:{} {other_key}", address.port()))?;
    fs::copy(folder.join("user.pub"), folder.join("authorized"))?;
    write_script(&folder.join("forced"), &format!("#!/bin/sh\n{forced}\n"));
    let at = folder.display();
    let server = format!(
        "HostKey {at}/host\nAuthorizedKeysFile {at}/authorized\nPasswordAuthentication no\n\
         KbdInteractiveAuthentication no\nUsePAM no\nStrictModes no\nPidFile none\nPermitRootLogin yes\n\
         PrintMotd no\nForceCommand {at}/forced\n"
    );
    fs::write(folder.join("sshd_config"), server)?;
    let client = format!(
        "Host unknown\n UserKnownHostsFile {at}/nobody\n\
         Host changed\n UserKnownHostsFile {at}/before\n\
         Host locked\n IdentityFile none\n\
         Host b unknown changed\n IdentityFile {at}/user\n\
         Host gone\n Port 1\n\
         Host b locked gone\n UserKnownHostsFile {at}/known\n\
         Host *\n HostName 127.0.0.1\n Port {}\n IdentitiesOnly yes\n IdentityAgent none\n\
         \x20GlobalKnownHostsFile {at}/nobody\n",
        address.port()
    );
    fs::write(folder.join("ssh_config"), client)
}

/// One server process for each connection.
fn serve(listener: &TcpListener, config: &Path, over: &AtomicBool) {
    let mut children: Vec<Child> = Vec::new();
    for connection in listener.incoming() {
        children.retain_mut(|child| !matches!(child.try_wait(), Ok(Some(_))));
        let Ok(connection) = connection else { continue };
        if over.load(Ordering::Relaxed) {
            break;
        }
        children.extend(server(connection, config).ok());
    }
    for mut child in children {
        // Its client may have disconnected already.
        let _ = (child.kill(), child.wait());
    }
}

fn server(connection: TcpStream, config: &Path) -> io::Result<Child> {
    // As root it needs a directory that only its service makes: in a mount namespace of its own it gets one.
    let script = "if [ \"$(id -u)\" = 0 ]; then mount -t tmpfs none /run && mkdir -m 755 /run/sshd; fi; \
                  exec \"$1\" -i -e -f \"$2\"";
    let root = fs::metadata("/proc/self").map(|of| std::os::unix::fs::MetadataExt::uid(&of));
    let mut command = match root? {
        0 => Command::new("unshare"),
        _ => Command::new("env"),
    };
    if command.get_program() == "unshare" {
        command.arg("--mount");
    }
    let input = OwnedFd::from(connection.try_clone()?);
    command
        .args(["sh", "-c", script, "sh", SSHD])
        .arg(config)
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(OwnedFd::from(connection)))
        .stderr(Stdio::null())
        .spawn()
}
