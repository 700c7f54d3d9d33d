//! Rates that differ: what is configured, what is set, what classes may borrow, what datagrams get.

use goodput_ceiling::counting::has_table;
use goodput_model::{BitRate, CountedLayer, ShapingKind};

use super::bucket::least_for_segment;
use super::late_timers::is_explained;
use super::local::{counts_for, counts_for_datagram, is_set_otherwise, parents};
use super::tree::peak_rate;
use super::{Answer, Seen, Sender, say};
use crate::behind::Behind;
use crate::kind::waited_for_rate;
use crate::others::Others;

/// A local shaper that is set to another rate than the one that was asked about.
pub(super) fn set_otherwise(seen: &Seen) -> Answer {
    let shaper = seen.shaper()?;
    is_set_otherwise(seen.test, shaper).then(|| {
        say("set-otherwise", format!("{} is set to {}", name(seen), shaper.rate_bits_per_s))
    })
}

/// Traffic of others that had a part of the rate.
pub(super) fn other_traffic(seen: &Seen) -> Answer {
    let least = seen.test.configured_bits_per_s.0 * seen.tolerance();
    let beside = [(&seen.others.train, "datagrams"), (&seen.others.tcp, "TCP")];
    let counts = |(others, who): (&Option<Others>, &str)| {
        let others = others.as_ref().filter(|others| others.bits_per_s >= least)?;
        Some(format!("beside {who}, {}", others.words()))
    };
    let said: Vec<String> = beside.into_iter().filter_map(counts).collect();
    (!said.is_empty()).then(|| say("other-traffic", said.join("; ")))
}

/// Overhead that the shaper is configured to count.
pub(super) fn counts_more(seen: &Seen) -> Answer {
    let (shaper, train) = (seen.shaper()?, seen.train()?);
    let (counted, frame) = (shaper.counted_frame_bytes.0, train.frame_bytes.0);
    let rate = shaper.rate_bits_per_s;
    let left = |counted: f64| BitRate(rate.0 * frame as f64 / counted);
    let each = counts_for_datagram(seen.sender, shaper, train);
    let (name, alone) = (name(seen), left(counted as f64));
    (counted > frame).then(|| {
        let text = match train.joined.filter(|_| each + 1.0 < counted as f64) {
            None => format!(
                "{name} counts {counted} bytes for a frame of {frame}: {rate} leave {alone} for frames"
            ),
            Some(joined) => format!(
                "{name} counts {counted} bytes for a frame of {frame} that leaves alone: {rate} leave {alone} for frames; the \
                 datagrams left {joined:.0} at a time, which have the overhead once, and {} are left for them",
                left(each)
            ),
        };
        say("counted-overhead", text)
    })
}

/// Why users see less than the rate.
pub(super) fn headers(seen: &Seen) -> Answer {
    let (payload, packet) = seen.sender.segment.clone().ok()?;
    let configured = seen.test.configured_bits_per_s;
    let frame = packet + CountedLayer::Frame.extra_bytes();
    // One that was meant was read; what another counts follows from the rate.
    let own = seen.shaper().filter(|_| set_otherwise(seen).is_none());
    let own = own.map(|shaper| counts_for(seen.sender, shaper, frame));
    let in_layer = |layer: &CountedLayer| packet + layer.extra_bytes();
    let counted = own.or(seen.test.counts.value().map(in_layer))?;
    let own = seen.shaper().filter(|_| own.is_some());
    let least = own.and_then(|shaper| least_for_segment(seen.sender, shaper));
    let for_users = |counted: f64| BitRate(configured.0 * payload / counted);
    let why = match least.is_some_and(|least| least.is_cut) {
        true => "what tbf cuts up of a super-packet passes its table of sizes",
        false if has_table(seen.sender.before) => {
            "the table of sizes takes a super-packet with one header"
        }
        false => "a super-packet has the overhead once",
    };
    let text = match least.map(|least| least.bytes.ceil()).filter(|least| *least < counted) {
        Some(least) => format!(
            "of {least:.0} to {counted:.0} bytes that count for a segment, because {why}, {payload:.0} are payload of TCP: \
             {configured} are {} to {} for its users",
            for_users(counted),
            for_users(least)
        ),
        None => format!(
            "of {counted:.0} bytes that count, {payload:.0} are payload of TCP: {configured} are {} for its users",
            for_users(counted)
        ),
    };
    Some(say("headers", text))
}

/// What the kernel of the sending host refuses never leaves the host, and the host reports it (EPERM). A firewall rule does so, and so
/// do a BPF program of a cgroup and a full table of connection tracking.
pub(super) fn own_firewall(seen: &Seen) -> Answer {
    let train = seen.train()?;
    let is_most = train.refused > train.lost / 2;
    (train.kind == ShapingKind::Policer && is_most).then(|| {
        say(
            "own-firewall",
            format!(
                "the {} host itself refused {} of the {} datagrams that were lost, most likely by a firewall rule: look for \
                 a limit in its output hook (nft list ruleset)",
                seen.sender.end, train.refused, train.lost
            ),
        )
    })
}

