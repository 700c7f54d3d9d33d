//! Traffic of others that crossed the shaper, or a device of the path, while a test ran.
//!
//! Counters say what passed, and what the test itself sent is known. The rest is of others, and took its part of the rate.

use goodput_model::{BitRate, Shaping, Snapshot};

use crate::explain::{Sender, bottleneck, by_table, used_class};

/// Smallest share of the test's own traffic that counts: what counters add to a packet differs by less.
const MIN_SHARE: f64 = 0.01;
/// Disciplines that hold a rate.
const SHAPERS: [&str; 3] = ["tbf", "htb", "cake"];

/// What one host counted around a run.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'a> {
    /// Its facts before the run.
    pub before: &'a Snapshot,
    /// The same facts afterwards.
    pub after: &'a Snapshot,
}

/// What was counted around a run.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    /// At the end that sent, or at the router whose facts stand in for it.
    pub sender: Counted<'a>,
    /// At the end that received, if it reports.
    pub receiver: Option<Counted<'a>>,
    /// Time between both looks, seconds.
    pub seconds: f64,
}

/// Traffic of others.
#[derive(Debug, Clone, PartialEq)]
pub struct Others {
    /// Bits per second of frames.
    pub bits_per_s: f64,
    /// What counted it, in words.
    place: String,
    /// Whether that is the shaper: what a device counts may take another way.
    at_shaper: bool,
}

/// Traffic of others beside each part of a test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Beside {
    /// Beside the datagrams.
    pub train: Option<Others>,
    /// Beside TCP.
    pub tcp: Option<Others>,
}

/// What the test itself sent, bytes of frames.
struct Own {
    sent: f64,
    arrived: f64,
    frame: f64,
}

impl Others {
    /// What it is, in words.
    pub(crate) fn words(&self) -> String {
        let (rate, place) = (BitRate(self.bits_per_s), &self.place);
        match self.at_shaper {
            true => format!("{rate} of other traffic crossed {place} meanwhile"),
            false => format!(
                "{place} carried {rate} of other traffic meanwhile, which may cross the shaper"
            ),
        }
    }

    /// The bits per second of what others there were.
    pub(crate) fn rate(others: Option<&Self>) -> f64 {
        others.map_or(0.0, |others| others.bits_per_s)
    }
}

/// What others sent beside a train and beside TCP, as far as it was counted.
pub fn beside(sender: &Sender, train: Option<&Shaping>) -> Beside {
    let around = sender.around_train.as_ref().zip(train);
    Beside {
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
    let sent = train.sent as f64 * frame;
    Own { sent, arrived: sent - train.lost as f64 * frame, frame }
}

/// Repeated segments count as sent.
fn own_of_tcp(sender: &Sender) -> Option<Own> {
    let (payload, packet) = sender.segment.clone().ok()?;
    let frame = packet + f64::from(goodput_model::ETHERNET_HEADER_BYTES);
    let arrived = sender.arrived_bytes.clone().ok()? as f64 / payload * frame;
    Some(Own { sent: arrived + sender.resent_segments as f64 * frame, arrived, frame })
}

/// The traffic of others that the shaper counted; without one that was read, the most that a device of the path did.
fn others(sender: &Sender, around: &Around, own: &Own) -> Option<Others> {
    let of = |at: &Counted, name: &str, own: f64| {
        Some(at.before.grown(at.after, name).ok()? as f64 - own)
    };
    let facts = around.sender.before;
    let (kind, device) =
        (facts.text("qdisc.kind"), facts.text("link.device").unwrap_or("the device"));
    let (bytes, place, at_shaper) = match kind.ok().filter(|kind| SHAPERS.contains(kind)) {
        Some(kind) => {
            let (name, place) = match bottleneck(sender, around.sender) {
                Some(class) => {
                    (format!("class.{class}"), format!("class {class} of {kind} on {device}"))
                }
                None => ("qdisc".into(), format!("{kind} on {device}")),
            };
            let by = by_table(facts, own.frame) / own.frame;
            let passed = passed(sender, around, own) * by;
            (of(&around.sender, &format!("{name}.sent_bytes"), passed)?, place, true)
        }
        None => {
            let sending = of(&around.sender, "link.tx_bytes", passed(sender, around, own))
                .map(|bytes| (bytes, device, "that sends"));
            let receiving = around.receiver.as_ref().and_then(|at| {
                let device = at.before.text("link.device").unwrap_or("the device");
                Some((of(at, "link.rx_bytes", own.arrived)?, device, "that receives"))
            });
            let (bytes, device, which) = [sending, receiving]
                .into_iter()
                .flatten()
                .max_by(|(one, ..), (other, ..)| one.total_cmp(other))?;
            (bytes, format!("{device} of the host {which}"), false)
        }
    };
    (bytes > own.arrived * MIN_SHARE && around.seconds > 0.0).then(|| Others {
        bits_per_s: bytes * 8.0 / around.seconds,
        place,
        at_shaper,
    })
}

/// What of the test's own traffic left the sender's queueing discipline, bytes of frames. Of htb, a leaf drops.
fn passed(sender: &Sender, around: &Around, own: &Own) -> f64 {
    let Counted { before, after } = around.sender;
    let name =
        match before.text("qdisc.kind").is_ok_and(|kind| kind == "htb").then(|| used_class(sender))
        {
            Some(Ok(class)) => format!("class.{class}.drops"),
            _ => "qdisc.drops".into(),
        };
    let dropped = before.grown(after, &name).unwrap_or_default() as f64 * own.frame;
    (own.sent - dropped).max(own.arrived)
}
