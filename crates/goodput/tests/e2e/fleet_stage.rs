//! A fleet on loopback: a nats-server of the test's own, its agents and its coordinator.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, ExitStatus, Output, Stdio};

use goodput_fleet::{Announcement, FORMAT, Limits};
use goodput_model::{Host, Record};
use goodput_testing::servers::{Nats, nats_with};

use crate::common::{Home, records};

/// Both directions of one pair, of which only `a` can be called.
pub const PAIR: &str =
    "[test]\nlength = \"1s\"\npause = \"0s\"\n[site.a]\ntarget = \"127.0.0.1\"\n[site.b]\n";

/// A bus, and a home for each process.
pub struct Fleet {
    pub nats: Nats,
    pub storage: Home,
    /// How the coordinator logs in, and what else it is told.
    pub coordinator: Vec<String>,
}

impl Fleet {
    /// None without nats-server.
    pub fn new() -> Option<Self> {
        Self::within(Home::new(), "")
    }

    /// With these lines of configuration; what they name is in `storage`.
    pub fn within(storage: Home, configuration: &str) -> Option<Self> {
        let nats = nats_with(storage.path(), configuration)?;
        Some(Self { nats, storage, coordinator: Vec::new() })
    }

    pub fn mesh(&self, text: &str) -> String {
        self.storage.file("mesh.toml", text).display().to_string()
    }

    /// A coordinator that tests the mesh once.
    pub fn run(&self, home: &Home, mesh: &str) -> Child {
        self.coordinate(home, &["run", mesh, "--once"])
    }

    /// `goodput fleet` as the coordinator.
    pub fn coordinate(&self, home: &Home, what: &[&str]) -> Child {
        let url = self.nats.url();
        let own = self.coordinator.iter().map(String::as_str);
        let arguments = ["fleet"].into_iter().chain(what.iter().copied());
        // What is told later wins: a test may name another address.
        let arguments: Vec<_> = arguments.chain(own).collect();
        let mut command = home.goodput(&arguments);
        if !arguments.contains(&"--nats") {
            command.args(["--nats", &url]);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program under test can be started")
    }

    pub fn test(&self, home: &Home, what: &[&str]) -> Output {
        let child = self.coordinate(home, &[&["test"], what].concat());
        child.wait_with_output().expect("it ends")
    }

    pub fn run_to_the_end(&self, home: &Home, mesh: &str) -> Output {
        self.run(home, mesh).wait_with_output().expect("it ends")
    }
}

/// An agent that runs; killed with the test.
pub struct Agent {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub home: Home,
}

impl Agent {
    pub fn start(fleet: &Fleet, name: &str) -> Self {
        Self::start_in(fleet, name, Home::new())
    }

    pub fn start_in(fleet: &Fleet, name: &str, home: Home) -> Self {
        Self::start_with(fleet, name, home, &[])
    }

    /// Waits until it has its name.
    pub fn start_with(fleet: &Fleet, name: &str, home: Home, more: &[&str]) -> Self {
        let url = fleet.nats.url();
        let mut more = more.to_vec();
        if !more.contains(&"--nats") {
            more.extend(["--nats", &url]);
        }
        let mut agent = Self::begin(name, home, &more);
        agent.wait_for_name(name);
        agent
    }

    /// Does not wait for its name.
    pub fn begin(name: &str, home: Home, more: &[&str]) -> Self {
        Self::begin_within(name, home, more, &[])
    }

    /// The same with these variables in its environment.
    pub fn begin_within(
        name: &str,
        home: Home,
        more: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let arguments = [&["fleet", "agent", "--name", name], more].concat();
        let log = std::fs::File::create(home.path().join("agent.log")).expect("it is ours");
        let mut command = home.goodput(&arguments);
        command.envs(environment.iter().copied());
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().expect("it starts");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Self { child, stdout, home }
    }

    pub fn wait_for_name(&mut self, name: &str) {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("it says that it runs");
        assert!(line.contains(&format!("Z agent {name} at ")), "{line:?} {}", self.log());
    }

    /// The servers that it has open.
    pub fn servers(&self) -> usize {
        let pid = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        children.unwrap_or_default().split_whitespace().count()
    }

    pub fn records(&self) -> Vec<Record> {
        records(self.home.path())
    }

    /// What it has said of itself.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.home.path().join("agent.log")).unwrap_or_default()
    }

    /// How it has ended by itself; none while it runs.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is ours")
    }

    /// As the kernel does when memory is short.
    pub fn kill(mut self) -> Home {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is ours");
        std::mem::replace(&mut self.home, Home::new())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What an agent that a test plays says of itself: it can be asked for anything.
pub fn announcement(site: &str) -> Announcement {
    let host = Host { name: site.into(), kernel: "k".into(), goodput: "0".into(), cpus: 1 };
    let limits = Limits {
        max_duration_s: 60.0,
        max_rate: None,
        left: None,
        accepts: None,
        logs_in: Vec::new(),
    };
    let [session, since] = [format!("s-{site}"), "noon".into()];
    let (format, trusts, heeds) = (FORMAT, None, Some(u64::MAX));
    Announcement { format, site: site.into(), session, host, since, trusts, heeds, limits }
}
