//! # What it means
//! The card delays its interrupts so long that round trips grow, or so little that they fill a CPU.
//!
//! # Why it limits
//! Each end's delay is part of every round trip, so goodput falls with it if a window limits. An
//! interrupt for each packet costs a microsecond of CPU or more, which is lost for work.
//!
//! # How it is seen
//! Too long: a window or buffer holds the sender, and the delays of both cards are at least 20 % of
//! the smallest round-trip time. Too short: there were fewer than two packets for each of the card's
//! interrupts, these took at least 4.8 % of a CPU's time (as the kernel counts it, at least 1 µs
//! each), and that end's CPU limits.
//!
//! # What to try
//! Adaptive coalescing, or a delay of 16 to 64 µs.
//!
//! # When it is wrong
//! A card with adaptive coalescing shortens its delay on its own, so the value that goodput reads
//! is an upper bound; the finding is then only possible. A larger window also cures the first case,
//! and does so better on long paths. The authors had no card with coalescing.
//!
//! # Source
//! ethtool(8) `-c`, `-C`; Documentation/networking/napi.rst; include/uapi/linux/ethtool.h (`struct
//! ethtool_coalesce`); em(4) of FreeBSD (`rx_int_delay`).

use goodput_model::{BitRate, Change, Confidence, Finding, Known, Missing};

use crate::account::held_share;
use crate::bounds::next_after;
use crate::change::of_host;
use crate::cpu_bound::cpu_bound;
use crate::finding::{Draft, percent, time};
use crate::offers::adaptive_interrupts;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::{MIN_COSTLY_SHARE, MIN_CPU_SHARE_OF_WALL_TIME, MIN_LIMITING_TIME_SHARE};
use crate::view::{Side, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "interrupt-coalescing",
    title: "The card interrupts too late or too often",
    refines: &[parts::RECEIVE_WINDOW, parts::SENDING_HOST, parts::RECEIVING_HOST, parts::PATH_RATE],
    depth: Depth::Beside,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "waits_of_round_trip_or_interrupts_for_each_packet_percent",
    witness_words: (
        "waits as a share of the round trip, or interrupts as a share of the packets",
        " %",
    ),
    source: include_str!("interrupt_coalescing.rs"),
};

/// Part of the smallest round-trip time from which the cards' waits matter.
const MIN_DELAY_SHARE_OF_RTT: f64 = 0.2;
/// What an interrupt costs a CPU at least, seconds. Chosen, not measured: a fast one needs about a microsecond to enter and leave
/// it and to schedule NAPI. Where the kernel counts more, that is used.
const LEAST_INTERRUPT_S: f64 = 1e-6;
/// Packets for each interrupt below which they are not joined.
const MAX_PACKETS_PER_INTERRUPT: f64 = 2.0;
/// Wait that is proposed, microseconds: in the middle of what drivers choose.
const WAIT_US: u64 = 32;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let side = &view.receiver;
    // If the card has no interrupts to put off, there is nothing to look at.
    if !side.on_hardware()? {
        return Ok(None);
    }
    match too_often(view, side)? {
        Some(found) => Ok(Some(found)),
        None => too_late(view),
    }
}

/// How long one end's card waits before it reports received packets, seconds; none if it does not wait.
fn wait_s(side: &Side) -> f64 {
    side.count("coalescing.rx_us").map_or(0.0, |us| us / 1e6)
}

