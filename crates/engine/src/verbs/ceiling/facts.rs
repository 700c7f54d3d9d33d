//! Turns the facts of the devices on the way out into the inputs of a ceiling.

use std::net::IpAddr;

use goodput_ceiling::counting::{self, Joined};
use goodput_ceiling::{ETHERNET_HEADER_BYTES, Packet, TIMESTAMPS_BYTES, buses, tunnels};
use goodput_model::{BitRate, Bytes, CeilingInputs, Family, Snapshot, Transport};

use super::CeilingFacts;

/// Tunnel kinds that the kernel reports as running over IPv6.
const OVER_IPV6: [&str; 3] = ["ip6gre", "ip6tnl", "ip6gretap"];

/// The facts of `chain`, from the route's device down to the lowest one; also TCP's facts if `tcp`.
pub(super) fn of(chain: &[Snapshot], address: Option<IpAddr>, tcp: bool) -> CeilingFacts {
    let mut found = CeilingFacts::default();
    let [top, ..] = chain else { return found };
    let bottom = chain.last().unwrap_or(top);
    found.inputs.family = address.map(|address| match address.to_canonical() {
        IpAddr::V4(_) => Family::V4,
        IpAddr::V6(_) => Family::V6,
    });
    stacked(chain, &mut found);
    sizes(top, bottom, &mut found);
    link(bottom, &mut found);
    shaper(chain, tcp, &mut found);
    bus(bottom, &mut found);
    ring(bottom, &mut found);
    if tcp {
        of_tcp(top, &mut found);
    }
    found
}

fn name(device: &Snapshot) -> &str {
    device.text("link.device").unwrap_or("the device")
}

/// Tunnels and VLANs, the outermost first.
fn stacked(chain: &[Snapshot], found: &mut CeilingFacts) {
    let mut tags = 0;
    for device in chain.iter().rev() {
        let kind = device.text("link.kind").unwrap_or_default();
        if kind == "vlan" {
            tags += 1;
            found.note("vlan_tags", format!("a VLAN tag ({})", name(device)));
        }
        let Some(id) = tunnels::of_device(kind) else { continue };
        let over_ipv6 = OVER_IPV6.contains(&kind);
        found.inputs.tunnels.push(if over_ipv6 { format!("{id}6") } else { id.into() });
        found.note("tunnels", format!("a tunnel, {id} ({})", name(device)));
        if !over_ipv6 && tunnels::find(id).is_ok_and(|used| used.tunnel.over_ip) {
            found.lack(
                "tunnels",
                "outer IP version",
                format!("taken as IPv4; --tunnel {id}6 if it is IPv6"),
            );
        }
    }
    found.inputs.vlan_tags = (tags > 0).then_some(tags);
}

/// The MTU of the lowest device, or of the highest if both carry the same packets; and the MTU inside tunnels.
fn sizes(top: &Snapshot, bottom: &Snapshot, found: &mut CeilingFacts) {
    let mtu = |device: &Snapshot| device.count("link.mtu_bytes");
    let routed = top.count("route.mtu").ok();
    let limited = |mtu: u64| routed.map_or(mtu, |routed| mtu.min(routed));
    let tunnelled = !found.inputs.tunnels.is_empty();
    // A tunnel with nothing known below it has only its own MTU.
    let is_tunnel = bottom.text("link.kind").is_ok_and(|kind| tunnels::of_device(kind).is_some());
    if tunnelled {
        found.inputs.tunnel_mtu_bytes = mtu(top).ok().map(limited);
    }
    let outer = match tunnelled {
        true if is_tunnel => {
            return found.lack("mtu_bytes", "MTU below the tunnel", "the kernel names no device");
        }
        true => mtu(bottom),
        false => mtu(top).map(limited),
    };
    match outer {
        Ok(bytes) => {
            found.inputs.mtu_bytes = Some(bytes);
            let device = name(if tunnelled { bottom } else { top });
            found.note("mtu_bytes", format!("an MTU of {bytes} bytes ({device})"));
        }
        Err(why) => found.lack("mtu_bytes", "MTU", why),
    }
}

