//! The device of the path: what it is and what it counted.

use goodput_model::{Fact, Missing, Snapshot};
use goodput_netlink::ethtool::{self, Duplex};
use goodput_netlink::{Link, LinkStats, Netlink};

use super::Source;
use crate::Context;
use crate::context::missing;

/// Virtual kinds that hand on the speed of the hardware below them.
const SPEED_FROM_BELOW: &[&str] = &["bond", "ipvlan", "macvlan", "team", "vlan"];

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
        let link = Netlink::open().and_then(|mut n| n.link(&device)).map_err(missing)?;
        snapshot.put("link.device", link.name.as_str());
        snapshot.put("link.kind", kind(&link));
        snapshot.put("link.mtu_bytes", u64::from(link.mtu));
        snapshot.put("link.tx_queue_len", u64::from(link.tx_queue_len));
        put_or_lack(snapshot, "carrier_changes", link.carrier_changes);
        put_or_lack(snapshot, "gso_max_bytes", link.gso_max_size);
        put_or_lack(snapshot, "gso_max_segments", link.gso_max_segs);
        driver(snapshot, &device);
        speed(snapshot, &link);
        match &link.stats {
            Some(stats) => counters(snapshot, stats),
            None => return Err(Missing::because(format!("{device} has no 64 bit counters"))),
        }
        Ok(())
    }
}

/// Kind of a device: its virtual kind, "loopback", or "hardware" for all that is none of these.
fn kind(link: &Link) -> &str {
    match (&link.kind, link.loopback) {
        (Some(kind), _) => kind,
        (None, true) => "loopback",
        (None, false) => "hardware",
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

/// Speed and duplex if they are real. A veth claims 10 Gbit/s and a tun 10 Mbit/s whatever they
/// carry.
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
    let all = [
        ("rx_bytes", stats.rx_bytes),
        ("tx_bytes", stats.tx_bytes),
        ("rx_packets", stats.rx_packets),
        ("tx_packets", stats.tx_packets),
        ("rx_errors", stats.rx_errors),
        ("tx_errors", stats.tx_errors),
        ("rx_dropped", stats.rx_dropped),
        ("tx_dropped", stats.tx_dropped),
        ("rx_crc_errors", stats.rx_crc_errors),
        ("rx_fifo_errors", stats.rx_fifo_errors),
        ("rx_missed_errors", stats.rx_missed_errors),
        ("rx_length_errors", stats.rx_length_errors),
        ("rx_over_errors", stats.rx_over_errors),
        ("rx_frame_errors", stats.rx_frame_errors),
        ("tx_aborted_errors", stats.tx_aborted_errors),
        ("tx_carrier_errors", stats.tx_carrier_errors),
        ("tx_fifo_errors", stats.tx_fifo_errors),
        ("tx_window_errors", stats.tx_window_errors),
        ("collisions", stats.collisions),
    ];
    for (name, value) in all {
        snapshot.put(format!("link.{name}"), value);
    }
}
