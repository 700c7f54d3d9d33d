//! The device of the path: its kind and its counters.

use goodput_model::{Fact, HARDWARE, Missing, SPEED_FROM_BELOW, Snapshot};
use goodput_netlink::ethtool::{self, Duplex};
use goodput_netlink::{Link, LinkStats, Netlink, NetlinkError};

use super::Source;
use crate::Context;
use crate::context::missing;

/// A counter of a device: its name, and its value.
type Counter = (&'static str, fn(&LinkStats) -> u64);

/// What a device counts.
const COUNTERS: [Counter; 19] = [
    ("rx_bytes", |stats| stats.rx_bytes),
    ("tx_bytes", |stats| stats.tx_bytes),
    ("rx_packets", |stats| stats.rx_packets),
    ("tx_packets", |stats| stats.tx_packets),
    ("rx_errors", |stats| stats.rx_errors),
    ("tx_errors", |stats| stats.tx_errors),
    ("rx_dropped", |stats| stats.rx_dropped),
    ("tx_dropped", |stats| stats.tx_dropped),
    ("rx_crc_errors", |stats| stats.rx_crc_errors),
    ("rx_fifo_errors", |stats| stats.rx_fifo_errors),
    ("rx_missed_errors", |stats| stats.rx_missed_errors),
    ("rx_length_errors", |stats| stats.rx_length_errors),
    ("rx_over_errors", |stats| stats.rx_over_errors),
    ("rx_frame_errors", |stats| stats.rx_frame_errors),
    ("tx_aborted_errors", |stats| stats.tx_aborted_errors),
    ("tx_carrier_errors", |stats| stats.tx_carrier_errors),
    ("tx_fifo_errors", |stats| stats.tx_fifo_errors),
    ("tx_window_errors", |stats| stats.tx_window_errors),
    ("collisions", |stats| stats.collisions),
];
/// How often the device lost or got its carrier, which the kernel counts elsewhere.
const CARRIER_CHANGES: &str = "carrier_changes";

pub(super) struct LinkSource;

impl Source for LinkSource {
    fn id(&self) -> &'static str {
        "link"
    }

    fn summary(&self) -> &'static str {
        "the path's device: kind, speed, sizes, and what it carried, lost and dropped"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let device = context.device_name()?;
        let mut netlink = Netlink::open().map_err(missing)?;
        let link = netlink.link(&device).map_err(missing)?;
        snapshot.put("link.device", link.name.as_str());
        snapshot.put("link.kind", kind(&link));
        snapshot.put("link.mtu_bytes", u64::from(link.mtu));
        snapshot.put("link.tx_queue_len", u64::from(link.tx_queue_len));
        put_or_lack(snapshot, CARRIER_CHANGES, link.carrier_changes);
        put_or_lack(snapshot, "gso_max_bytes", link.gso_max_size);
        put_or_lack(snapshot, "gso_max_segments", link.gso_max_segs);
        put_result(snapshot, "link.below", below(&link, |index| netlink.link_by_index(index)));
        driver(snapshot, &device);
        speed(snapshot, &link);
        match &link.stats {
            Some(stats) => counters(snapshot, stats),
            None => return Err(Missing::because(format!("{device} has no 64 bit counters"))),
        }
        Ok(())
    }

    fn lasts(&self, name: &str) -> bool {
        !COUNTERS.iter().any(|(counter, _)| *counter == name) && name != CARRIER_CHANGES
    }
}

/// Kind of a device: its virtual kind, "loopback", or "hardware" for everything else.
fn kind(link: &Link) -> &str {
    match (&link.kind, link.loopback) {
        (Some(kind), _) => kind,
        (None, true) => "loopback",
        (None, false) => HARDWARE,
    }
}

