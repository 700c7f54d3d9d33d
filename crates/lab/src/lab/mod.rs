//! A running lab: its hosts, until it is dropped.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

use goodput_model::Family;
use goodput_relay::Counters;

use crate::build::{self, Built};
use crate::error::LabError;
use crate::faults::{FaultTarget, PlantTime, Undo};
use crate::host::Host;
use crate::host_name::HostName;
use crate::netem;
use crate::scenario::Scenario;
use crate::wiring::{Emulator, Wiring};

/// How long the hosts may take to reach each other.
const REACH_TIMEOUT: Duration = Duration::from_secs(10);

/// Seed of all random numbers in a lab, so that runs of one scenario are alike.
const SEED: u64 = 0x1ab;

/// Hosts and links of a scenario, with its faults planted. Dropping it removes everything; a process that still runs in
/// a host keeps the host's namespace until the process ends.
#[derive(Debug)]
pub struct Lab {
    undo: Vec<Undo>,
    built: Built,
    in_user_namespace: bool,
}

impl Lab {
    /// Creates the hosts and links of `scenario`, waits until near and far reach each other, and plants the faults that
    /// need no process. Call [`crate::privilege::enter`] first.
    pub fn up(scenario: &Scenario) -> Result<Self, LabError> {
        if let Some(needs) = scenario.obstacle() {
            let (scenario, not_permitted) = (&scenario.case, scenario.lacks_permission());
            return Err(LabError::NotHere { scenario: scenario.clone(), needs, not_permitted });
        }
        let by_netem = netem::is_available() && !scenario.needs_relay();
        let emulator = if by_netem { Emulator::Netem } else { Emulator::Relay };
        let built = build::build(&Wiring::of(scenario, emulator), SEED)?;
        let mut lab = Self { undo: Vec::new(), built, in_user_namespace: in_user_namespace() };
        lab.wait_until_reachable()?;
        lab.plant(scenario, PlantTime::HostUp, |_| None)?;
        Ok(lab)
    }

    /// The host that runs the client.
    pub fn near(&self) -> &Host {
        &self.built.hosts[0]
    }

    /// The host that runs the server.
    pub fn far(&self) -> &Host {
        &self.built.hosts[self.built.hosts.len() - 1]
    }

    /// All hosts, from near to far. A path with a limited rate has a router even if its scenario names none, because
    /// something has to hold the queue.
    pub fn hosts(&self) -> &[Host] {
        &self.built.hosts
    }

    /// A host by its name, `near`, `far` or `router`.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.built.hosts.iter().find(|host| host.name().to_string() == name)
    }

    /// The counters of each relay, near to far and far to near; empty without an emulated link.
    pub fn relay_counters(&self) -> Vec<[Counters; 2]> {
        self.built.relays.iter().map(|relay| relay.counters()).collect()
    }

    /// A command line that opens a shell in `host` from outside, as long as this process lives.
    pub fn enter_hint(&self, host: &Host) -> String {
        let user = match self.in_user_namespace {
            true => format!("--user --preserve-credentials --target {} ", std::process::id()),
            false => String::new(),
        };
        format!("nsenter {user}{}", network_of(host))
    }

    /// The same for a program that this process started, which is in its user namespace already.
    pub fn enter_from_inside(&self, host: &Host) -> String {
        format!("nsenter {}", network_of(host))
    }

    /// Plants the faults of `scenario` that are due at `when`; `pid_in` returns the process of goodput that runs in a
    /// host.
    pub(crate) fn plant(
        &mut self,
        scenario: &Scenario,
        when: PlantTime,
        pid_in: impl Fn(HostName) -> Option<u32>,
    ) -> Result<(), LabError> {
        let due = scenario.faults.iter().filter(|planned| planned.fault.when() == when);
        for planned in due {
            let name = planned.fault.host();
            let pid = pid_in(name);
            if when == PlantTime::ProcessRuns && pid.is_none() {
                continue;
            }
            let host = self.built.hosts.iter().find(|host| host.name() == name);
            let host = host.ok_or_else(|| LabError::Fault {
                kind: planned.kind.id,
                host: name.to_string(),
                why: "the lab has no such host".into(),
            })?;
            self.undo.push(planned.fault.plant(FaultTarget { host, pid })?);
        }
        Ok(())
    }

    /// Waits for the first answer over each IP version. A refused connection counts as an answer: it travelled there
    /// and back.
    fn wait_until_reachable(&self) -> Result<(), LabError> {
        let deadline = Instant::now() + REACH_TIMEOUT;
        for host in &self.built.hosts {
            wait_until_active(host, deadline)?;
        }
        let v6 = self.near().has_v6().then_some(Family::V6);
        for family in v6.into_iter().chain([Family::V4]) {
            let target = self.far().address(family);
            self.near().within(|| reach(target, deadline))??;
        }
        Ok(())
    }
}

/// Waits until each device of a host has a real queue. Before, packets are dropped, and the kernel repeats a lost
/// neighbour solicitation only after a second.
fn wait_until_active(host: &Host, deadline: Instant) -> Result<(), LabError> {
    const POLL_INTERVAL: Duration = Duration::from_millis(1);
    for port in host.ports() {
        let qdisc = || host.netlink(|netlink| Ok(netlink.link(&port.device)?.qdisc));
        while qdisc()?.as_deref() == Some("noop") {
            if Instant::now() > deadline {
                let why = format!("{} of {} does not come up", port.device, host.name());
                return Err(LabError::Unreachable { why });
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
    Ok(())
}

/// Tries until `deadline`, with growing patience, because the first packets may be lost while the devices come up.
fn reach(target: IpAddr, deadline: Instant) -> Result<(), LabError> {
    /// Port 1 is tcpmux (RFC 1078); nothing of ours listens there.
    const PORT: u16 = 1;
    let mut patience = Duration::from_millis(50);
    loop {
        let why = match TcpStream::connect_timeout(&SocketAddr::new(target, PORT), patience) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(()),
            Err(error) => format!("near to {target}: {error}"),
        };
        if Instant::now() > deadline {
            return Err(LabError::Unreachable { why });
        }
        patience = (patience * 2).min(Duration::from_secs(2));
    }
}

/// In the first user namespace, the map is the identity on all numbers.
fn in_user_namespace() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().ne(["0", "0", "4294967295"])
}

/// The option of nsenter(1) that names a host's network.
fn network_of(host: &Host) -> String {
    format!("--net=/proc/{}/fd/{}", std::process::id(), host.namespace().as_raw_fd())
}

#[cfg(test)]
mod tests;