fn link(bottom: &Snapshot, found: &mut CeilingFacts) {
    match bottom.count("link.speed_bits_per_s") {
        Ok(speed) if speed > 0 => {
            let speed = BitRate(speed as f64);
            found.inputs.link_bits_per_s = Some(speed);
            found.note("link_bits_per_s", format!("a link of {speed} ({})", name(bottom)));
        }
        Ok(_) => found.lack("link_bits_per_s", "link speed", "the driver says 0"),
        Err(why) => found.lack("link_bits_per_s", "link speed", why),
    }
    if bottom.text("link.duplex") == Ok("half") {
        found.inputs.half_duplex = Some(true);
        found.note("half_duplex", format!("half duplex ({})", name(bottom)));
    }
}

/// The slowest queueing discipline that limits a rate; classes of htb are not checked.
fn shaper(chain: &[Snapshot], tcp: bool, found: &mut CeilingFacts) {
    let family = found.inputs.family;
    let shaped = chain.iter().filter_map(|device| {
        let rate = device.count("qdisc.ceil_bits_per_s");
        let rate = rate.or_else(|_| device.count("qdisc.rate_bits_per_s")).ok()?;
        let kind = device.text("qdisc.kind").ok()?;
        (rate > 0).then_some((BitRate(rate as f64), kind, device))
    });
    let left = |rate: BitRate, kind: &str, device: &Snapshot| {
        let segment = |frame| tcp.then(|| largest_joined(device, family, rate, frame)).flatten();
        in_frames(device, kind, rate, segment)
    };
    let shaped = shaped.map(|(rate, kind, device)| (rate, left(rate, kind, device), kind, device));
    if let Some((rate, left, kind, device)) =
        shaped.min_by(|one, other| one.1.0.total_cmp(&other.1.0))
    {
        found.inputs.shaper_bits_per_s = Some(left);
        let counts = match left.0 != rate.0 {
            true => format!(", {left} of frames"),
            false => String::new(),
        };
        let device = name(device);
        found.note("shaper_bits_per_s", format!("a shaper, {kind} at {rate}{counts} ({device})"));
    }
}

/// What the rate of a device's shaper leaves for full frames at best: if TCP joins as many segments as pass the shaper whole.
fn in_frames(
    device: &Snapshot,
    kind: &str,
    rate: BitRate,
    joined: impl Fn(f64) -> Option<Joined>,
) -> BitRate {
    let Ok(mtu) = device.number("link.mtu_bytes") else { return rate };
    let frame = mtu + ETHERNET_HEADER_BYTES;
    let alone = counting::alone(device, "qdisc", frame);
    let burst = device.number("qdisc.burst_bytes").ok();
    let burst = burst.map(|burst| counting::burst_at_most(burst, rate.0));
    let each =
        joined(frame).and_then(|most| counting::least_of(device, "qdisc", kind, burst, most));
    BitRate(rate.0 * (frame / each.map_or(alone, |each| each.bytes.min(alone))))
}

/// The largest packet of TCP. Its round trip is unknown, so it may be so short that only the device limits the packet.
fn largest_joined(
    device: &Snapshot,
    family: Option<Family>,
    rate: BitRate,
    frame: f64,
) -> Option<Joined> {
    let segment = CeilingInputs {
        transport: Some(Transport::Tcp),
        family: family.or(Some(Family::V4)),
        mtu_bytes: device.count("link.mtu_bytes").ok(),
        // As small as it can be: its headers count once.
        tcp_option_bytes: Some(TIMESTAMPS_BYTES),
        ..CeilingInputs::default()
    };
    let payload = Packet::of(&segment).ok()?.payload;
    Some(Joined::by_tcp(device, rate.0, None, payload, frame))
}

