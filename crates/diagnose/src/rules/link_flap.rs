//! # What it means
//! A link goes down and comes back during the transfer: that of a host, or one on the path.
//!
//! # Why it limits
//! Packets in flight are lost, and TCP notices by time-outs that grow while the link is down. A
//! switch may take seconds to forward again.
//!
//! # How it is seen
//! Counted: the carrier of the device at one end changed during the measurement. Or, without such a
//! change, the path delivered nothing of any flow until a time-out, although ten segments or more
//! were in flight, and delivered again later. Chance does not lose all of them. A queue that is
//! longer than the time-out loses none of them: they arrive without being sent again, and round trips
//! just after it take as long as the silence. If an interruption happened once, the finding is
//! possible. If it happened several times, the finding is likely, provided that an interrupted path
//! explains it clearly better than losses in runs or a limit that drops packets. This needs selective
//! acknowledgements: without them the sender does not know what arrived.
//!
//! # What to try
//! The cable, the transceiver, the port; energy-efficient Ethernet off. The kernel's log says when
//! it happened.
//!
//! # When it is wrong
//! One change before the first payload byte costs nothing. A router that stops for a moment looks like a link that does.
//!
//! # Source
//! include/uapi/linux/if_link.h (IFLA_CARRIER_CHANGES); Documentation/ABI/testing/sysfs-class-net.

use goodput_model::{Confidence, Finding, Missing, Place};

use crate::account::Outages;
use crate::bounds::next_after;
use crate::finding::{Draft, percent};
use crate::loss::outages_stand_out;
use crate::names::LINK_CARRIER_CHANGES;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::view::{Side, View};

/// Share of the time that must have been lost for it.
const MIN_LOST_TIME_SHARE: f64 = 0.02;

/// The rule.
pub const RULE: Rule = Rule {
    id: "link-flap",
    title: "A link goes down and comes back",
    refines: parts::DROPPING_LIMIT,
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "carrier_changes",
    witness_words: ("changes of the carrier", ""),
    source: include_str!("link_flap.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    match counted(view) {
        Ok(Some(finding)) => Ok(Some(finding)),
        quiet => on_path(view).ok().flatten().map_or(quiet, |finding| Ok(Some(finding))),
    }
}

/// A link of the path, of which no host counts the carrier.
fn on_path(view: &View) -> Result<Option<Finding>, Missing> {
    let outages = Outages::of(view)?;
    let share = outages.seconds() / view.sender.elapsed_s()?;
    if share < MIN_LOST_TIME_SHARE {
        return Ok(None);
    }
    let count = outages.spans.len();
    let stands_out = count > 1 && outages_stand_out(view, &outages.spans).unwrap_or(false);
    let confidence = if stands_out { Confidence::Likely } else { Confidence::Possible };
    let place = view.sender.place();
    let text = format!(
        "nothing was delivered {}, {} of the time, at last with {:.0} segments in flight (tcp_info delivered, unacked, total_rto)",
        if count == 1 { "once".into() } else { format!("{count} times") },
        percent(share),
        outages.in_flight_segments
    );
    Draft::new(RULE.id, Place::Path, confidence, "a link on the path, which goes down and up")
        .share(share)
        .saw(place, "outages", count as f64, text)
        .predicted(next_after(view, &[RULE.id]))
        .advice("look for the link that goes down: the carrier counts and logs of the switches and routers on the path")
        .found()
}

/// The link of a host, by its carrier.
fn counted(view: &View) -> Result<Option<Finding>, Missing> {
    let counted = view.sides().map(|side| changes(side).map(|changes| (changes, side)));
    if let [Err(why), Err(_)] = counted {
        return Err(why);
    }
    let most = counted.into_iter().flatten().reduce(|a, b| if b.0 > a.0 { b } else { a });
    let Some((changes, side)) = most.filter(|(changes, _)| *changes > 0.0) else { return Ok(None) };
    let still = view.receiver.still_share()?;
    let device = side.device().unwrap_or("the device").to_owned();
    // Away for less than a sample, it shows only in what TCP had to wait for.
    let share = still.max(view.sender.timeout_share().unwrap_or(0.0)).min(1.0);
    let confidence =
        if share >= MIN_LOST_TIME_SHARE { Confidence::Certain } else { Confidence::Possible };
    Draft::new(RULE.id, side.place(), confidence, format!("the link of {device}, which goes down and up"))
        .share(share)
        .saw(side.place(), RULE.witness_name, changes, format!("the carrier of {device} changed {changes:.0} times (/sys/class/net/{device}/carrier_changes)"))
        .saw(view.receiver.place(), "still_percent", still * 100.0, format!("nothing arrived {} of the time", percent(still)))
        .saw_if(view.sender.place(), "timeout_percent", view.sender.timeout_share().map(|s| s * 100.0), |p| {
            format!("time-outs and their recovery took {} of the time", percent(p / 100.0))
        })
        .predicted(next_after(view, &[RULE.id]))
        .command(
            side.place(),
            format!("journalctl -k --grep '{device}.*[Ll]ink'"),
            "shows when; then look at the cable, the transceiver, the port",
        )
        .command(
            side.place(),
            format!("ethtool --set-eee {device} eee off"),
            "energy-efficient Ethernet off",
        )
        .permanent(
            "/etc/udev/rules.d/90-eee.rules",
            format!("ACTION==\"add\", SUBSYSTEM==\"net\", KERNEL==\"{device}\", RUN+=\"/usr/sbin/ethtool --set-eee {device} eee off\""),
        )
        .permanent("/boot/loader.conf (FreeBSD)", "hw.em.eee_setting=1")
        .found()
}

