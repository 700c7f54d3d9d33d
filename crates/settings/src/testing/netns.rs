//! A network namespace with everything that the settings' examples name.

use std::path::Path;

use goodput_netlink::parameters::{Parameter, set_parameter};
use goodput_netlink::{HtbClass, Netlink, Offload, Qdisc, QdiscOptions, Tbf, set_offload};

/// Runs `test` in a namespace with the device, address, token bucket and route of the examples.
pub(crate) fn in_scene(test: impl FnOnce(&Path) + Send) {
    let state_dir = super::folder();
    goodput_testing::in_namespace(|| {
        build();
        add_uppers();
        test(&state_dir.path().join("state"));
    });
}

/// Two veth pairs: `eth0` with an address, its route and a token bucket, `eth1` with classes.
pub(crate) fn build() {
    // Later actions of the kernel itself, such as finding an address unique,
    // must not look like a difference.
    for name in ["accept_dad", "dad_transmits", "accept_ra"] {
        let file = format!("/proc/sys/net/ipv6/conf/default/{name}");
        // A host without IPv6 has none.
        let _ = std::fs::write(file, "0");
    }
    let mut netlink = Netlink::open().unwrap();
    netlink.create_veth_with_queues("eth0", "eth1", 4).unwrap();
    let (index, peer) = (netlink.link("eth0").unwrap().index, netlink.link("eth1").unwrap().index);
    netlink.add_address(index, "192.0.2.1".parse().unwrap(), 24).unwrap();
    netlink.set_up(index).unwrap();
    netlink.set_up(peer).unwrap();
    // At 1 Gbit/s a burst is not read back to the byte.
    netlink.replace_qdisc(&Qdisc::root_tbf(index, Tbf::new(125_000_000, 10_007, 100_000))).unwrap();
    classes(&mut netlink, peer);
    queues(&mut netlink);
}

/// Devices on top of the scene's devices, as far as this kernel supports them: a macvlan and a VLAN with
/// their largest possible MTU, a bridge; also steering masks on each queue of two devices,
/// and a route with its own MTU.
fn add_uppers() {
    let mut netlink = Netlink::open().unwrap();
    for parameter in [Parameter::ChannelsRx, Parameter::ChannelsTx] {
        set_parameter("eth2", parameter, 2).unwrap();
    }
    for name in ["eth0", "eth2"] {
        let index = netlink.link(name).unwrap().index;
        netlink.set_mtu(index, 9100).unwrap();
    }
    let upper = |words: &str| {
        let made = std::process::Command::new("ip")
            .args(words.split(' '))
            .stderr(std::process::Stdio::null())
            .status();
        made.is_ok_and(|status| status.success())
    };
    for words in [
        "link add mac0 link eth0 mtu 9100 type macvlan mode bridge",
        "link add eth0.10 link eth0 mtu 9096 type vlan id 10",
        "link add mac2 link eth2 mtu 9100 type macvlan mode bridge",
        "link add br0 type bridge",
        "link set eth3 master br0",
        "link set mac0 up",
        "address add 2001:db8:7::1/64 dev mac0",
        "address add 2001:db8:9::1/64 dev eth0",
        "-6 route add 2001:db8:8::/64 dev eth0 mtu 1400",
        "neighbour add 192.0.2.9 lladdr 02:00:00:00:00:09 dev eth0",
        "rule add from 192.0.2.77 table 77",
        "address add 2001:db8:5::1/64 dev eth0 valid_lft 90000 preferred_lft 50000 noprefixroute",
        "-6 route add 2001:db8:6::/64 dev eth0 proto ra expires 90000",
        "nexthop add id 4242 via 192.0.2.9 dev eth0",
        "nexthop add id 4243 group 4242",
        "route add 203.0.113.0/24 nhid 4243",
    ] {
        if !upper(words) {
            eprintln!("this kernel has no `ip {words}`");
        }
    }
    let commands = [
        "bridge fdb add 02:00:00:00:00:77 dev eth3 master static",
        "tc filter add dev eth1 parent 1: protocol ip prio 7 u32 match ip dst 192.0.2.9 flowid 1:20",
    ];
    for command in commands {
        let mut words = command.split(' ');
        let made = std::process::Command::new(words.next().unwrap()).args(words).status();
        assert!(made.is_ok_and(|status| status.success()), "{command}");
    }
    for device in ["eth0", "eth2", "eth3"] {
        crate::side_effects::steer(device);
    }
}

/// A second pair: one end with the kernel's own queue, one with a queue of packets.
fn queues(netlink: &mut Netlink) {
    netlink.create_veth_with_queues("eth2", "eth3", 2).unwrap();
    // Without GRO a veth is not polled at all.
    set_offload("eth3", Offload::Gro, true).unwrap();
    for name in ["eth2", "eth3"] {
        let index = netlink.link(name).unwrap().index;
        netlink.set_up(index).unwrap();
    }
    let index = netlink.link("eth3").unwrap().index;
    netlink.replace_qdisc(&Qdisc::root_pfifo(index, 33)).unwrap();
}

/// A hierarchy token bucket with two classes, 1:10 and 1:20.
fn classes(netlink: &mut Netlink, index: u32) {
    // `TCA_HTB_INIT` with `struct tc_htb_glob`: version 3, rate to quantum 10, default class 10.
    let words = [3u32, 10, 0x10, 0, 0].map(u32::to_ne_bytes);
    let options = QdiscOptions::Other([&[24, 0, 2, 0], words.as_flattened()].concat());
    let htb = Qdisc { handle: 0x1_0000, ..Qdisc::root(index, "htb", options) };
    netlink.replace_qdisc(&htb).unwrap();
    let class = HtbClass::new(37_500_000, 62_500_000, 20_011, 30_011);
    for handle in [0x1_0010, 0x1_0020] {
        netlink.replace_htb_class(index, handle, 0x1_0000, &class).unwrap();
    }
}
