//! Building a lab: hosts, cables between them, addresses and routes, and the router's queues.
//!
//! Addresses: the Nth cable from near has 10.77.N.0/24 and fd77:0:0:N::/64; its end towards near is 1 and its end
//! towards far is 2.

use std::net::{Ipv4Addr, Ipv6Addr};

use goodput_netlink::{Offload, Qdisc, Route, Tbf, set_offload};
use goodput_relay::{Devices, Relay, Shape, Tun};

use crate::error::LabError;
use crate::host::{Host, Port};
use crate::host_name::HostName;
use crate::netem;
use crate::scenario::LinkDirection;
use crate::wiring::{Cable, Wiring};

/// Packets that a TUN device may hold while the relay is busy: with the kernel's default of 500, a burst would be lost
/// before it reaches the emulated queue.
const TUN_QUEUE_PACKETS: u32 = 10_000;

const V4_PREFIX: u8 = 24;
const V6_PREFIX: u8 = 64;

/// The parts of a built lab. The relays come first, so that they stop before their devices disappear.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) relays: Vec<Relay>,
    pub(crate) hosts: Vec<Host>,
}

pub(crate) fn build(wiring: &Wiring, seed: u64) -> Result<Built, LabError> {
    let hosts: Result<Vec<_>, _> = wiring.hosts.iter().map(|name| Host::create(*name)).collect();
    let mut built = Built { relays: Vec::new(), hosts: hosts? };
    for (number, cable) in wiring.cables.iter().enumerate() {
        lay(&mut built, number, cable, seed)?;
    }
    if let [near, router, far] = &built.hosts[..] {
        default_route(near, &router.ports[0])?;
        default_route(far, &router.ports[1])?;
        forward(router)?;
        let mtu = wiring.cables.iter().map(|cable| cable.mtu).max().unwrap_or(0);
        queue(router, &router.ports[1], &wiring.middle.0, mtu)?;
        queue(router, &router.ports[0], &wiring.middle.1, mtu)?;
    }
    Ok(built)
}

/// Lays cable `number` between two neighbours.
fn lay(built: &mut Built, number: usize, cable: &Cable, seed: u64) -> Result<(), LabError> {
    let Built { relays, hosts } = built;
    let (before, after) = hosts.split_at_mut(number + 1);
    let (near, far) = (&mut before[number], &mut after[0]);
    let (near_port, far_port) = (port(far.name(), number, 1), port(near.name(), number, 2));
    match cable.relay {
        Some(directions) => {
            relays.push(relay(near, far, &near_port, &far_port, cable, directions, seed)?)
        }
        None => veth(near, far, &near_port, &far_port)?,
    }
    for (host, port) in [(near, near_port), (far, far_port)] {
        connect(host, &port, cable)?;
        host.ports.push(port);
    }
    Ok(())
}

/// The port at one end of a cable, named after the host at the other end.
fn port(neighbour: HostName, cable: usize, end: u8) -> Port {
    let network = cable as u8 + 1;
    Port {
        device: format!("to-{neighbour}"),
        v4: Ipv4Addr::new(10, 77, network, end).into(),
        v6: Ipv6Addr::new(0xfd77, 0, 0, network.into(), 0, 0, 0, end.into()).into(),
    }
}

/// A pair of virtual Ethernet devices, made in `near`, whose other end then moves to `far`.
fn veth(near: &Host, far: &Host, near_port: &Port, far_port: &Port) -> Result<(), LabError> {
    near.netlink(|netlink| {
        netlink.create_veth(&near_port.device, &far_port.device)?;
        let peer = netlink.link(&far_port.device)?.index;
        netlink.move_to_netns(peer, far.namespace())
    })
}

fn relay(
    near: &Host,
    far: &Host,
    near_port: &Port,
    far_port: &Port,
    cable: &Cable,
    (forward, back): (LinkDirection, LinkDirection),
    seed: u64,
) -> Result<Relay, LabError> {
    let near_tun = near.within(|| Tun::create(&near_port.device, cable.segmentation))??;
    let far_tun = far.within(|| Tun::create(&far_port.device, cable.segmentation))??;
    let devices = Devices { mtu: cable.mtu, segmentation: cable.segmentation };
    let forward = shape(&forward, cable.mtu, seed);
    let back = shape(&back, cable.mtu, seed.wrapping_add(1));
    Ok(Relay::start(near_tun, far_tun, devices, forward, back)?)
}

