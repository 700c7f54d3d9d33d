//! A server on loopback and ways to run goodput against it, for every end-to-end test.

mod kept;
mod moved;

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use goodput_model::Record;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tempfile::TempDir;

pub use kept::records;
pub use moved::moved;

/// Half a second of payload, and more on a machine that is busy: no plan of bytes ends before any have moved, as one of
/// time may.
pub const HALF_A_SECOND: [&str; 4] = ["-n", "6M", "--rate", "100mbit"];

/// The program under test.
pub fn exe() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_goodput"))
}

/// A directory that stands for the user's home; nothing outside it is written.
pub struct Home(TempDir);

impl Home {
    pub fn new() -> Self {
        let home = tempfile::tempdir().expect("a temporary directory can be made");
        // A server that root starts becomes another user.
        set_mode(home.path(), 0o755);
        Self(home)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A file that only its owner can reach, as those with secrets have to be.
    pub fn secret(&self, name: &str, content: &str) -> PathBuf {
        let path = self.file(name, content);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, mode).expect("the file is the test's own");
        path
    }

    pub fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).expect("the temporary directory is writable");
        path
    }

    /// Where servers write what they have to say.
    fn log(&self) -> Stdio {
        let path = self.path().join("server.log");
        std::fs::File::create(path).expect("the temporary directory is writable").into()
    }

    /// The program, at home here.
    pub fn goodput(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(exe());
        // Whoever runs the tests may reach servers by a proxy.
        for proxy in ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
            command.env_remove(proxy);
        }
        command
            .args(arguments)
            .env("XDG_DATA_HOME", self.path())
            .env("XDG_CONFIG_HOME", self.path())
            .env("GOODPUT_STATE_DIR", self.path().join("state"))
            // Watches of other tests are not waited for.
            .env("GOODPUT_LINE", self.path().file_name().unwrap_or_default())
            .env_remove("GOODPUT_TOKEN_FILE")
            .env_remove("GOODPUT_KEY_FILE")
            .env_remove("RUST_LOG")
            // A phrase that a test looks for is in one line.
            .env("COLUMNS", "1000")
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.goodput(arguments).output().expect("the program under test can be started")
    }
}

/// Sets who may read and write a file.
pub fn set_mode(path: &Path, mode: u32) {
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, mode).expect("it is ours");
}

/// A running `goodput serve`; ended with the test.
pub struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// Where it listens, as HOST:PORT.
    pub address: String,
}

impl Server {
    pub fn start(home: &Home, arguments: &[&str]) -> Self {
        let mut all = vec!["-v", "serve", "--port", "0"];
        if !arguments.contains(&"--bind") {
            all.extend(["--bind", "127.0.0.1"]);
        }
        all.extend(arguments);
        let mut child = home
            .goodput(&all)
            .stdout(Stdio::piped())
            .stderr(home.log())
            .spawn()
            .expect("the program under test can be started");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("the server says where it listens");
        let address = line.trim().rsplit(' ').next().unwrap_or_default().to_string();
        assert!(line.contains("listening on"), "{line:?}");
        Self { child, stdout, address }
    }

    /// Where it answers other protocols on their own port: the next line that says so.
    pub fn next_address(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("the server says where else it listens");
        assert!(line.contains(" on "), "{line:?}");
        line.trim().rsplit(' ').next().unwrap_or_default().to_string()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Does something while no thread of it runs.
    pub fn while_stopped(&self, act: impl FnOnce()) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::STOP).expect("a child can be stopped");
        waitpid(Some(pid), WaitOptions::UNTRACED).expect("a child can be waited for");
        act();
        kill_process(pid, Signal::CONT).expect("a stopped child can go on");
    }

    /// Sends a signal and waits for the end.
    pub fn stop(&mut self, signal: &str) -> std::process::ExitStatus {
        let pid = self.pid().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.is_ok_and(|s| s.success()), "kill {signal} {pid}");
        self.child.wait().expect("a child can be waited for")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port of loopback that refuses connections: bound, so that it is nobody else's, and not listening.
pub fn refusing() -> (socket2::Socket, SocketAddr) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
    let socket = socket.expect("a socket can be made");
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("loopback has a free port");
    let address = socket.local_addr().ok().and_then(|address| address.as_socket());
    (socket, address.expect("it is bound"))
}

/// The first of this many free consecutive ports, over TCP and UDP, that nobody takes before they are used.
/// They are below the range that the kernel gives out (net.ipv4.ip_local_port_range, from 32768), and no
/// other test process uses them.
pub fn unused_ports(count: u16) -> u16 {
    /// Of a process.
    const ALL: u16 = 200;
    static TRIED: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + (std::process::id() % 60) as u16 * ALL;
    let is_unused = |port| {
        TcpListener::bind(("0.0.0.0", port)).is_ok() && UdpSocket::bind(("0.0.0.0", port)).is_ok()
    };
    loop {
        let tried = TRIED.fetch_add(count, Ordering::Relaxed);
        assert!(tried + count <= ALL, "all {ALL} ports from {first} on were used or tried");
        if (first + tried..first + tried + count).all(is_unused) {
            return first + tried;
        }
    }
}

/// A listener and a UDP socket on one port of loopback.
pub fn both_sockets() -> (TcpListener, UdpSocket) {
    loop {
        let tcp = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        // The system has chosen the port for TCP alone.
        if let Ok(udp) = UdpSocket::bind(tcp.local_addr().expect("it is bound")) {
            return (tcp, udp);
        }
    }
}

/// The record that a `--json` run printed.
pub fn record(output: &Output) -> Record {
    assert!(
        output.status.success(),
        "{}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("stdout is one JSON record")
}

/// Whether a rule has found something, be it the limit or not: a busy machine may have a narrower one.
pub fn found(record: &Record, rule: &str) -> bool {
    record.findings.iter().any(|finding| finding.rule == rule)
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
