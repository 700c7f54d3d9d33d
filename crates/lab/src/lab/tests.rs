//! Labs that are really up: the hosts reach each other, the links behave as specified, and nothing stays behind.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsFd;

use goodput_netlink::{Netlink, namespace};
use goodput_testing::wait_for;

use super::*;
use crate::testing::runnable;

const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

/// Sends some bytes from near to far and back over TCP.
fn bytes_cross(lab: &Lab, family: Family) {
    const PAYLOAD: usize = 300_000;
    let target = lab.far().address(family);
    let listener = lab.far().within(|| TcpListener::bind((target, 0))).unwrap().unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::scope(|scope| {
        let server = scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut received = vec![0; PAYLOAD];
            stream.read_exact(&mut received).unwrap();
            stream.write_all(&received).unwrap();
        });
        let connect = || TcpStream::connect((target, port));
        let mut stream = lab.near().within(connect).unwrap().unwrap();
        let sent: Vec<u8> = (0..PAYLOAD).map(|n| (n % 251) as u8).collect();
        stream.write_all(&sent).unwrap();
        let mut back = Vec::new();
        stream.read_to_end(&mut back).unwrap();
        server.join().unwrap();
        assert!(back == sent, "{family:?}: what came back is not what was sent");
    });
}

#[test]
fn bytes_cross_every_kind_of_link() {
    for links in [
        "",
        "[link.path]\nmtu = 9000",
        "[link.path]\nrate = \"500mbit\"",
        "[link.near-router]\n[link.router-far]\nrate = \"500mbit\"",
        "[link.path]\ndelay = \"1ms\"",
        "[link.path]\ndelay = \"1ms\"\nsegmentation = \"on\"",
        "[link.path]\nloss = 1\ndelay = \"1ms\"\njitter = \"500us\"\nreorder = 1",
        "[link.near-router]\nrate = \"1gbit\"\n[link.router-far]\ndelay = \"1ms\"\nmtu = 1400",
    ] {
        let Some(scenario) = runnable(links) else { continue };
        let lab = Lab::up(&scenario).unwrap();
        FAMILIES.into_iter().for_each(|family| bytes_cross(&lab, family));
    }
}

/// Without this, IPv6 would lose its addresses at the first time that a link flaps.
#[test]
fn a_device_that_was_down_has_both_addresses_again() {
    let Some(scenario) = runnable("[link.near-router]\n[link.router-far]") else { return };
    let lab = Lab::up(&scenario).unwrap();
    let router = lab.host("router").unwrap();
    for port in router.ports() {
        let flap = |netlink: &mut Netlink| {
            let device = netlink.link(&port.device)?.index;
            netlink.set_down(device)?;
            netlink.set_up(device)
        };
        router.netlink(flap).unwrap();
    }
    FAMILIES.into_iter().for_each(|family| bytes_cross(&lab, family));
}

