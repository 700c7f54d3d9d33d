//! The sources against a real kernel: a shaped virtual link in its own network namespace.

use std::net::IpAddr;

use goodput_model::Fact;
use goodput_netlink::{Netlink, Offload, Qdisc, Tbf, set_offload};
use goodput_testing::in_namespace;

use super::*;

/// A veth pair whose device "left" has 192.0.2.1/24 and is up.
fn link() -> (Netlink, u32) {
    let mut netlink = Netlink::open().unwrap();
    netlink.create_veth("left", "right").unwrap();
    let index = netlink.link("left").unwrap().index;
    let other = netlink.link("right").unwrap().index;
    netlink.add_address(index, "192.0.2.1".parse().unwrap(), 24).unwrap();
    netlink.set_up(index).unwrap();
    netlink.set_up(other).unwrap();
    (netlink, index)
}

fn towards(peer: &str) -> Snapshot {
    snapshot(&Context::towards((peer.parse::<std::net::IpAddr>().unwrap(), 0).into()))
}

fn assert_facts(snapshot: &Snapshot, expected: &[(&str, Fact)]) {
    for (name, fact) in expected {
        assert_eq!(snapshot.get(name), Ok(fact), "{name}");
    }
}

#[test]
fn a_planted_bucket_window_and_offload_are_seen() {
    in_namespace(|| {
        let (mut netlink, index) = link();
        let peer: IpAddr = "192.0.2.2".parse().unwrap();
        let mut route = netlink.entry_for(peer, 0).unwrap();
        route.metrics.window = Some(65_536);
        netlink.replace_route(&route).unwrap();
        let tbf = Tbf::new(12_500_000, 1250, 30_000);
        netlink.replace_qdisc(&Qdisc::root_tbf(index, tbf)).unwrap();
        set_offload("left", Offload::Tso, false).unwrap();
        let seen = towards("192.0.2.2");
        assert_facts(
            &seen,
            &[
                ("link.device", "left".into()),
                ("link.kind", "veth".into()),
                ("qdisc.kind", "tbf".into()),
                ("qdisc.rate_bits_per_s", 100_000_000u64.into()),
                ("qdisc.burst_bytes", 1250u64.into()),
                ("offload.tso", "off".into()),
                ("offload.gso", "on".into()),
                ("route.device", "left".into()),
                ("route.source", "192.0.2.1".into()),
                ("route.destination", "192.0.2.0/24".into()),
                ("route.window", 65_536u64.into()),
            ],
        );
        let why = seen.count("route.mtu").unwrap_err().to_string();
        assert_eq!(why, "route.mtu: not set on the route");
        let why = seen.count("link.speed_bits_per_s").unwrap_err().to_string();
        assert!(why.contains("virtual"), "{why}");
    });
}

#[test]
fn what_lasts_stays_as_it_is_while_packets_pass() {
    in_namespace(|| {
        let (mut netlink, index) = link();
        netlink
            .replace_qdisc(&Qdisc::root_tbf(index, Tbf::new(12_500_000, 125_000, 30_000)))
            .unwrap();
        let before = towards("192.0.2.2");
        let socket = std::net::UdpSocket::bind("192.0.2.1:0").unwrap();
        // The kernel sends a question for the hardware address first, at once.
        socket.send_to(b"x", "192.0.2.2:9").unwrap();
        let after = towards("192.0.2.2");
        let changed = |name: &&String| before.facts.get(*name) != after.facts.get(*name);
        let changed: Vec<&String> = after.facts.keys().filter(changed).collect();
        assert!(changed.iter().any(|name| *name == "qdisc.sent_packets"), "{changed:?}");
        let lasting: Vec<_> = changed.iter().filter(|name| lasts(name)).collect();
        assert!(lasting.is_empty(), "{lasting:?}");
    });
}

#[test]
fn a_link_without_a_qdisc_says_noqueue_and_has_no_rate() {
    in_namespace(|| {
        let _link = link();
        let seen = towards("192.0.2.2");
        assert_eq!(seen.text("qdisc.kind"), Ok("noqueue"));
        assert!(seen.count("qdisc.rate_bits_per_s").is_err());
        assert!(seen.count("qdisc.burst_bytes").is_err());
    });
}

#[test]
fn without_a_route_the_areas_of_the_path_say_why() {
    in_namespace(|| {
        let seen = towards("198.51.100.7");
        for area in ["link", "qdisc", "offload", "route"] {
            assert!(seen.missing[area].contains("198.51.100.7"), "{area}");
        }
        assert!(seen.count("cpu.count").is_ok());
    });
}

#[test]
fn the_device_is_found_by_our_own_address_where_there_is_no_peer() {
    in_namespace(|| {
        let _link = link();
        let local = Some("192.0.2.1".parse().unwrap());
        let seen = snapshot(&Context { local, ..Context::default() });
        assert_eq!(seen.text("link.device"), Ok("left"));
        assert!(seen.missing["route"].contains("no peer"));
    });
}

#[test]
fn counters_are_those_of_the_threads_own_namespace() {
    in_namespace(|| {
        let seen = towards("192.0.2.2");
        assert_eq!(seen.count("snmp.Tcp.InSegs"), Ok(0), "a new namespace has seen no segment");
        assert!(seen.count("netstat.TcpExt.TCPTimeouts").is_ok());
        assert!(seen.text("sysctl.net.ipv4.tcp_rmem").is_ok());
    });
}

#[test]
fn areas_of_a_device_say_what_a_veth_has_and_why_the_rest_is_not_there() {
    in_namespace(|| {
        let _link = link();
        let seen = towards("192.0.2.2");
        assert_eq!(seen.count("channels.rx"), Ok(1));
        assert_eq!(seen.text("filters.hook"), Ok("none"));
        assert_eq!(seen.text("neighbour.next_hop"), Ok("192.0.2.2"));
        assert!(seen.missing["neighbour.state"].contains("not resolved"));
        for area in ["ring", "coalescing", "pause"] {
            assert!(seen.missing[area].contains("not supported"), "{}", seen.missing[area]);
        }
        for area in ["bus", "interrupts", "negotiation"] {
            assert!(seen.missing[area].contains("virtual device"), "{}", seen.missing[area]);
        }
        assert!(seen.missing["napi"].contains("another network namespace"));
    });
}