/// Name of the device below this one, if the kernel names a single one: for a VLAN, a macvlan, or a tunnel that is
/// bound to a device.
fn below(
    link: &Link,
    by_index: impl FnOnce(u32) -> Result<Link, NetlinkError>,
) -> Result<Fact, String> {
    let named = || link.peer_index.filter(|index| *index != 0 && *index != link.index);
    match (&link.kind, named()) {
        (None, _) => Err("it is no virtual device".into()),
        (Some(kind), _) if kind == "veth" => Err("a veth stands on no other device".into()),
        (Some(kind), None) => Err(format!("the kernel names none for this {kind} device")),
        (Some(_), Some(_)) if link.peer_elsewhere => {
            Err("it is in another network namespace".into())
        }
        (Some(_), Some(index)) => {
            by_index(index).map(|below| Fact::from(below.name)).map_err(|error| error.to_string())
        }
    }
}

fn put_or_lack(snapshot: &mut Snapshot, name: &str, value: Option<u32>) {
    let name = format!("link.{name}");
    match value {
        Some(value) => snapshot.put(name, u64::from(value)),
        None => snapshot.lacks(name, "this kernel does not report it"),
    }
}

fn driver(snapshot: &mut Snapshot, device: &str) {
    match ethtool::driver(device) {
        Ok(Some(driver)) => snapshot.put("link.driver", driver),
        Ok(None) => snapshot.lacks("link.driver", "the device has no named driver"),
        Err(error) => snapshot.lacks("link.driver", error.to_string()),
    }
}

/// Speed and duplex if they are real ([`SPEED_FROM_BELOW`]).
fn speed(snapshot: &mut Snapshot, link: &Link) {
    let settings = match (&link.kind, link.loopback) {
        (Some(kind), _) if !SPEED_FROM_BELOW.contains(&kind.as_str()) => {
            Err(format!("{} is a virtual device ({kind}) without a speed of its own", link.name))
        }
        (None, true) => Err(format!("{} is the loopback device and has no speed", link.name)),
        _ => ethtool::link_settings(&link.name).map_err(|error| error.to_string()),
    };
    let unknown = || format!("the driver of {} does not know it", link.name);
    let speed = settings.as_ref().map_err(Clone::clone);
    let speed = speed.and_then(|s| s.speed_bits_per_s.ok_or_else(unknown).map(Fact::from));
    put_result(snapshot, "link.speed_bits_per_s", speed);
    let duplex = settings.and_then(|s| s.duplex.ok_or_else(unknown));
    let duplex = duplex.map(|duplex| match duplex {
        Duplex::Half => Fact::from("half"),
        Duplex::Full => Fact::from("full"),
    });
    put_result(snapshot, "link.duplex", duplex);
}

fn put_result(snapshot: &mut Snapshot, name: &str, value: Result<Fact, String>) {
    match value {
        Ok(fact) => snapshot.put(name, fact),
        Err(why) => snapshot.lacks(name, why),
    }
}

fn counters(snapshot: &mut Snapshot, stats: &LinkStats) {
    for (name, value) in COUNTERS {
        snapshot.put(format!("link.{name}"), value(stats));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_below_is_that_of_a_vlan_and_never_the_peer_of_a_veth() {
        let named = |index: u32| Ok(Link { index, name: "eth0".into(), ..Link::default() });
        let link = |kind: Option<&str>, peer_index| Link {
            index: 5,
            kind: kind.map(String::from),
            peer_index,
            ..Link::default()
        };
        assert_eq!(below(&link(Some("vlan"), Some(2)), named), Ok(Fact::from("eth0")));
        assert!(below(&link(Some("veth"), Some(2)), named).is_err());
        assert!(below(&link(Some("wireguard"), None), named).is_err());
        assert!(below(&link(Some("sit"), Some(0)), named).is_err());
        assert!(below(&link(None, Some(2)), named).is_err());
        let elsewhere = Link { peer_elsewhere: true, ..link(Some("macvlan"), Some(2)) };
        assert!(below(&elsewhere, named).unwrap_err().contains("another network namespace"));
    }
}
