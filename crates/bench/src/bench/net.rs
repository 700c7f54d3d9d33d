//! Two network namespaces joined by a veth pair: ours, and one that a child process holds open.
//!
//! The child waits for the end of its stdin, whose other end is ours. So the child ends when this process does, even by
//! SIGKILL, and the kernel then removes the far namespace and the veth pair.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use goodput_mover::allowed_cpus;

use super::place::Place;
use goodput_tools::shell::{command, run};

/// Address of the far end (TEST-NET-1, RFC 5737).
const FAR: &str = "192.0.2.2";
/// Address of the near end.
pub const NEAR: &str = "192.0.2.1";
/// How often a condition is checked, and for how long.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

/// The two namespaces.
pub struct Net {
    holder: Child,
}

impl Net {
    /// Creates the far namespace and the link. Requires our own network namespace and the right to administer it.
    pub fn new() -> Result<Self> {
        let mut hold = command("unshare");
        hold.args(["--net", "cat"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let net = Self { holder: hold.spawn().context("can't start unshare")? };
        let own = fs::read_link("/proc/self/ns/net")?;
        let theirs = net.far_namespace();
        wait_for("the far network namespace", || {
            Ok(fs::read_link(&theirs).is_ok_and(|namespace| namespace != own))
        })?;
        let pid = net.holder.id().to_string();
        let ip = |words: &str| run(command("ip").args(words.split(' ')));
        ip(&format!("link add near0 type veth peer name far0 netns {pid}"))?;
        ip(&format!("address add {NEAR}/30 dev near0"))?;
        ip("link set near0 up")?;
        ip("link set lo up")?;
        let far_ip = |words: &str| run(net.at_far_end("ip").args(words.split(' ')));
        far_ip(&format!("address add {FAR}/30 dev far0"))?;
        far_ip("link set far0 up")?;
        Ok(net)
    }

    /// Makes new connections over the link and the loopback device use this congestion control, by an attribute of their
    /// routes (`congctl`, ip-route(8)): a namespace of its own may not choose every default.
    pub fn set_congestion(&self, name: &str) -> Result<()> {
        let route = |device: &str, own: &str| {
            format!(
                "route change 192.0.2.0/30 dev {device} proto kernel scope link src {own} congctl {name}"
            )
        };
        let local = |to: &str| {
            format!(
                "route change local {to} dev lo table local proto kernel scope host src 127.0.0.1 congctl {name}"
            )
        };
        let words = |text: String| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for text in [route("near0", NEAR), local("127.0.0.1"), local("127.0.0.0/8")] {
            run(command("ip").args(words(text)))?;
        }
        run(self.at_far_end("ip").args(words(route("far0", FAR))))
    }

    /// A command at the server's end of a place. The command ends with this process, however that happens
    /// (PR_SET_PDEATHSIG(2const)).
    pub fn at_server(&self, place: Place, program: &str) -> Command {
        let mut command = command("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if place != Place::Loopback {
            command.arg("nsenter").arg(format!("--net={}", self.far_namespace())).arg("--");
        }
        command.args(cpu_pinning(place)).arg(program);
        command
    }

    /// A command at the client's end of a place, which is this process's.
    pub fn at_client(place: Place, program: &str) -> Command {
        let cpu_pinning = cpu_pinning(place);
        let mut words = cpu_pinning.iter().map(String::as_str).chain([program]);
        let mut command = command(words.next().unwrap_or(program));
        command.args(words);
        command
    }

    /// Waits until `server` has a TCP socket that listens on `port`, or a UDP socket on it.
    pub fn wait_for_listener(&self, place: Place, server: &mut Child, port: u16) -> Result<()> {
        let tables = match place {
            Place::Veth | Place::OneCpu => format!("/proc/{}/net", self.holder.id()),
            Place::Loopback => "/proc/self/net".into(),
        };
        wait_for("the server to listen", || {
            if let Some(status) = server.try_wait()? {
                bail!("the server ended at once with {status}");
            }
            let table = |name| fs::read_to_string(format!("{tables}/{name}")).unwrap_or_default();
            Ok(["tcp", "tcp6"].iter().any(|name| has(&table(name), port, Some(LISTEN)))
                || ["udp", "udp6"].iter().any(|name| has(&table(name), port, None)))
        })
    }

    /// A command that runs in the far namespace.
    pub fn at_far_end(&self, program: &str) -> Command {
        let mut inside = command("nsenter");
        inside.arg(format!("--net={}", self.far_namespace())).arg("--").arg(program);
        inside
    }

    fn far_namespace(&self) -> String {
        format!("/proc/{}/ns/net", self.holder.id())
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        // If this fails, there is no child left to wait for.
        let _ = self.holder.wait();
    }
}

/// Command prefix that pins a program to the CPU of a single-CPU place: the last allowed CPU, because interrupts are
/// often on the first.
fn cpu_pinning(place: Place) -> Vec<String> {
    match (place, allowed_cpus().ok().and_then(|cpus| cpus.last().copied())) {
        (Place::OneCpu, Some(cpu)) => {
            ["taskset", "--cpu-list", &cpu.to_string()].map(str::to_owned).to_vec()
        }
        _ => Vec::new(),
    }
}

/// Address of the server at a place.
pub fn address(place: Place) -> &'static str {
    match place {
        Place::Veth | Place::OneCpu => FAR,
        Place::Loopback => "127.0.0.1",
    }
}

/// The device at which payload arrives, in the server's namespace.
pub fn device(place: Place) -> &'static str {
    match place {
        Place::Veth | Place::OneCpu => "far0",
        Place::Loopback => "lo",
    }
}

/// The state in which a TCP socket listens (include/net/tcp_states.h).
const LISTEN: &str = "0A";

/// Whether a table in the format of /proc/net/tcp (proc(5)) has a socket on the local `port`, in `state` if given.
fn has(table: &str, port: u16, state: Option<&str>) -> bool {
    table.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next().unwrap_or_default();
        let is_in = fields.nth(1);
        local.ends_with(&format!(":{port:04X}")) && (state.is_none() || state == is_in)
    })
}

/// Waits until `holds` returns true; fails after too long.
pub fn wait_for(what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let started = Instant::now();
    while !holds()? {
        if started.elapsed() > WAIT_TIMEOUT {
            bail!("waited {} s in vain for {what}", WAIT_TIMEOUT.as_secs());
        }
        sleep(POLL_INTERVAL);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listening_sockets_of_the_port_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n   \
                     0: 00000000:1451 00000000:0000 0A 00000000:00000000\n   \
                     1: 020000C0:1452 010000C0:9C40 01 00000000:00000000\n";
        assert!(has(table, 0x1451, Some(LISTEN)));
        assert!(!has(table, 0x1452, Some(LISTEN)), "connected");
        assert!(has(table, 0x1452, None), "connected, but there");
        assert!(!has(table, 0x1453, None), "absent");
    }
}
