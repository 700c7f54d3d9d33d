//! A network namespace with nothing but a loopback device, and programs that run in it.

use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use goodput_model::{Record, Transport};
use goodput_netlink::{Netlink, namespace};
use goodput_testing::WAIT_TIMEOUT;
use libtest_mimic::Failed;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Pause between two looks at what is waited for.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// State of a listening socket in /proc/net/tcp (`TCP_LISTEN`, include/net/tcp_states.h).
const LISTENING: &str = "0A";
/// State of a bound datagram socket that is not connected (`TCP_CLOSE`, the same).
const UNCONNECTED: &str = "07";

/// The namespace, and a directory that is the home of every program that runs there. Both go
/// with it.
pub struct Space {
    namespace: OwnedFd,
    home: TempDir,
}

/// A program that runs in a space; killed with the test.
pub struct Running {
    child: Child,
    what: String,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// How a program ended, and what it said.
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Space {
    pub fn new() -> Result<Self, Failed> {
        let space = Self { namespace: namespace::create()?, home: tempfile::tempdir()? };
        space.within(|| -> Result<(), Failed> {
            let mut netlink = Netlink::open()?;
            let loopback = netlink.link("lo")?.index;
            Ok(netlink.set_up(loopback)?)
        })??;
        Ok(space)
    }

    /// Runs `work` on a thread of its own in the namespace.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Failed> {
        Ok(namespace::inside(self.namespace.as_fd(), work)?)
    }

    /// A file with this content.
    pub fn file(&self, name: &str, content: &str) -> Result<String, Failed> {
        let path = self.home.path().join(name);
        fs::write(&path, content)?;
        // Some of them hold secrets.
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        path.into_os_string().into_string().map_err(|_| "the directory's name is no text".into())
    }

    /// Starts any program.
    pub fn start(&self, program: &str, arguments: &[&str]) -> Result<Running, Failed> {
        self.start_with(program, arguments, &[])
    }

    /// Starts any program with more in its environment.
    pub fn start_with(
        &self,
        program: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Running, Failed> {
        let (mut out, mut err) = (tempfile::Builder::new(), tempfile::Builder::new());
        let (out, err) = (out.suffix(".out"), err.suffix(".err"));
        let (stdout, stdout_path) = out.tempfile_in(self.home.path())?.keep()?;
        let (stderr, stderr_path) = err.tempfile_in(self.home.path())?.keep()?;
        let child =
            self.within(|| self.command(program, arguments, variables, stdout, stderr).spawn())?;
        let what = format!("{program} {}", arguments.join(" "));
        let child = child.map_err(|cause| format!("can't start {what}: {cause}"))?;
        Ok(Running { child, what, stdout: stdout_path, stderr: stderr_path })
    }

    fn command(
        &self,
        program: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
        stdout: File,
        stderr: File,
    ) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("XDG_DATA_HOME", self.home.path())
            .env("GOODPUT_STATE_DIR", self.home.path().join("state"))
            .env_remove("GOODPUT_TOKEN_FILE")
            .env_remove("RUST_LOG")
            .envs(variables.iter().copied())
            .current_dir(self.home.path())
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr);
        command
    }

    /// Starts `goodput serve` on all usual ports, and waits until it listens.
    pub fn serve(&self, arguments: &[&str]) -> Result<Running, Failed> {
        let all = [&["-v", "serve"], arguments].concat();
        let mut server = self.start(exe(), &all)?;
        server.wait_for_line("listening on")?;
        Ok(server)
    }

    /// `goodput test` until its end, and its record.
    pub fn test(&self, arguments: &[&str]) -> Result<Record, Failed> {
        let all = [&["test", "--json", "--no-store"], arguments].concat();
        let finished = self.start(exe(), &all)?.finish()?;
        if !finished.status.success() {
            return Err(format!("{}: {}", finished.status, finished.stderr).into());
        }
        Ok(serde_json::from_str(&finished.stdout)?)
    }

    /// Datagrams over IPv4 that were sent here and that nobody read, as their socket was full or closed
    /// too early (`UdpOutDatagrams` and `UdpInDatagrams`, RFC 4113; net/ipv4/udp.c counts the latter if
    /// a program reads).
    pub fn unread_datagrams(&self) -> Result<u64, Failed> {
        let snmp = self.within(|| fs::read_to_string("/proc/thread-self/net/snmp"))??;
        let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Udp: "));
        let (names, values) = lines.next().zip(lines.next()).ok_or("the kernel counts no UDP")?;
        let count = |name: &str| -> Result<u64, Failed> {
            let mut pairs = names.split(' ').zip(values.split(' '));
            let (_, value) = pairs.find(|(n, _)| *n == name).ok_or("a count is not there")?;
            Ok(value.parse()?)
        };
        Ok(count("OutDatagrams")?.saturating_sub(count("InDatagrams")?))
    }

    /// Waits until something listens on a TCP port, without connecting to it: a server that serves one
    /// client only would take that for the one.
    pub fn wait_for_listener(&self, port: u16) -> Result<(), Failed> {
        self.wait_for_socket(Transport::Tcp, port)
    }

    /// The same, for UDP as well.
    pub fn wait_for_socket(&self, transport: Transport, port: u16) -> Result<(), Failed> {
        let (tables, state) = match transport {
            Transport::Tcp => (["tcp", "tcp6"], LISTENING),
            Transport::Udp => (["udp", "udp6"], UNCONNECTED),
        };
        let listens = || -> bool {
            let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}"));
            tables
                .iter()
                .filter_map(|name| read(name).ok())
                .any(|table| table.lines().skip(1).any(|line| is_listening(line, state, port)))
        };
        let deadline = Instant::now() + WAIT_TIMEOUT;
        while !self.within(listens)? {
            if Instant::now() > deadline {
                return Err(format!("nothing listens on port {port}").into());
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }
}