/// Something behind the local shaper that gives less.
pub(super) fn second_shaper(seen: &Seen) -> Answer {
    let (train, given, short) = (seen.train()?, seen.given()?, seen.shortfall()?);
    let what = match train.kind {
        // They wait in the first one. What the second does shows in the pauses, or not at all.
        ShapingKind::Shaper if waited_for_rate(&train.rate_waits_per_call) => {
            match seen.sender.behind {
                Some(Behind::Drops) => "a policer",
                Some(Behind::Waits) => "a second shaper, or a slower link,",
                None => "a second shaper, a policer or a slower link",
            }
        }
        ShapingKind::Shaper => "a second shaper, or a slower link,",
        ShapingKind::Policer => "a policer",
        ShapingKind::None => return None,
    };
    let (name, given, set) = (name(seen), BitRate(given.value), BitRate(seen.set_in_frames()?));
    let is_explained =
        is_explained(seen, short) || peak_rate(seen).is_some() || own_firewall(seen).is_some();
    (!is_explained && never_borrows(seen).is_none()).then(|| {
        say(
            "second-shaper",
            format!("{name} would give {set}, datagrams get {given}: {what} is on the way"),
        )
    })
}

/// A local shaper that the traffic does not pass, or that does not hold it.
pub(super) fn ignored(seen: &Seen) -> Answer {
    let (train, set) = (seen.train()?, seen.set_in_frames()?);
    if seen.given().is_none() && waited_for_rate(&train.rate_waits_per_call) {
        return None;
    }
    let came = seen.given().map_or(train.offered_bits_per_s.0, |given| given.low);
    (came > set * (1.0 + seen.tolerance())).then(|| {
        say(
            "ignored",
            format!(
                "{} would give {}, datagrams get {}: they don't pass the shaper, or the device does not keep to the rate",
                name(seen),
                BitRate(set),
                BitRate(came)
            ),
        )
    })
}

/// A rate that is held, but not at the sending host.
pub(super) fn elsewhere(seen: &Seen) -> Answer {
    let why = seen.shaper.as_ref().err()?;
    seen.given()?;
    if own_firewall(seen).is_some() {
        return None;
    }
    let what = match seen.train()?.kind {
        ShapingKind::None => return None,
        _ if seen.sender.before.text("qdisc.shapers_below").is_ok() => {
            "that holds the rate, or a router on the way, or the provider"
        }
        ShapingKind::Shaper => "a router on the way or the provider shapes, or a link is that slow",
        ShapingKind::Policer => "a router on the way or the provider polices",
    };
    Some(say("elsewhere", format!("{why}: {what}")))
}

/// Classes whose rates together exceed what the class above them has.
pub(super) fn children_above_parent(seen: &Seen) -> Answer {
    let class = seen.shaper()?.class.as_deref()?;
    above_parent(seen.sender, parents(seen.sender, class).first()?)
}

/// The same, of the classes right below `parent`. A class within its own rate sends whatever the classes above it have
/// (net/sched/sch_htb.c, `htb_class_mode`).
pub(crate) fn above_parent(sender: &Sender, parent: &str) -> Answer {
    let facts = sender.before;
    let rate = |class: &str| facts.number(&format!("class.{class}.rate_bits_per_s")).ok();
    let above = |class: &str| facts.text(&format!("class.{class}.parent")).ok();
    let all = facts
        .facts
        .keys()
        .filter_map(|name| name.strip_prefix("class.")?.strip_suffix(".rate_bits_per_s"));
    let children: f64 = all.filter(|child| above(child) == Some(parent)).filter_map(rate).sum();
    let has = rate(parent)?;
    (children > has * (1.0 + f64::EPSILON)).then(|| {
        say(
            "children-above-parent",
            format!(
                "the classes below {parent} are set to {} together, {parent} to {}: htb still gives each class its own \
                 rate. If all send, they exceed {parent}, and the next slower link decides who gets less",
                BitRate(children),
                BitRate(has)
            ),
        )
    })
}

/// A class that may borrow and does not.
pub(super) fn never_borrows(seen: &Seen) -> Answer {
    let facts = seen.sender.before;
    let class = seen.shaper()?.class.as_deref()?;
    let fact = |what: &str| facts.number(&format!("class.{class}.{what}")).ok();
    let (rate, ceil) = (fact("rate_bits_per_s")?, fact("ceil_bits_per_s")?);
    let given = seen.given()?.value;
    let at_rate = (given / rate - 1.0).abs() <= seen.tolerance();
    (ceil > rate * (1.0 + seen.tolerance()) && at_rate).then(|| {
        let why = match parents(seen.sender, class).first() {
            None => "no class above lends",
            Some(_) => "the class above has nothing to lend",
        };
        say(
            "never-borrows",
            format!(
                "class {class} may borrow up to {}, and gets only its rate of {}: {why}",
                BitRate(ceil),
                BitRate(rate)
            ),
        )
    })
}

/// The local shaper, with its place.
fn name(seen: &Seen) -> String {
    let Some(shaper) = seen.shaper() else { return "the shaper".into() };
    let class = shaper.class.as_ref().map(|class| format!("class {class} of "));
    let router = shaper.router.as_ref().map(|router| format!(" of the router {router}"));
    let (class, router) = (class.unwrap_or_default(), router.unwrap_or_default());
    format!("{class}{} on {}{router}", shaper.kind, shaper.device)
}
