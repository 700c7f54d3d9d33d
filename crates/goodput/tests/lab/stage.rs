//! Two hosts with a server at the far one, and a shaped device at the near one whose burst the
//! tests compare.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use goodput_lab::{Lab, Scenario, Server};
use goodput_netlink::{Netlink, qdiscs::QdiscOptions};
use goodput_testing::wait_for;
use libtest_mimic::Failed;
use tempfile::TempDir;

use crate::journals::journals;

/// Burst that the scenario plants, and the one that the comparison tries; bytes.
pub const ORIGINAL: u32 = 1600;
pub const TRIED: u32 = 125_000;
/// What lets the near host change settings of the far one.
const TOKEN: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";

/// The hosts, the server, and a state directory of their own.
pub struct Stage {
    pub lab: Lab,
    server: Option<Server>,
    target: String,
    directory: TempDir,
}

impl Stage {
    /// Brings it up. `server` are more arguments for the server.
    pub fn set(server: &[&str]) -> Result<Self, Failed> {
        let mut scenario = Scenario::load("burst-too-small")?;
        scenario.run.server.extend(server.iter().map(|argument| (*argument).into()));
        // In memory: what a busy disk takes for fsync(2) is no part of what is promised.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
        let token = directory.path().join("token");
        std::fs::write(&token, TOKEN)?;
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600))?;
        let token = token_file(&directory)?;
        let allowed = ["--allow-settings".into(), "sysctl.net.ipv4.*".into()];
        scenario.run.server.extend(["--token-file".into(), token].into_iter().chain(allowed));
        let lab = Lab::up(&scenario)?;
        let server = Server::start(&lab, &scenario, exe())?;
        let target = server.target().into();
        Ok(Self { lab, server: Some(server), target, directory })
    }

    /// Stops the server in the middle of whatever it does.
    pub fn stop_server(&mut self) -> Result<(), Failed> {
        match self.server.take() {
            Some(server) => Ok(server.stop()?),
            None => Ok(()),
        }
    }

    /// The server's address and port.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// File with the token that the server knows.
    pub fn token_file(&self) -> Result<String, Failed> {
        token_file(&self.directory)
    }

    /// Another server at the far host, which gives up its privileges as servers do, in a process of its
    /// own, with these arguments too. Its target, and where it writes its log.
    pub fn unprivileged_server(&self, more: &[&str]) -> Result<(Child, String, PathBuf), Failed> {
        let host = self.target.rsplit_once(':').map_or(&*self.target, |(host, _)| host);
        let log = self.directory.path().join("server.log");
        let mut command = self.lab.far().command(exe())?;
        command.args(["-v", "serve", "--bind", host, "--port", "0"]);
        command.args([
            "--token-file",
            &self.token_file()?,
            "--allow-settings",
            "sysctl.net.ipv4.*",
        ]);
        command.args(more).env("GOODPUT_STATE_DIR", self.state_dir()).stdin(Stdio::null());
        let mut child =
            command.stdout(Stdio::piped()).stderr(std::fs::File::create(&log)?).spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        match line.trim().rsplit_once("listening on ") {
            Some((_, target)) => Ok((child, target.to_owned(), log)),
            None => Err(format!("{line:?} {}", std::fs::read_to_string(&log)?).into()),
        }
    }

    /// A file of the test's own.
    pub fn file(&self, name: &str) -> Result<String, Failed> {
        let path = self.directory.path().join(name);
        path.into_os_string().into_string().map_err(|_| "the directory's name is no text".into())
    }

    /// Number of the server's process.
    pub fn server_pid(&self) -> Result<u32, Failed> {
        self.server.as_ref().map(Server::pid).ok_or_else(|| "the server was stopped".into())
    }

    pub fn state_dir(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    /// A goodput command at the near host. It hears SIGHUP, which whoever runs the tests may ignore.
    pub fn goodput(&self, arguments: &[&str]) -> Result<Command, Failed> {
        let mut command = self.lab.near().command("env")?;
        command.arg("--default-signal=HUP").arg(exe()).args(arguments);
        command.env("GOODPUT_STATE_DIR", self.state_dir()).stdin(Stdio::null());
        // Where it remembers servers.
        command.env("XDG_CONFIG_HOME", self.directory.path());
        Ok(command)
    }

    /// A comparison of the near host's burst that goes on for a while.
    pub fn compare(&self) -> Result<Child, Failed> {
        let setting = format!("qdisc.tbf.burst@{}={ORIGINAL},{TRIED}", self.lab.near().device());
        self.compare_setting(&setting, &[])
    }

    /// A comparison of any setting that goes on for a while.
    pub fn compare_setting(&self, setting: &str, more: &[&str]) -> Result<Child, Failed> {
        self.compare_with(&self.target, setting, more)
    }

    /// The same with another server.
    pub fn compare_with(
        &self,
        target: &str,
        setting: &str,
        more: &[&str],
    ) -> Result<Child, Failed> {
        let arguments = ["compare", target, setting, "--no-store", "-t", "0.3"];
        let mut command = self.goodput(&arguments)?;
        Ok(command.args(more).stdout(Stdio::null()).spawn()?)
    }

    /// The burst of the near host's shaper now, as the kernel says.
    pub fn burst(&self) -> Result<u32, Failed> {
        let near = self.lab.near();
        let qdiscs = near.within(|| {
            let mut netlink = Netlink::open()?;
            let index = netlink.link(near.device())?.index;
            netlink.qdiscs(index)
        })??;
        let mut bursts = qdiscs.iter().filter_map(|qdisc| match &qdisc.options {
            QdiscOptions::Tbf(tbf) => Some(tbf.burst_bytes),
            _ => None,
        });
        bursts.next_back().ok_or_else(|| "the near host has no tbf".into())
    }

    /// Waits until the comparison has changed the burst.
    pub fn wait_for_change(&self) -> Result<(), Failed> {
        look_until("the comparison to change the burst", || Ok(self.burst()? != ORIGINAL))
    }

    /// Waits until the burst is as planted and nobody is at work on it any more.
    pub fn wait_for_original(&self) -> Result<(), Failed> {
        look_until("the burst to be put back", || {
            Ok(self.burst()? == ORIGINAL && self.journals() == 0)
        })
    }

    /// Journals of changes that are not settled.
    pub fn journals(&self) -> usize {
        journals(&self.state_dir())
    }

    /// Waits until `sysctl` of the far host is, or is not, `value`.
    pub fn wait_for_far(&self, sysctl: &str, value: &str, is: bool) -> Result<(), Failed> {
        look_until(sysctl, || Ok((self.lab.far().sysctl(sysctl)? == value) == is))
    }
}

/// Waits until `holds` does; an error if looking fails.
pub fn look_until(what: &str, holds: impl Fn() -> Result<bool, Failed>) -> Result<(), Failed> {
    let mut last = Ok(());
    wait_for(what, || match holds() {
        Ok(holds) => holds,
        Err(why) => {
            last = Err(why);
            true
        }
    });
    last
}

/// The program under test.
pub fn exe() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_goodput"))
}

fn token_file(directory: &TempDir) -> Result<String, Failed> {
    let path = directory.path().join("token");
    path.into_os_string().into_string().map_err(|_| "the temporary directory is no text".into())
}