/// A line of /proc/net/tcp: number, local address and port in hex, the other's, the state.
fn is_listening(line: &str, wanted: &str, port: u16) -> bool {
    let fields: Vec<_> = line.split_whitespace().collect();
    let [_, local, _, state, ..] = fields.as_slice() else { return false };
    local.ends_with(&format!(":{port:04X}")) && *state == wanted
}

impl Running {
    /// Waits until it has written `text` to stdout.
    pub fn wait_for_line(&mut self, text: &str) -> Result<(), Failed> {
        self.wait_for(&self.stdout.clone(), text)
    }

    /// Waits until it has written `text` to stderr.
    pub fn wait_for_complaint(&mut self, text: &str) -> Result<(), Failed> {
        self.wait_for(&self.stderr.clone(), text)
    }

    /// Waits until it has written one of these to stderr.
    pub fn wait_for_any_complaint(&mut self, texts: &[&str]) -> Result<(), Failed> {
        let has_any = |said: &str| texts.iter().any(|text| said.contains(text));
        self.wait_until(&self.stderr.clone(), has_any, &texts.join(" or "))
    }

    /// Waits until it has written `text` to stderr this many times. Returns all that it wrote there.
    pub fn wait_for_complaints(&mut self, text: &str, times: usize) -> Result<String, Failed> {
        self.wait_for_all(&self.stderr.clone(), text, times)?;
        self.stderr()
    }

    fn wait_for(&mut self, file: &Path, text: &str) -> Result<(), Failed> {
        self.wait_for_all(file, text, 1)
    }

    fn wait_for_all(&mut self, file: &Path, text: &str, times: usize) -> Result<(), Failed> {
        self.wait_until(file, |said| said.matches(text).count() >= times, text)
    }

    /// Waits until what it wrote to `file` has `what`.
    fn wait_until(
        &mut self,
        file: &Path,
        has_it: impl Fn(&str) -> bool,
        what: &str,
    ) -> Result<(), Failed> {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            // In this order: what it wrote just before its end counts.
            let has_ended = self.child.try_wait()?.is_some();
            if has_it(&fs::read_to_string(file)?) {
                return Ok(());
            }
            if has_ended || Instant::now() > deadline {
                let said = self.stderr()?;
                return Err(format!("{} did not say {what:?}: {said}", self.what).into());
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// What it wrote to stderr so far.
    fn stderr(&self) -> Result<String, Failed> {
        Ok(fs::read_to_string(&self.stderr)?)
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Result<Finished, Failed> {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        let status = loop {
            match self.child.try_wait()? {
                Some(status) => break status,
                None if Instant::now() > deadline => {
                    let said = self.stderr()?;
                    return Err(
                        format!("{} did not end in {WAIT_TIMEOUT:?}: {said}", self.what).into()
                    );
                }
                None => std::thread::sleep(LOOK_AGAIN),
            }
        };
        let read =
            |path: &Path| fs::read(path).map(|said| String::from_utf8_lossy(&said).into_owned());
        Ok(Finished { status, stdout: read(&self.stdout)?, stderr: read(&self.stderr)? })
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<(), Failed> {
        // A child that nobody has waited for keeps its number, so this can hit no other process.
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended on its own.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program under test.
pub fn exe() -> &'static str {
    env!("CARGO_BIN_EXE_goodput")
}
