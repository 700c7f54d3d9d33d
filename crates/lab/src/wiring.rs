//! How a scenario's links become devices: which hosts are needed, which cables join them, and how the middle treats
//! packets.
//!
//! Whatever limits or impairs packets is between the ends, in a router's queues or in a relay: at an end it would be
//! that host's own qdisc, and a different diagnosis.

use crate::host_name::HostName;
use crate::scenario::{Link, LinkDirection, Scenario, Switch, Topology};

/// How delay, loss and reordering are produced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Emulator {
    /// By the kernel, in the middle.
    Netem,
    /// By our TUN relay, as the cable itself.
    Relay,
}

/// A cable between two neighbours.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cable {
    /// Largest IP packet, bytes.
    pub(crate) mtu: u32,
    /// Properties of the relay in its place, near to far and back; `None`: a pair of virtual Ethernet devices.
    pub(crate) relay: Option<(LinkDirection, LinkDirection)>,
    /// Whether super-packets cross whole.
    pub(crate) segmentation: bool,
}

/// The devices that a scenario requires.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wiring {
    /// The hosts from near to far: two, or three with a router.
    pub(crate) hosts: Vec<HostName>,
    /// The cables between neighbours, from near to far.
    pub(crate) cables: Vec<Cable>,
    /// Properties of the router's queues, near to far and back.
    pub(crate) middle: (LinkDirection, LinkDirection),
}

impl Wiring {
    pub(crate) fn of(scenario: &Scenario, emulator: Emulator) -> Self {
        match scenario.topology() {
            Topology::Pair(link) if needs_a_middle(&link, emulator) => {
                let plain = Link { mtu: link.mtu, ..Link::default() };
                Self::routed(&[plain, link], emulator)
            }
            Topology::Pair(link) => Self {
                hosts: vec![HostName::Near, HostName::Far],
                cables: vec![cable(&link, emulator)],
                middle: Default::default(),
            },
            Topology::Routed(near, far) => Self::routed(&[near, far], emulator),
        }
    }

    fn routed(links: &[Link; 2], emulator: Emulator) -> Self {
        let mut middle = (LinkDirection::default(), LinkDirection::default());
        for link in links.iter().filter(|link| !is_relayed(link, emulator)) {
            let (forward, back) = link.directions();
            middle = (middle.0.then(&forward), middle.1.then(&back));
        }
        Self {
            hosts: vec![HostName::Near, HostName::Router, HostName::Far],
            cables: links.iter().map(|link| cable(link, emulator)).collect(),
            middle,
        }
    }
}

fn is_relayed(link: &Link, emulator: Emulator) -> bool {
    link.is_emulated() && emulator == Emulator::Relay
}

/// Without a relay, something between the ends has to hold the queue.
fn needs_a_middle(link: &Link, emulator: Emulator) -> bool {
    let (forward, back) = link.directions();
    let limited = forward.rate.is_some() || back.rate.is_some();
    !is_relayed(link, emulator) && (limited || link.is_emulated())
}

fn cable(link: &Link, emulator: Emulator) -> Cable {
    // A plain cable passes everything; an emulated one behaves like a wire, unless configured otherwise.
    let segmentation = if link.is_emulated() {
        link.segmentation == Some(Switch::On)
    } else {
        link.segmentation != Some(Switch::Off)
    };
    Cable {
        mtu: link.mtu(),
        relay: is_relayed(link, emulator).then(|| link.directions()),
        segmentation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wired(links: &str, emulator: Emulator) -> Wiring {
        let text = format!("name = \"x\"\ntitle = \"X.\"\n{links}");
        Wiring::of(&text.parse().unwrap(), emulator)
    }

    #[test]
    fn nothing_wrong_is_one_cable() {
        let wiring = wired("", Emulator::Relay);
        assert_eq!(wiring.hosts.len(), 2);
        assert_eq!(wiring.cables, [Cable { mtu: 1500, relay: None, segmentation: true }]);
    }

    #[test]
    fn a_rate_alone_is_kept_by_a_router_between() {
        let wiring = wired("[link.path]\nrate = \"100mbit\"\nmtu = 9000", Emulator::Relay);
        assert_eq!(wiring.hosts[1], HostName::Router);
        assert!(wiring.cables.iter().all(|cable| cable.relay.is_none() && cable.mtu == 9000));
        assert_eq!(wiring.middle.0.rate.map(|rate| rate.0), Some(1e8));
        assert_eq!(wiring.middle.0, wiring.middle.1);
    }

    #[test]
    fn a_delay_is_a_relay_or_netem_between() {
        let links = "[link.path]\ndelay = \"10ms\"\nrate = \"100mbit\"";
        let relayed = wired(links, Emulator::Relay);
        assert_eq!(relayed.hosts.len(), 2);
        assert!(relayed.cables[0].relay.is_some() && !relayed.cables[0].segmentation);
        let by_netem = wired(links, Emulator::Netem);
        assert_eq!(by_netem.hosts.len(), 3);
        assert!(by_netem.cables.iter().all(|cable| cable.relay.is_none()));
        assert_eq!(by_netem.middle.0.delay.as_millis(), 10);
    }

    #[test]
    fn a_routed_path_keeps_each_link_s_own_way() {
        let links = "[link.near-router]\nrate = \"1gbit\"\n[link.router-far]\ndelay = \"5ms\"";
        let wiring = wired(links, Emulator::Relay);
        assert!(wiring.cables[0].relay.is_none() && wiring.cables[1].relay.is_some());
        assert_eq!(wiring.middle.0.rate.map(|rate| rate.0), Some(1e9));
        assert!(wiring.middle.0.delay.is_zero());
    }
}