#[test]
fn a_rate_is_kept_by_the_router_and_not_at_the_ends() {
    let Some(scenario) = runnable("[link.path]\nrate = \"100mbit\"") else { return };
    let lab = Lab::up(&scenario).unwrap();
    let kinds = |host: &Host| {
        let kind = |port: &crate::Port| {
            host.netlink(|netlink| Ok(netlink.link(&port.device)?.qdisc)).unwrap().unwrap()
        };
        host.ports().iter().map(kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(lab.host("router").unwrap()), ["tbf", "tbf"]);
    assert_eq!([kinds(lab.near()), kinds(lab.far())], [["noqueue"], ["noqueue"]]);
}

#[test]
fn the_relay_loses_its_share() {
    let links = "[link.path]\nloss = \"10%\"\nback = { loss = 0 }";
    let Some(scenario) = runnable(links) else { return };
    let lab = Lab::up(&scenario).unwrap();
    if lab.relay_counters().is_empty() {
        return;
    }
    let target = lab.far().address(Family::V4);
    let socket = lab.near().within(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    let before = lab.relay_counters()[0][0];
    for batch in 1..=100 {
        for _ in 0..100 {
            socket.send_to(&[0; 100], (target, 9)).unwrap();
        }
        let seen = || counted(&lab) - before.forwarded - before.lost;
        wait_for("the relay to see a batch", || seen() >= batch * 100);
    }
    let lost = lab.relay_counters()[0][0].lost - before.lost;
    // Binomial: mean 1000, standard deviation 30; the seed is fixed, the interleaving is not.
    assert!((850..=1150).contains(&lost), "{lost} of 10000");
    assert_eq!(lab.relay_counters()[0][1].lost, 0);
}

fn counted(lab: &Lab) -> u64 {
    let forward = lab.relay_counters()[0][0];
    forward.forwarded + forward.lost + forward.queue_drops + forward.refused
}

#[test]
fn the_relay_delays_by_no_less_than_asked() {
    let Some(scenario) = runnable("[link.path]\ndelay = \"5ms\"") else { return };
    let lab = Lab::up(&scenario).unwrap();
    let target = lab.far().address(Family::V4);
    let echo = lab.far().within(|| UdpSocket::bind((target, 0))).unwrap().unwrap();
    let target = echo.local_addr().unwrap();
    let socket = lab.near().within(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    for _ in 0..20 {
        let began = Instant::now();
        socket.send_to(b"x", target).unwrap();
        let (_, from) = echo.recv_from(&mut [0]).unwrap();
        echo.send_to(b"y", from).unwrap();
        socket.recv_from(&mut [0]).unwrap();
        assert!(began.elapsed() >= Duration::from_millis(10), "{:?}", began.elapsed());
    }
}

#[test]
fn the_relay_is_no_faster_than_its_rate() {
    let Some(scenario) = runnable("[link.path]\nrate = \"10mbit\"\ndelay = \"1ms\"") else {
        return;
    };
    let lab = Lab::up(&scenario).unwrap();
    let target = lab.far().address(Family::V4);
    let receiver = lab.far().within(|| UdpSocket::bind((target, 0))).unwrap().unwrap();
    let target = receiver.local_addr().unwrap();
    let socket = lab.near().within(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    // 1250 bytes with UDP, IP and Ethernet headers: one millisecond each. All fit the queue.
    let began = Instant::now();
    for _ in 0..50 {
        socket.send_to(&[0; 1250 - 8 - 20 - 14], target).unwrap();
    }
    for _ in 0..50 {
        receiver.recv_from(&mut [0; 1500]).unwrap();
    }
    assert!(began.elapsed() >= Duration::from_millis(51), "{:?}", began.elapsed());
}

#[test]
fn commands_run_inside_their_host() {
    let Some(scenario) = runnable("") else { return };
    let lab = Lab::up(&scenario).unwrap();
    for host in lab.hosts() {
        let mut command = host.command("readlink").unwrap();
        let output = command.arg("/proc/self/ns/net").output().unwrap();
        let inode = namespace::inode(host.namespace()).unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("net:[{inode}]\n"));
    }
    assert!(lab.enter_hint(lab.near()).contains("--net=/proc/"));
}

#[test]
fn a_fault_that_the_kernel_refuses_says_so() {
    let body =
        "[[fault]]\nkind = \"sysctl\"\nhost = \"far\"\nname = \"net.ipv4.no_such\"\nvalue = \"1\"";
    let Some(scenario) = runnable(body) else { return };
    let error = Lab::up(&scenario).unwrap_err().to_string();
    assert!(error.contains("sysctl") && error.contains("net.ipv4.no_such"), "{error}");
}

#[test]
fn nothing_stays_when_a_lab_goes() {
    let Some(scenario) = runnable("[link.path]\ndelay = \"1ms\"") else { return };
    let lab = Lab::up(&scenario).unwrap();
    let kept = lab.near().namespace().as_fd().try_clone_to_owned().unwrap();
    drop(lab);
    let links = || {
        let links = || goodput_netlink::Netlink::open().unwrap().links().unwrap().len();
        namespace::inside(kept.as_fd(), links).unwrap()
    };
    // Only the loopback device. One end of a veth pair disappears with the other's namespace, which the kernel cleans
    // up later (net/core/net_namespace.c, `cleanup_net`).
    wait_for("the devices to go", || links() == 1);
}