fn too_late(view: &View) -> Result<Option<Finding>, Missing> {
    if !view.is_tcp() {
        return Ok(None);
    }
    let waits = view.sides().map(|side| wait_s(side));
    let (sum, rtt) = (waits[0] + waits[1], view.sender.min_rtt_s()?);
    let window = held_share(view, parts::WINDOWS)?;
    if sum < MIN_DELAY_SHARE_OF_RTT * rtt || window < MIN_LIMITING_TIME_SHARE {
        return Ok(None);
    }
    let longer = if waits[0] > waits[1] { &view.sender } else { &view.receiver };
    let confidence = if adapts(longer) { Confidence::Possible } else { Confidence::Likely };
    let place = longer.place();
    let text = format!("the cards delay interrupts by {} in total (ethtool -c)", time(sum));
    // Without the waits a round trip is as much shorter, and the window goes as much more often.
    let gain = (rtt > sum).then(|| BitRate(view.goodput_or_zero() * rtt / (rtt - sum)));
    Draft::new(RULE.id, place, confidence, "interrupts delayed by the card")
        .share(window)
        .saw(place, "coalescing_us", sum * 1e6, text)
        .saw(place, "min_rtt_us", rtt * 1e6, format!("the smallest round trip took {}", time(rtt)))
        .saw(
            place,
            "window_share",
            window,
            format!("a window or buffer held the sender {}", percent(window)),
        )
        .predicted(gain.map_or(Known::missing("the delays are the whole round trip"), Known::Value))
        .changes(shorter(longer))
        .changes(adaptive_interrupts(longer))
        .found()
}

fn too_often(view: &View, side: &Side) -> Result<Option<Finding>, Missing> {
    let Ok((cpu, part)) = side.largest_part("interrupts.device") else { return Ok(None) };
    let interrupts = side.grown("interrupts.device")? as f64;
    let each_s = interrupts * part / side.span_s()?;
    let packets = side.grown("link.rx_packets")? as f64 / interrupts;
    let counted = side.grown(&format!("cpu.{cpu}.irq_us")).unwrap_or(0) as f64 / 1e6;
    let takes = (each_s * LEAST_INTERRUPT_S).max(counted / side.span_s()?);
    let limits = cpu_bound(side)?.is_some() || side.softirq_share()? >= MIN_CPU_SHARE_OF_WALL_TIME;
    if takes < MIN_COSTLY_SHARE || packets >= MAX_PACKETS_PER_INTERRUPT || !limits {
        return Ok(None);
    }
    let place = side.place();
    let text =
        format!("the card interrupted CPU {cpu} {each_s:.0} times a second (/proc/interrupts)");
    Draft::new(RULE.id, place, Confidence::Likely, "an interrupt for nearly every packet")
        .saw(place, "interrupts_per_s", each_s, text)
        .saw(place, "packets_for_each", packets, format!("{packets:.1} packets for each"))
        .predicted(next_after(view, &[RULE.id, "receiver-cpu"]))
        .changes(longer(side))
        .changes(adaptive_interrupts(side))
        .found()
}

fn adapts(side: &Side) -> bool {
    side.text("coalescing.rx_adaptive").is_ok_and(|adaptive| adaptive == "on")
}

fn shorter(side: &Side) -> Option<Change> {
    let now = side.count("coalescing.rx_us").ok()? as u64;
    let wanted = (now / 8).min(WAIT_US);
    let values = (Some(now.to_string()), wanted.to_string());
    let why = "a shorter delay shortens each round trip";
    (now > 0).then(|| of_host(side, "coalescing.rx_usecs", side.device().ok(), values, why))
}

fn longer(side: &Side) -> Option<Change> {
    let now = side.count("coalescing.rx_us").ok()? as u64;
    let values = (Some(now.to_string()), WAIT_US.to_string());
    let why = "one interrupt for all packets of this time";
    (now < WAIT_US).then(|| of_host(side, "coalescing.rx_usecs", side.device().ok(), values, why))
}