fn changes(side: &Side) -> Result<f64, Missing> {
    Ok(side.grown(LINK_CARRIER_CHANGES)? as f64)
}

/// Changes of the carrier at either end.
fn witness(view: &View) -> Result<f64, Missing> {
    match view.sides().map(changes) {
        [Err(why), Err(_)] => Err(why),
        known => Ok(known.into_iter().flatten().sum()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::{Far, Near};

    #[test]
    fn fires_at_the_end_that_saw_it() {
        let case = Case::rto_bound().fact(Near, LINK_CARRIER_CHANGES, 2u64);
        let finding = fires(&RULE, case.grows(Far, LINK_CARRIER_CHANGES, 8));
        assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Certain));
    }

    #[test]
    fn one_that_was_not_felt_is_only_possible() {
        let finding = fires(&RULE, Case::healthy().grows(Near, LINK_CARRIER_CHANGES, 2));
        assert_eq!(finding.confidence, Confidence::Possible);
    }

    /// What follows two silences.
    #[derive(Clone, Copy)]
    struct Then {
        /// Segments that were sent again after each; `None` if the kernel does not report that.
        again: Option<u64>,
        /// Segments that are lost, and not yet sent again.
        lost: u64,
        segments_per_ack: u64,
        /// The smoothed round trip so many samples after the end of a silence, microseconds.
        rtt_us: fn(u64) -> u64,
    }

    /// As long as nothing is in the way.
    const SHORT_US: u64 = 58_000;
    /// Longer than the silences of 0.3 s.
    const LONG_US: u64 = 640_000;
    /// Slow start at 1.5 Mbit/s: the queue is longer than the first time-out of 0.2 s, and stays long.
    const QUEUE: Then = Then { again: Some(1), lost: 0, segments_per_ack: 2, rtt_us: |_| LONG_US };

    /// So many segments are in flight, and nothing arrives in samples 10 to 12 and 20 to 22, until a time-out each.
    fn interrupted(in_flight: u64, then: Then) -> Case {
        Case::path_rate().tcp(move |tcp, number| {
            let stopped = [10u64, 20].map(|from| number.saturating_sub(from).min(3));
            let delivered = 1_000 * (number - stopped[0] - stopped[1]);
            let ended = u64::from(number >= 13) + u64::from(number >= 23);
            let since = number.saturating_sub(3 + 10 * ended);
            tcp.unacked_segments = Some(in_flight);
            (tcp.sacked_segments, tcp.lost_segments) = (Some(0), Some(0));
            tcp.rttvar_us = Some(1000);
            tcp.delivered_segments = Some(delivered);
            tcp.segs_in = Some(delivered / then.segments_per_ack);
            tcp.total_rto = Some(ended);
            tcp.total_retrans_segments = then.again.map(|again| again * ended);
            if ended > 0 && since > 0 {
                (tcp.lost_segments, tcp.rtt_us) = (Some(then.lost), Some((then.rtt_us)(since)));
            }
        })
    }

    #[test]
    fn a_path_that_delivers_nothing_of_much_is_interrupted() {
        let lost = |segments| {
            let again = Some(segments);
            interrupted(segments, Then { again, rtt_us: |_| SHORT_US, ..QUEUE })
        };
        let finding = fires(&RULE, lost(40));
        assert_eq!((finding.end, finding.confidence), (Place::Path, Confidence::Likely));
        assert_eq!(finding.evidence[0].value, 2.0);
        quiet(&RULE, lost(4));
    }

    #[test]
    fn a_queue_longer_than_the_time_out_is_no_interruption() {
        quiet(&RULE, interrupted(112, QUEUE));
    }

    #[test]
    fn what_is_not_shown_to_have_waited_in_a_queue_was_interrupted() {
        let others = [
            // A link held all of it while it was down.
            Then { rtt_us: |_| SHORT_US, ..QUEUE },
            // Acknowledgements of what it held carry the time for which it was held,
            Then { rtt_us: |since| if since == 1 { LONG_US } else { SHORT_US }, ..QUEUE },
            // which fades from the smoothed round trip by an eighth with each that follows.
            Then { rtt_us: fading, segments_per_ack: 1_000, ..QUEUE },
            // A queue of much later.
            Then { rtt_us: |since| if since < 9 { SHORT_US } else { LONG_US }, ..QUEUE },
            // It is long, but half of what was in flight is lost.
            Then { lost: 60, ..QUEUE },
            Then { again: Some(60), ..QUEUE },
            Then { again: None, ..QUEUE },
        ];
        for (number, then) in others.into_iter().enumerate() {
            let finding = fires(&RULE, interrupted(112, then));
            assert_eq!(finding.evidence[0].value, 2.0, "case {number}");
        }
    }

    fn fading(since: u64) -> u64 {
        let left = 0.875f64.powi(since as i32 - 1);
        SHORT_US + ((LONG_US - SHORT_US) as f64 * left) as u64
    }

    #[test]
    fn stays_quiet_while_the_carrier_stands() {
        quiet(&RULE, Case::rto_bound().fact(Near, LINK_CARRIER_CHANGES, 2u64));
    }

    #[test]
    fn cannot_tell_without_the_count() {
        cannot_tell(&RULE, Case::empty());
    }
}
