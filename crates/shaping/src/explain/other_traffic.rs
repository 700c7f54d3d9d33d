//! What was counted beyond the test's own traffic, at the shaper or at the devices of both hosts.

use goodput_ceiling::counting::by_table;
use goodput_model::Shaping;

use super::Sender;
use super::local::{bottleneck, used_class};
use crate::others::{Around, Counted, OtherTraffic, Others};

/// Smallest share of the test's own traffic that counts: what counters add to a packet differs by less.
const MIN_SHARE: f64 = 0.01;
/// Disciplines that hold a rate.
const SHAPERS: [&str; 3] = ["tbf", "htb", "cake"];

/// What the test itself sent, bytes of frames.
struct Own {
    sent: f64,
    arrived: f64,
    /// A full frame.
    frame: f64,
    /// Payload of a full frame.
    payload: f64,
}

/// What others sent beside a train and beside TCP, as far as it was counted.
pub fn other_traffic(sender: &Sender, train: Option<&Shaping>) -> OtherTraffic {
    let around = sender.around_train.as_ref().zip(train);
    OtherTraffic {
        train: around.and_then(|(around, train)| others(sender, around, &own_of_train(train))),
        tcp: sender
            .around_tcp
            .as_ref()
            .zip(own_of_tcp(sender))
            .and_then(|(around, own)| others(sender, around, &own)),
    }
}

fn own_of_train(train: &Shaping) -> Own {
    let frame = train.frame_bytes.0 as f64;
    // What a firewall of the sender drops reaches no device.
    let sent = train.sent.saturating_sub(train.refused) as f64 * frame;
    let arrived = train.sent.saturating_sub(train.lost) as f64 * frame;
    Own { sent, arrived, frame, payload: train.payload_bytes.0 as f64 }
}

/// Repeated segments count as sent, and so does all that was written if the receiver does not say what arrived.
fn own_of_tcp(sender: &Sender) -> Option<Own> {
    let (payload, packet) = sender.segment.clone().ok()?;
    let frame = packet + f64::from(goodput_model::ETHERNET_HEADER_BYTES);
    let in_frames = |bytes: u64| bytes as f64 / payload * frame;
    let arrived = in_frames(sender.arrived_bytes.clone().ok()?);
    let written = sender.written_bytes.map_or(arrived, |bytes| in_frames(bytes).max(arrived));
    let sent = written + sender.resent_segments as f64 * frame;
    Some(Own { sent, arrived, frame, payload })
}

/// The traffic of others that the shaper counted; without one that was read, the most that a device of the path did.
fn others(sender: &Sender, around: &Around, own: &Own) -> Option<Others> {
    let kind = around.sender.before.text("qdisc.kind").ok();
    let (bytes, place, at_shaper) = match kind.filter(|kind| SHAPERS.contains(kind)) {
        Some(kind) => {
            let (bytes, place) = at_shaper(sender, around, own, kind)?;
            (bytes, place, true)
        }
        None => {
            let sending = at_sender(sender, around, own);
            let both = [sending, around.receiver.as_ref().and_then(|at| at_receiver(at, own))];
            let most =
                both.into_iter().flatten().max_by(|(one, _), (other, _)| one.total_cmp(other));
            let (bytes, place) = most?;
            (bytes, place, false)
        }
    };
    (bytes > own.arrived * MIN_SHARE && around.seconds > 0.0).then(|| Others {
        bits_per_s: bytes * 8.0 / around.seconds,
        place,
        at_shaper,
    })
}

/// Bytes that the shaper counted beyond the test's own, and its name.
fn at_shaper(sender: &Sender, around: &Around, own: &Own, kind: &str) -> Option<(f64, String)> {
    let facts = around.sender.before;
    let device = device(&around.sender);
    let (of, place) = match bottleneck(sender, around.sender) {
        Some(class) => (format!("class.{class}"), format!("class {class} of {kind} on {device}")),
        None => ("qdisc".into(), format!("{kind} on {device}")),
    };
    let by = by_table(facts, own.frame) / own.frame;
    let all = grown(&around.sender, &format!("{of}.sent_bytes"))?;
    Some((all - passed(sender, around, own) * by, place))
}

fn at_sender(sender: &Sender, around: &Around, own: &Own) -> Option<(f64, String)> {
    let all = in_frames(&around.sender, "tx", own)?;
    let place = format!("{} of the host that sends", device(&around.sender));
    Some((all - passed(sender, around, own), place))
}

/// What a device counted that is behind whatever held the rate has passed that: less than was sent, if anything was lost. If
/// it counted all that was sent, or the host itself dropped what its device had counted, the rest was lost behind the device.
fn at_receiver(at: &Counted, own: &Own) -> Option<(f64, String)> {
    let all = in_frames(at, "rx", own)?;
    let counted = || grown(at, "link.rx_bytes").is_some_and(|all| is_dropped_behind(at, own, all));
    let is_before = all < own.sent * (1.0 - MIN_SHARE) && !counted();
    let mine = if is_before { own.arrived } else { own.sent };
    Some((all - mine, format!("{} of the host that receives", device(at))))
}

/// What a device carried one `way`, bytes of frames. A virtual one counts a super-packet with one header (drivers/net/veth.c,
/// `veth_xmit`), which its number of packets shows: those that are missing have a header each.
fn in_frames(at: &Counted, way: &str, own: &Own) -> Option<f64> {
    let all = grown(at, &format!("link.{way}_bytes"))?;
    let Some(packets) = grown(at, &format!("link.{way}_packets")) else { return Some(all) };
    let segments = (all - packets * (own.frame - own.payload)) / own.payload;
    Some(all.max(segments * own.frame))
}

/// Whether most of what was lost was dropped by the receiving host, after its device had counted `all` bytes: before IP, as by a
/// policer of tc, or after it, as by a firewall. Only of IPv4 the facts say so.
fn is_dropped_behind(at: &Counted, own: &Own, all: f64) -> bool {
    let octets = grown(at, "netstat.IpExt.InOctets").filter(|bytes| *bytes >= own.arrived / 2.0);
    let Some(octets) = octets else { return false };
    let before_ip = (1.0 - octets / all).max(0.0);
    let after_ip = || {
        let (came, delivered) =
            (grown(at, "snmp.Ip.InReceives")?, grown(at, "snmp.Ip.InDelivers")?);
        let forwarded = grown(at, "snmp.Ip.ForwDatagrams").unwrap_or_default();
        (came > 0.0).then(|| (1.0 - (delivered + forwarded) / came).max(0.0))
    };
    let lost = 1.0 - own.arrived / own.sent;
    before_ip + after_ip().unwrap_or_default() > lost / 2.0
}

fn grown(at: &Counted, name: &str) -> Option<f64> {
    at.before.grown(at.after, name).ok().map(|bytes| bytes as f64)
}

fn device<'a>(at: &Counted<'a>) -> &'a str {
    at.before.text("link.device").unwrap_or("the device")
}

/// What of the test's own traffic left the sender's queueing discipline, bytes of frames. Of htb, a leaf drops.
fn passed(sender: &Sender, around: &Around, own: &Own) -> f64 {
    let facts = around.sender.before;
    let is_htb = facts.text("qdisc.kind").is_ok_and(|kind| kind == "htb");
    let name = match is_htb.then(|| used_class(sender)) {
        Some(Ok(class)) => format!("class.{class}.drops"),
        _ => "qdisc.drops".into(),
    };
    let dropped = grown(&around.sender, &name).unwrap_or_default() * own.frame;
    (own.sent - dropped).max(own.arrived)
}
