//! Hosts in network namespaces of their own, each with an address of its own, around the namespace of the test.

use std::fs;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::servers::Running;
use crate::{skip, wait_for};

/// Whether a namespace passes packets on; each has its own.
const FORWARD: &str = "/proc/sys/net/ipv4/ip_forward";

/// Hosts that reach each other, and the centre, by way of the centre. They end with this.
pub struct Hosts(Vec<Running>);

impl Hosts {
    /// The address of the namespace that calls [`Hosts::new`].
    pub const CENTRE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

    /// At most 254 of them. The namespace of this thread becomes the centre; call it [within one of the test's
    /// own](crate::in_namespace). None: this machine lets nobody make a router, and the test is skipped.
    ///
    /// # Panics
    ///
    /// If it is not possible for another reason, or if everything is required.
    pub fn new(count: u8) -> Option<Self> {
        if let Err(why) = fs::write(FORWARD, "1") {
            let is_refused =
                matches!(why.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem);
            assert!(is_refused, "write {FORWARD}: {why}");
            skip(&format!("a {FORWARD} that can be written ({why})"));
            return None;
        }
        ip(&["link", "set", "lo", "up"]);
        ip(&["address", "add", &format!("{}/32", Self::CENTRE), "dev", "lo"]);
        Some(Self((0..count).map(host).collect()))
    }

    /// The address of a host, from 0.
    pub fn address(&self, number: usize) -> Ipv4Addr {
        let number = u8::try_from(number).expect("there are no more");
        address(number, 2)
    }

    /// The namespace of a host.
    pub fn namespace(&self, number: usize) -> PathBuf {
        namespace(&self.0[number].0)
    }
}

/// The program of `command` in this namespace, as the same process.
pub fn within(namespace: &Path, command: &Command) -> Command {
    let mut within = Command::new("nsenter");
    within.arg(format!("--net={}", namespace.display())).arg(command.get_program());
    within.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => within.env(name, value),
            None => within.env_remove(name),
        };
    }
    within.stdin(Stdio::null());
    within
}

fn address(number: u8, end: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, number + 1, end)
}

fn namespace(process: &Child) -> PathBuf {
    PathBuf::from(format!("/proc/{}/ns/net", process.id()))
}

/// A namespace with one cable to the centre, for as long as a process in it lives.
fn host(number: u8) -> Running {
    let mut keeps = Command::new("unshare");
    // It ends with this process, whose end of the pipe is closed then.
    keeps.args(["--net", "cat"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let keeps = Running(keeps.spawn().expect("util-linux is there"));
    let its = namespace(&keeps.0);
    // Of this thread, which is in a namespace of the test's own.
    let ours = fs::read_link("/proc/thread-self/ns/net").expect("it has one");
    wait_for("the namespace", || fs::read_link(&its).is_ok_and(|its| its != ours));
    let (device, process) = (format!("host{number}"), keeps.0.id().to_string());
    let [near, far] = [1, 2].map(|end| address(number, end).to_string());
    ip(&["link", "add", &device, "type", "veth", "peer", "name", "eth0", "netns", &process]);
    ip(&["address", "add", &format!("{near}/24"), "dev", &device]);
    ip(&["link", "set", &device, "up"]);
    let there = |arguments: &[&str]| {
        let mut command = Command::new("ip");
        command.args(arguments);
        done(within(&its, &command), arguments);
    };
    there(&["link", "set", "lo", "up"]);
    there(&["address", "add", &format!("{far}/24"), "dev", "eth0"]);
    there(&["link", "set", "eth0", "up"]);
    there(&["route", "add", "default", "via", &near]);
    keeps
}

fn ip(arguments: &[&str]) {
    let mut command = Command::new("ip");
    command.args(arguments);
    done(command, arguments);
}

fn done(mut command: Command, arguments: &[&str]) {
    let output = command.output().expect("iproute2 is there");
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {}: {why}", arguments.join(" "));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{WAIT_TIMEOUT, in_namespace};
    use std::io::Read;
    use std::net::TcpListener;

    #[test]
    fn hosts_have_addresses_of_their_own_and_reach_the_centre_and_each_other() {
        in_namespace(|| {
            let Some(hosts) = Hosts::new(2) else { return };
            let listener = TcpListener::bind((Hosts::CENTRE, 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            let script = "import socket, sys\n\
                          s = socket.create_connection((sys.argv[1], int(sys.argv[2])), int(sys.argv[3]))\n\
                          s.sendall(s.getsockname()[0].encode())";
            for number in 0..2 {
                let mut python = Command::new("/usr/bin/python3");
                let most = WAIT_TIMEOUT.as_secs().to_string();
                python.args(["-c", script, &Hosts::CENTRE.to_string(), &port.to_string(), &most]);
                // It ends without an answer; who waited for a client first would wait for ever if it fails.
                let output = within(&hosts.namespace(number), &python).output().unwrap();
                let why = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{why}");
                let (mut client, _) = listener.accept().unwrap();
                let mut said = String::new();
                client.read_to_string(&mut said).unwrap();
                assert_eq!(said, hosts.address(number).to_string());
            }
        });
    }
}