fn bus(bottom: &Snapshot, found: &mut CeilingFacts) {
    let kind = match bottom.text("bus.kind") {
        Ok(kind) => kind,
        Err(why) => return found.lack("bus", "bus", why),
    };
    let known = match kind {
        "pci" => bottom
            .count("bus.pcie_lanes")
            .and_then(|lanes| Ok(buses::pcie_id(bottom.number("bus.pcie_gt_per_s")?, lanes))),
        "usb" => bottom
            .count("bus.usb_bits_per_s")
            .map(|speed| buses::usb(speed as f64).map(|bus| bus.id.into())),
        _ => {
            let isa = bottom.text("bus.address").is_ok_and(|address| address.starts_with("ISA"));
            Ok(isa.then(|| "isa16".into()))
        }
    };
    match known {
        Ok(Some(id)) => {
            found.note("bus", format!("a bus, {id} ({})", name(bottom)));
            found.inputs.bus = Some(id);
        }
        Ok(None) => found.lack("bus", "bus", format!("{kind} of a kind that has no row")),
        Err(why) => found.lack("bus", "bus", why),
    }
}

fn ring(bottom: &Snapshot, found: &mut CeilingFacts) {
    match bottom.count("ring.rx_frames") {
        Ok(frames) => {
            found.inputs.ring_frames = Some(frames);
            found.note(
                "ring_frames",
                format!("a receive ring of {frames} frames ({})", name(bottom)),
            );
        }
        Err(why) => found.lack("ring_frames", "receive ring", why),
    }
}

fn of_tcp(top: &Snapshot, found: &mut CeilingFacts) {
    match top.text("sysctl.net.ipv4.tcp_timestamps") {
        Ok(set) => {
            found.inputs.tcp_option_bytes = Some(if set == "0" { 0 } else { TIMESTAMPS_BYTES })
        }
        Err(why) => found.lack("tcp_option_bytes", "TCP timestamps", why),
    }
    let on_route = top.count("route.window").ok().filter(|window| *window > 0);
    let largest = top.text("sysctl.net.ipv4.tcp_rmem").ok().and_then(|text| {
        text.split_whitespace().nth(2)?.parse::<u64>().ok().filter(|bytes| *bytes > 0)
    });
    match (on_route, largest) {
        (Some(window), _) => {
            found.inputs.window_bytes = Some(window);
            found.note(
                "window_bytes",
                format!("a window of {}, as the route sets it for receiving", Bytes(window)),
            );
        }
        (None, Some(largest)) => {
            found.inputs.window_bytes = Some(largest);
            let largest = Bytes(largest);
            found.note(
                "window_bytes",
                format!("a window of {largest} at most when this host receives (tcp_rmem)"),
            );
        }
        (None, None) => {
            found.lack("window_bytes", "window", "neither the route nor tcp_rmem names one")
        }
    }
    if let Ok(control) = top.text("sysctl.net.ipv4.tcp_congestion_control") {
        found.inputs.loss_model = model(control).map(String::from);
    }
}