fn shape(direction: &LinkDirection, mtu: u32, seed: u64) -> Shape {
    Shape {
        rate_bits_per_s: direction.rate.map(|rate| rate.0),
        delay_ns: direction.delay.as_nanos() as u64,
        jitter_ns: direction.jitter.as_nanos() as u64,
        loss: direction.loss_percent / 100.0,
        loss_run: direction.loss_run,
        mark: direction.mark_percent / 100.0,
        largest_bytes: direction.largest.map_or(u64::MAX, u64::from),
        reorder: direction.reorder_percent / 100.0,
        displace_ns: direction.displace.as_nanos() as u64,
        queue_bytes: direction.queue_bytes(mtu),
        seed,
    }
}

/// Configures one end of a cable and sets it up.
fn connect(host: &Host, port: &Port, cable: &Cable) -> Result<(), LabError> {
    let v6 = host.has_v6().then_some("ipv6");
    for version in v6.into_iter().chain(["ipv4"]) {
        ask_neighbours_again_soon(host, version, &port.device)?;
    }
    host.netlink(|netlink| {
        let index = netlink.link(&port.device)?.index;
        netlink.set_mtu(index, cable.mtu)?;
        if cable.relay.is_some() {
            netlink.set_tx_queue_len(index, TUN_QUEUE_PACKETS)?;
        } else if !cable.segmentation {
            set_offload(&port.device, Offload::Tso, false)?;
            set_offload(&port.device, Offload::Gso, false)?;
        }
        netlink.add_address(index, port.v4, V4_PREFIX)?;
        if host.has_v6() {
            netlink.add_address(index, port.v6, V6_PREFIX)?;
        }
        netlink.set_up(index)
    })
}

/// The first neighbour solicitation is lost if the other end is not up yet. It is repeated after this time, not after
/// the kernel's one second (`retrans_time_ms`, arp(7)).
fn ask_neighbours_again_soon(host: &Host, version: &str, device: &str) -> Result<(), LabError> {
    set(host, &format!("net.{version}.neigh.{device}.retrans_time_ms"), "20")
}

fn set(host: &Host, name: &str, value: &str) -> Result<(), LabError> {
    host.set_sysctl(name, value).map_err(|source| LabError::Io {
        what: "set",
        object: name.into(),
        source,
    })
}

fn default_route(host: &Host, gateway: &Port) -> Result<(), LabError> {
    host.netlink(|netlink| {
        netlink.replace_route(&Route::via(None, gateway.v4))?;
        if host.has_v6() { netlink.replace_route(&Route::via(None, gateway.v6)) } else { Ok(()) }
    })
}

fn forward(router: &Host) -> Result<(), LabError> {
    let v6 = router.has_v6().then_some("net.ipv6.conf.all.forwarding");
    for name in v6.into_iter().chain(["net.ipv4.ip_forward"]) {
        set(router, name, "1")?;
    }
    Ok(())
}

/// Gives a port of the router the queue that the scenario's link requires.
fn queue(router: &Host, port: &Port, direction: &LinkDirection, mtu: u32) -> Result<(), LabError> {
    let make: &(dyn Fn(u32) -> Qdisc + Sync) = if direction.is_emulated() {
        &|index| netem::qdisc(index, direction, mtu)
    } else if let Some(tbf) = token_bucket(direction, mtu) {
        &move |index| Qdisc::root_tbf(index, tbf.clone())
    } else {
        return Ok(());
    };
    router.netlink(|netlink| {
        let index = netlink.link(&port.device)?.index;
        netlink.replace_qdisc(&make(index))
    })
}

/// A bucket of 1 ms, and at least two super-packets: deep enough that only the rate has an effect.
fn token_bucket(direction: &LinkDirection, mtu: u32) -> Option<Tbf> {
    const MIN_BURST_BYTES: u64 = 140_000;
    let rate = direction.rate?;
    let burst = (rate.bytes_in(0.001) as u64).max(MIN_BURST_BYTES);
    let fit = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    let limit = burst.saturating_add(direction.queue_bytes(mtu));
    Some(Tbf::new((rate.0 / 8.0).max(1.0) as u64, fit(burst), fit(limit)))
}
