//! What else the settings of a shaper hold: classes that nothing enters, turns that are too short, a second bucket.

use goodput_ceiling::bucket::{PLAUSIBLE_LATENESS_S, SUPER_PACKET_BYTES};
use goodput_model::BitRate;

use super::{Answer, Seen, say};

/// Traffic that no class of htb takes: htb sends it at once, past every rate (net/sched/sch_htb.c, `htb_enqueue`). Its
/// counter counts super-packets as one.
pub(super) fn past_htb(seen: &Seen) -> Answer {
    let (sender, facts) = (seen.sender, seen.sender.before);
    seen.shaper.as_ref().err()?;
    let is_htb = facts.text("qdisc.kind").is_ok_and(|kind| kind == "htb");
    let direct = facts.grown(sender.after, "class.direct_packets").ok()?;
    let arrived = *sender.arrived_bytes.as_ref().ok()? as f64;
    let carried = direct > 0 && direct as f64 * SUPER_PACKET_BYTES >= arrived;
    (is_htb && carried).then(|| {
        let device = facts.text("link.device").unwrap_or("the device");
        let text = format!(
            "no class of htb on {device} takes this traffic: its filters name none, and {}. htb sent {direct} packets past \
             every rate: give it a class, or set `default` to one",
            default(facts.text("class.default").ok(), seen)
        );
        say("past-htb", text)
    })
}

/// What is wrong with the class for all that no filter names, in words.
fn default(class: Option<&str>, seen: &Seen) -> String {
    let exists = |class: &str| seen.sender.before.count(&format!("class.{class}.level")).is_ok();
    match class {
        None => "its default is unknown".into(),
        Some("none") => "it has no default".into(),
        Some(class) if exists(class) => format!("its default {class} did not count it"),
        Some(class) => format!("its default {class} does not exist"),
    }
}

/// A class whose turn is shorter than a frame (net/sched/sch_htb.c, `htb_dequeue_tree`: the deficit of a class grows by its
/// quantum a turn).
pub(super) fn small_quantum(seen: &Seen) -> Answer {
    let class = seen.shaper()?.class.as_deref()?;
    let quantum = seen.sender.before.number(&format!("class.{class}.quantum_bytes")).ok()?;
    let frame = seen.largest_frame()?;
    (quantum > 0.0 && quantum < frame).then(|| {
        say(
            "small-quantum",
            format!(
                "class {class} has a quantum of {quantum:.0} bytes, less than a frame of {frame:.0}: what it borrows is not \
                 shared as the quanta say; set a quantum of a frame or more"
            ),
        )
    })
}

/// A peak rate holds a token bucket down as well, with a bucket of its own (tc-tbf(8), `mtu`). It explains what is missing if no
/// frame would have to be later than timers are.
pub(super) fn peak_rate(seen: &Seen) -> Answer {
    let shaper = seen.shaper()?;
    let peak = seen.sender.before.number("qdisc.peak_rate_bits_per_s").ok()?;
    let lacks = seen.shortfall().or_else(|| seen.tcp_shortfall())?;
    let gives = shaper.rate_bits_per_s.0 * (1.0 - lacks);
    let late_s = shaper.counted_frame_bytes.0 as f64 * 8.0 * (1.0 / gives - 1.0 / peak);
    let timers = seen.enough.and_then(|enough| enough.timers.value());
    let longest_s = timers.map_or(0.0, |timers| timers.longest_us / 1e6);
    (late_s <= longest_s.max(PLAUSIBLE_LATENESS_S)).then(|| say(
        "peak-rate",
        format!(
            "{} on {} also holds a peak rate of {}, whose own bucket (mtu) late timers waste like the other: {:.1} % of the \
             rate are missing; leave the peak rate out, or raise its mtu",
            shaper.kind,
            shaper.device,
            BitRate(peak),
            lacks * 100.0
        ),
    ))
}
