//! The shaper that the traffic passed at the sending host, or at the router that was asked.

use goodput_ceiling::counting::{self, Each, Joined};
use goodput_model::{BitRate, Bytes, Known, LocalShaper, Missing, Shaping, ShapingTest};

use super::{Sender, burst_at_most};
use crate::others::Counted;

/// Largest number of levels of htb's classes (`TC_HTB_MAXDEPTH`, include/uapi/linux/pkt_sched.h).
const MAX_DEPTH: usize = 8;

/// The shaper; `frame` as it would count it without overhead.
pub(super) fn shaper(sender: &Sender, frame: f64) -> Result<LocalShaper, Missing> {
    let facts = sender.before;
    let (kind, device) = (facts.text("qdisc.kind")?, facts.text("link.device")?);
    let class = match kind {
        "tbf" => None,
        "cake" => {
            facts.number("qdisc.rate_bits_per_s").map_err(|why| unlimited(sender, device, &why))?;
            None
        }
        "htb" => Some(used_class(sender)?),
        kind => return Err(no_shaper(sender, device, kind)),
    };
    let of = class.as_ref().map_or_else(|| "qdisc".to_owned(), |class| format!("class.{class}"));
    let rate = match &class {
        Some(class) => ceil(sender, class)?.0,
        None => facts.number("qdisc.rate_bits_per_s")?,
    };
    let known = |bytes: Result<u64, Missing>| Known::from(bytes.map(Bytes));
    let counted = counting::alone(facts, &of, frame) as u64;
    Ok(LocalShaper {
        end: sender.end,
        router: sender.router.map(str::to_owned),
        device: device.to_owned(),
        kind: kind.to_owned(),
        rate_bits_per_s: BitRate(rate),
        burst_bytes: known(match &class {
            Some(class) => class_burst(sender, class),
            None => facts.count("qdisc.burst_bytes"),
        }),
        limit_bytes: known(facts.count("qdisc.limit_bytes")),
        counted_frame_bytes: Bytes(counted),
        class,
    })
}

/// What the shaper counts for another frame than that of the train, bytes.
pub(super) fn counts_for(sender: &Sender, shaper: &LocalShaper, frame: f64) -> f64 {
    counting::alone(sender.before, &of(shaper), frame).floor()
}

/// What the shaper counts for a datagram of the train, bytes. Joined ones may pass the sender's own shaper as one packet; before
/// the wire to a router, they are cut up.
pub(super) fn counts_for_datagram(sender: &Sender, shaper: &LocalShaper, train: &Shaping) -> f64 {
    let (payload, frame) = (train.payload_bytes.0 as f64, train.frame_bytes.0 as f64);
    let joined = train.joined.filter(|joined| *joined > 1.0 && sender.router.is_none());
    let each = joined.and_then(|segments| {
        let (most, of) = (burst_at_most(shaper), of(shaper));
        let joined = Joined { segments, payload, frame };
        counting::each_of(sender.before, &of, &shaper.kind, most, joined)
    });
    each.map_or_else(|| counts_for(sender, shaper, frame), |each| each.bytes)
}

/// The least that the shaper may count for a datagram of the train, bytes. Joined ones may come whole to a router, too: virtual
/// devices do not cut them up.
pub(super) fn least_for_datagram(sender: &Sender, shaper: &LocalShaper, train: &Shaping) -> f64 {
    let (payload, frame) = (train.payload_bytes.0 as f64, train.frame_bytes.0 as f64);
    let joined = train.joined.filter(|joined| *joined > 1.0 && sender.router.is_some());
    let least = joined.and_then(|joined| {
        least_of(sender, shaper, Joined { segments: joined.floor(), payload, frame })
    });
    let own = counts_for_datagram(sender, shaper, train);
    least.map_or(own, |least| least.bytes.min(own))
}

/// The least that the shaper counts for each segment, if that many or fewer leave the sender in one packet; `None` if each counts
/// as if it left alone.
pub(super) fn least_of(sender: &Sender, shaper: &LocalShaper, most: Joined) -> Option<Each> {
    counting::least_of(sender.before, &of(shaper), &shaper.kind, burst_at_most(shaper), most)
}

/// What the names of the facts of the shaper's settings begin with: its class, or the discipline.
fn of(shaper: &LocalShaper) -> String {
    shaper.class.as_ref().map_or_else(|| "qdisc".to_owned(), |class| format!("class.{class}"))
}

/// Whether a shaper is set to another rate than the one that was asked about.
pub(crate) fn is_set_otherwise(test: &ShapingTest, shaper: &LocalShaper) -> bool {
    let off = (shaper.rate_bits_per_s.0 / test.configured_bits_per_s.0 - 1.0).abs();
    off > test.tolerance_percent / 100.0
}

/// Why a cake is no shaper to look at.
fn unlimited(sender: &Sender, device: &str, why: &Missing) -> Missing {
    let place = sender.place();
    Missing::because(format!("cake on {device} of {place} has no rate to compare ({why})"))
}

/// Disciplines that hold no rate (tc(8)).
const WITHOUT_RATE: [&str; 9] =
    ["noqueue", "pfifo", "bfifo", "pfifo_fast", "fq_codel", "codel", "sfq", "mq", "prio"];