/// The model of a congestion control, if it has one.
fn model(control: &str) -> Option<&'static str> {
    match control {
        "reno" => Some("mathis"),
        "cubic" => Some("cubic"),
        "bbr" => Some("none"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, kind: &str, mtu: u64) -> Snapshot {
        let mut snapshot = Snapshot::default();
        snapshot.put("link.device", name);
        snapshot.put("link.kind", kind);
        snapshot.put("link.mtu_bytes", mtu);
        snapshot
    }

    fn card() -> Snapshot {
        let mut card = device("eth0", "hardware", 1500);
        card.put("link.speed_bits_per_s", 10_000_000_000u64);
        card.put("bus.kind", "pci");
        card.put("bus.pcie_gt_per_s", 8.0);
        card.put("bus.pcie_lanes", 1u64);
        card.put("ring.rx_frames", 512u64);
        card.put("sysctl.net.ipv4.tcp_timestamps", "1");
        card.put("sysctl.net.ipv4.tcp_rmem", "4096 131072 6291456");
        card
    }

    fn limit(inputs: CeilingInputs) -> String {
        let inputs = CeilingInputs {
            transport: Some(goodput_model::Transport::Tcp),
            family: Some(Family::V4),
            ..inputs
        };
        goodput_ceiling::ceiling(&inputs).lowest().unwrap().0.id.clone()
    }

    #[test]
    fn a_card_reports_its_link_its_ring_and_its_bus() {
        let found = of(&[card()], Some([192, 0, 2, 1].into()), true);
        let inputs = found.inputs;
        assert_eq!(inputs.link_bits_per_s, Some(BitRate(1e10)));
        assert_eq!((inputs.bus.as_deref(), inputs.ring_frames), (Some("pcie3x1"), Some(512)));
        assert_eq!((inputs.mtu_bytes, inputs.window_bytes), (Some(1500), Some(6_291_456)));
        assert_eq!(found.unread, []);
        assert_eq!(limit(inputs.clone()), "bus");
        let fields = serde_json::to_value(inputs).unwrap();
        for (input, what) in found.read {
            assert!(fields.get(input).is_some(), "{input}: {what}");
        }
    }

    #[test]
    fn what_is_above_the_card_is_around_its_packets() {
        let chain = [device("vx", "vxlan", 1400), device("eth0.5", "vlan", 1500), card()];
        let inputs = of(&chain, None, true).inputs;
        assert_eq!((inputs.tunnels, inputs.vlan_tags), (vec!["vxlan".to_string()], Some(1)));
        assert_eq!((inputs.mtu_bytes, inputs.tunnel_mtu_bytes), (Some(1500), Some(1400)));
        let alone = of(&[device("wg0", "wireguard", 1420)], None, false);
        assert_eq!((alone.inputs.mtu_bytes, alone.inputs.tunnel_mtu_bytes), (None, Some(1420)));
        assert!(alone.unread.iter().any(|(_, one)| one.what == "MTU below the tunnel"));
    }

    #[test]
    fn the_route_s_window_and_mtu_count_before_the_host_s() {
        let mut top = card();
        top.put("route.window", 4096u64);
        top.put("route.mtu", 1400u64);
        top.put("qdisc.kind", "tbf");
        top.put("qdisc.rate_bits_per_s", 100_000_000u64);
        let inputs = of(&[top], None, true).inputs;
        assert_eq!((inputs.window_bytes, inputs.mtu_bytes), (Some(4096), Some(1400)));
        assert_eq!(limit(inputs), "shaper");
    }

    /// A tbf of 50 Mbit/s with `overhead 40` gives TCP 47.8 Mbit/s, as measured: super-packets have the overhead once.
    #[test]
    fn a_shaper_leaves_as_much_for_frames_as_it_does_at_best() {
        let left = |kind: &str, facts: &[(&str, u64)], tcp| {
            let mut card = card();
            card.put("qdisc.kind", kind);
            card.put("qdisc.rate_bits_per_s", 50_000_000u64);
            card.put("qdisc.burst_bytes", 100_000u64);
            facts.iter().for_each(|(name, value)| card.put(*name, *value));
            if kind == "cake" {
                card.put("qdisc.counts_from", "packet");
            }
            let found = of(&[card], Some([192, 0, 2, 1].into()), tcp);
            let said = found.read.into_iter().find(|(input, _)| *input == "shaper_bits_per_s");
            (found.inputs.shaper_bits_per_s.unwrap().0 / 50e6, format!("{:?}", said.unwrap()))
        };
        let overhead = [("qdisc.overhead_bytes", 40)];
        let (plain, said) = left("tbf", &[], true);
        assert!(plain == 1.0 && !said.contains("of frames"), "{said}");
        let (tcp, said) = left("tbf", &overhead, true);
        assert!(tcp > 0.999 && said.contains("of frames"), "{tcp}: {said}");
        let (udp, _) = left("tbf", &overhead, false);
        assert!((udp - 1514.0 / 1554.0).abs() < 1e-9, "{udp}");
        let (cut, _) = left("tbf", &[overhead[0], ("qdisc.burst_bytes", 1600)], true);
        assert!((cut - 1514.0 / 1554.0).abs() < 1e-9, "{cut}");
        let (cake, said) = left("cake", &[], true);
        assert!(cake > 1.009 && said.contains("50.5 Mbit/s of frames"), "{cake}: {said}");
    }

    #[test]
    fn nothing_is_known_of_nothing_and_each_lack_has_its_reason() {
        let found = of(&[Snapshot::default()], None, true);
        assert_eq!(found.inputs, CeilingInputs::default());
        for what in ["MTU", "link speed", "bus", "receive ring", "window"] {
            let why = found.unread.iter().find(|(_, one)| one.what == what).expect(what);
            assert!(!why.1.because.is_empty());
        }
        assert_eq!(of(&[], None, true), CeilingFacts::default());
    }
}