/// What the cards' waits take of the shortest round trip, or the receiver's interrupts for each packet, whichever is
/// more, percent: each is the other's remedy, and the larger one is what is too much.
fn witness(view: &View) -> Result<f64, Missing> {
    let waits = || -> Result<f64, Missing> {
        let us = view.sides().map(|side| side.count("coalescing.rx_us"));
        let known: Vec<f64> = us.into_iter().flatten().collect();
        let base_us = view.sender.min_rtt_s()? * 1e6;
        match known.is_empty() {
            true => Err(Missing::because("the cards' waits are unknown")),
            false => Ok(known.iter().sum::<f64>() / base_us),
        }
    };
    let interrupts = view.receiver.grown("interrupts.device");
    let for_each = interrupts.and_then(|n| view.receiver.per_million_arrived(n as f64 / 1e6));
    let most = [waits(), for_each].into_iter().flatten().reduce(f64::max);
    let unknown = "neither interrupt delays nor interrupt counts of a card are known";
    Ok(most.ok_or_else(|| Missing::because(unknown))? * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::{Far, Near};

    /// 64 KiB of window at 250 µs, of which 100 µs are waits.
    fn late() -> Case {
        let case = Case::receive_window().goodput(2e9).tcp(|tcp, _| {
            tcp.rtt_us = Some(255);
            tcp.min_rtt_us = Some(250);
            tcp.snd_wnd_bytes = Some(65_536);
        });
        case.fact(Far, "coalescing.rx_us", 50u64).fact(Near, "coalescing.rx_us", 50u64)
    }

    fn often() -> Case {
        let case = Case::healthy().cpu(Far, 0.95, 0.99).fact(Far, "coalescing.rx_us", 1u64);
        case.grows(Far, "interrupts.device", 300_000)
            .grows(Far, "interrupts.device.0", 300_000)
            .grows(Far, "link.rx_packets", 330_000)
    }

    #[test]
    fn waits_that_lengthen_a_short_round_trip_are_named_with_their_gain() {
        let finding = fires(&RULE, late());
        let gain = finding.predicted_bits_per_s.value().unwrap().0 / 2e9;
        assert!((gain - 250.0 / 150.0).abs() < 0.01, "{gain}");
        assert_eq!(finding.changes[0].as_argument(), "far:coalescing.rx_usecs@eth0=50,6");
        let adaptive = fires(&RULE, late().fact(Far, "coalescing.rx_adaptive", "on"));
        assert_eq!(adaptive.confidence, Confidence::Possible);
    }

    #[test]
    fn an_interrupt_for_each_packet_is_named() {
        let finding = fires(&RULE, often());
        assert_eq!(finding.changes[0].as_argument(), "far:coalescing.rx_usecs@eth0=1,32");
    }

    /// A CPU on which each interrupt takes longer: 10 000 a second are enough.
    #[test]
    fn on_a_slow_cpu_fewer_interrupts_take_as_much() {
        let few = |irq_us: u64| {
            let case = often().grows(Far, "interrupts.device", 42_000);
            let case = case.grows(Far, "interrupts.device.0", 42_000);
            case.grows(Far, "link.rx_packets", 46_000).grows(Far, "cpu.0.irq_us", irq_us)
        };
        fires(&RULE, few(420_000));
        quiet(&RULE, few(20_000));
    }

    #[test]
    fn the_witness_falls_under_either_change() {
        let read = |case: Case| witness(&View::new(&case.evidence())).unwrap();
        // 50 µs less at either card, and three times the interrupts.
        let busy = |case: Case, interrupts| {
            let case = case.grows(Far, "link.rx_packets", 1_000_000);
            case.grows(Far, "interrupts.device", interrupts)
        };
        let shorter = late().fact(Far, "coalescing.rx_us", 6u64).tcp(|tcp, _| {
            tcp.min_rtt_us = Some(206);
        });
        assert!(read(busy(shorter, 150_000)) < read(busy(late(), 50_000)));
        // Delays of 32 µs on a path of 20 ms, and a twentieth of the interrupts.
        let longer = often().fact(Far, "coalescing.rx_us", 32u64);
        assert!(read(longer.grows(Far, "interrupts.device", 16_000)) < read(often()));
    }

    #[test]
    fn stays_quiet_where_neither_holds_the_flow_back() {
        quiet(&RULE, Case::receive_window().fact(Far, "coalescing.rx_us", 50u64));
        let open = |tcp: &mut goodput_model::TcpInfo, _| {
            (tcp.snd_wnd_bytes, tcp.unacked_segments) = (Some(1 << 20), Some(100));
        };
        quiet(&RULE, late().shares(1.0, 0.0, 0.0).tcp(open));
        quiet(&RULE, often().cpu(Far, 0.3, 0.4));
        quiet(&RULE, often().grows(Far, "link.rx_packets", 3_300_000));
        quiet(&RULE, late().without_links());
    }

    #[test]
    fn cannot_tell_without_the_device() {
        cannot_tell(&RULE, late().without(Far, "link"));
    }
}