/// Why there is no shaper to look at.
fn no_shaper(sender: &Sender, device: &str, kind: &str) -> Missing {
    let place = sender.place();
    if let Ok(below) = sender.before.text("qdisc.shapers_below") {
        return Missing::because(format!(
            "{device} of {place} may shape by {below}, which is below {kind}; goodput only reads the outermost queueing discipline"
        ));
    }
    Missing::because(match WITHOUT_RATE.contains(&kind) {
        true => {
            format!("{device} of {place} shapes nothing (its queueing discipline is {kind})")
        }
        false => format!(
            "goodput does not read the rate of {kind}, the queueing discipline of {device} at {place}"
        ),
    })
}

/// The leaf class that the traffic passed: at its sender, the one whose count of bytes grew most.
pub(crate) fn used_class(sender: &Sender) -> Result<String, Missing> {
    let grown = leaves(sender).filter_map(|class| {
        let name = format!("class.{class}.sent_bytes");
        Some((sender.before.grown(sender.after, &name).ok()?, class))
    });
    if sender.router.is_some() {
        return at_router(grown.collect(), sender.arrived_bytes.clone()?).map(str::to_owned);
    }
    let most = grown.max_by_key(|(bytes, _)| *bytes).filter(|(bytes, _)| *bytes > 0);
    let class = most.map(|(_, class)| class.to_owned());
    class.ok_or_else(|| Missing::because("no class of htb counted the traffic"))
}

/// The same at a router, which other traffic passes as well: the class counted all that arrived, and that was most of what
/// the class counted.
fn at_router(grown: Vec<(u64, &str)>, arrived: u64) -> Result<&str, Missing> {
    let is_ours = |bytes: u64| bytes > 0 && (arrived..=arrived.saturating_mul(2)).contains(&bytes);
    let ours = grown.into_iter().filter(|(bytes, _)| is_ours(*bytes));
    match ours.map(|(_, class)| class).collect::<Vec<_>>()[..] {
        [class] => Ok(class),
        [] => Err(Missing::because("no class of htb counted mainly the traffic of the test")),
        ref several => Err(Missing::because(format!(
            "other traffic passed the router: each of the classes {} counted as much as the test sent",
            several.join(", ")
        ))),
    }
}

fn leaves<'a>(sender: &Sender<'a>) -> impl Iterator<Item = &'a str> {
    let facts = sender.before;
    let classes =
        facts.facts.keys().filter_map(|name| name.strip_prefix("class.")?.strip_suffix(".level"));
    classes.filter(|class| facts.count(&format!("class.{class}.level")) == Ok(0))
}

/// Above its rate a class depends on what its parent lends, and only cburst counts (net/sched/sch_htb.c, `htb_class_mode`).
fn class_burst(sender: &Sender, class: &str) -> Result<u64, Missing> {
    let fact = |what: &str| sender.before.count(&format!("class.{class}.{what}"));
    let (burst, cburst) = (fact("burst_bytes")?, fact("cburst_bytes")?);
    let borrows = fact("ceil_bits_per_s")? > fact("rate_bits_per_s")?;
    Ok(if borrows { cburst } else { burst.min(cburst) })
}

/// The class of htb that holds the traffic that was counted here: of its leaf and the classes above, the highest one with the
/// lowest ceil, which all classes below it share. `None` if the discipline is another.
pub(crate) fn bottleneck(sender: &Sender, at: Counted) -> Option<String> {
    if at.before.text("qdisc.kind") != Ok("htb") {
        return None;
    }
    let leaf = used_class(sender).ok()?;
    let all: Vec<&str> = [leaf.as_str()].into_iter().chain(parents(sender, &leaf)).collect();
    let ceil = |class: &str| at.before.number(&format!("class.{class}.ceil_bits_per_s")).ok();
    let known = all.into_iter().filter_map(|class| Some((ceil(class)?, class)));
    let lowest = known.reduce(|low, next| if next.0 <= low.0 { next } else { low });
    lowest.map(|(_, class)| class.to_owned())
}

/// Highest rate of a class: the lowest ceil from the class to the root.
pub(crate) fn ceil(sender: &Sender, leaf: &str) -> Result<BitRate, Missing> {
    let own = sender.before.number(&format!("class.{leaf}.ceil_bits_per_s"))?;
    let above = parents(sender, leaf)
        .into_iter()
        .filter_map(|class| sender.before.number(&format!("class.{class}.ceil_bits_per_s")).ok());
    Ok(BitRate(above.fold(own, f64::min)))
}

/// The classes above one, the next first.
pub(crate) fn parents<'a>(sender: &Sender<'a>, leaf: &str) -> Vec<&'a str> {
    let facts = sender.before;
    let above = |class: &str| facts.text(&format!("class.{class}.parent")).ok();
    let is_class = |class: &&str| facts.count(&format!("class.{class}.level")).is_ok();
    let all = std::iter::successors(above(leaf), |class| above(class));
    all.take_while(is_class).take(MAX_DEPTH).collect()
}
