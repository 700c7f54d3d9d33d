//! What a scenario needs from the machine, and why it is missing.

use std::fs::OpenOptions;
use std::io;

use goodput_relay::CLONE_DEVICE;

use super::{Link, Scenario, Topology};
use crate::need::{Lack, Need};
use crate::{bpf, cgroup, netem, nft, programs};

impl Need {
    /// Why it is missing; `None` if it is here. May start a thread for a moment, so call [`crate::privilege::enter`]
    /// before.
    pub fn missing(self) -> Option<Lack> {
        match self {
            Self::Emulation => tun_missing().filter(|_| !netem::is_available()),
            Self::Relay => tun_missing(),
            Self::CpuGroup => cgroup::missing(),
            Self::PacketFilter => nft::missing().map(not_installed),
            Self::TrafficControl => programs::missing("tc", "iproute2").map(not_installed),
            Self::Ebpf => bpf::missing(),
        }
    }
}

fn not_installed(why: String) -> Lack {
    Lack { why, not_permitted: false }
}

fn tun_missing() -> Option<Lack> {
    let error = OpenOptions::new().read(true).write(true).open(CLONE_DEVICE).err()?;
    let why = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("only root may open {CLONE_DEVICE} here: run as root")
        }
        io::ErrorKind::NotFound => {
            format!("there is no {CLONE_DEVICE}: load the module tun, or give it to the container")
        }
        _ => format!("{CLONE_DEVICE} can't be opened: {error}"),
    };
    Some(Lack { why, not_permitted: error.kind() == io::ErrorKind::PermissionDenied })
}

impl Scenario {
    /// What the scenario needs beyond network namespaces.
    pub fn needs(&self) -> Vec<Need> {
        let emulated = self.links().iter().any(Link::is_emulated);
        let need = if self.needs_relay() { Need::Relay } else { Need::Emulation };
        let mut needs: Vec<_> = emulated.then_some(need).into_iter().collect();
        for need in self.faults.iter().flat_map(|planned| planned.fault.needs()) {
            if !needs.contains(need) {
                needs.push(*need);
            }
        }
        needs
    }

    /// Whether only our own relay can emulate its links.
    pub(crate) fn needs_relay(&self) -> bool {
        self.links().iter().any(Link::needs_relay)
    }

    fn links(&self) -> Vec<Link> {
        match self.topology() {
            Topology::Pair(link) => vec![link],
            Topology::Routed(near, far) => vec![near, far],
        }
    }

    /// Why it can't run here: what is missing, and the remedy. `None` if it can.
    pub fn obstacle(&self) -> Option<String> {
        let missing = |need: Need| Some(format!("{need} ({})", need.missing()?.why));
        let all: Vec<_> = self.needs().into_iter().filter_map(missing).collect();
        (!all.is_empty()).then(|| all.join(", and "))
    }

    /// Whether a permission is among the missing things.
    pub fn lacks_permission(&self) -> bool {
        self.needs().into_iter().filter_map(Need::missing).any(|lack| lack.not_permitted)
    }
}
