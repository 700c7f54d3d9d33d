//! # What it means
//! A router on the path marks packets as congested, and the sender slows down for each mark as it
//! would for a loss.
//!
//! # Why it limits
//! Marks cut the congestion window. At a bottleneck that is right. If no queue stands, the marker's
//! threshold is too low, or the marker is broken.
//!
//! # How it is seen
//! The receiver counted at least three marked packets, and at least twice as many as were lost. The
//! congestion control backs off; its window was cut and then full most of the time. No queue
//! stretches the round trips.
//!
//! # What to try
//! Compare the marking threshold of the routers' active queue management with one round trip at
//! their rate. Without ECN (`net.ipv4.tcp_ecn=0`) the same router must drop packets or let them
//! pass.
//!
//! # When it is wrong
//! A queue management that keeps its queue short at the link's rate also marks; then the rate is a
//! plateau, and the finding is only possible.
//!
//! # Source
//! RFC 3168; RFC 8511; RFC 7567 section 4; include/uapi/linux/tcp.h (tcpi_delivered_ce).

use goodput_model::{Change, Confidence, Family, Finding, Missing, Place};

use crate::account::path_share;
use crate::bounds::next_after;
use crate::change::of_host;
use crate::finding::{Draft, percent, time};
use crate::framing::family;
use crate::names::{RECEIVED_CE, TCP_ECN};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::{MAX_PLATEAU_SPREAD_RATIO, MIN_LIMITING_TIME_SHARE};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "ecn-marking",
    title: "A router marks packets, and the sender slows down",
    refines: parts::LOSSES,
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "marked_percent",
    witness_words: ("packets marked", " %"),
    source: include_str!("ecn_marking.rs"),
};

/// Fewer marks prove nothing.
const MIN_MARKS: f64 = 2.0;
/// Marks for each lost packet from which the marks are what cuts the window.
const MIN_MARKS_PER_LOSS: f64 = 2.0;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.needs_tcp()?;
    let answered = view.sender.marked_segments()?;
    // The receiving host counts marks of IPv4 only (InCEPkts of /proc/net/netstat), which says nothing of IPv6.
    let is_counted = family(view)? == Family::V4;
    let counted = view.receiver.marks_received().ok().filter(|_| is_counted);
    let marks = counted.map_or(answered, |marks| marks.min(answered));
    let lost = view.sender.retransmitted_segments()?;
    if marks < MIN_MARKS || marks < MIN_MARKS_PER_LOSS * lost || !view.backs_off_at_loss()? {
        return Ok(None);
    }
    let held = path_share(view)?;
    let full = view.sender.cut_window_share()?;
    if held < MIN_LIMITING_TIME_SHARE
        || full < MIN_LIMITING_TIME_SHARE
        || view.sender.queue_stands()?
    {
        return Ok(None);
    }
    let plateau = view.receiver.plateau().or_else(|_| view.sender.plateau())?;
    let steady = plateau.spread < MAX_PLATEAU_SPREAD_RATIO;
    let confidence = if steady { Confidence::Possible } else { Confidence::Likely };
    let (place, share) = (view.sender.place(), marks / view.sender.delivered_segments()?.max(1.0));
    let (loaded, base) = (view.sender.rtt_s()?, view.sender.min_rtt_s()?);
    Draft::new(RULE.id, Place::Path, confidence, "a router's congestion marks")
        .share(held)
        .saw(view.receiver.place(), RECEIVED_CE, marks, format!("{marks:.0} packets ({}) came with a congestion mark; {lost:.0} were lost", percent(share)))
        .saw(place, "cut_window_percent", full * 100.0, format!("the congestion window was full {} of the time after it was cut", percent(full)))
        .saw(place, "rtt_inflation", loaded / base, format!("no queue stands: round trips took {}, {} at best", time(loaded), time(base)))
        .predicted(next_after(view, &[RULE.id]))
        .changes(change(view))
        .advice("check the marking threshold of the routers on the path (tc -s qdisc: fq_codel ce_threshold, red, dualpi2)")
        .found()
}

fn change(view: &View) -> Option<Change> {
    let now = view.sender.words(TCP_ECN).filter(|now| now == "1")?;
    let why = "without ECN a router drops packets or lets them pass";
    Some(of_host(&view.sender, TCP_ECN, None, (Some(now), "0".into()), why))
}

/// Segments acknowledged with word of a mark, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    Ok(view.sender.marked_segments()? / view.sender.delivered_segments()?.max(1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::{Far, Near};

    #[test]
    fn fires_where_marks_cut_the_window() {
        let finding = fires(&RULE, Case::ecn_marking());
        assert_eq!((finding.end, finding.confidence), (Place::Path, Confidence::Likely));
        let asked = Case::ecn_marking().fact(Near, TCP_ECN, "1");
        assert_eq!(fires(&RULE, asked).changes[0].to, "0");
    }

    #[test]
    fn no_marks_counted_are_none_of_ipv4_and_say_nothing_of_ipv6() {
        let uncounted = || Case::ecn_marking().grows(Far, RECEIVED_CE, 0);
        quiet(&RULE, uncounted());
        let finding = fires(&RULE, uncounted().tcp(|tcp, _| tcp.snd_mss_bytes = Some(1428)));
        assert!(finding.evidence[0].value > 7.0, "{finding:?}");
    }

    #[test]
    fn an_active_queue_at_its_rate_is_only_possible() {
        let case = Case::ecn_marking().wobble(0.0);
        assert_eq!(fires(&RULE, case).confidence, Confidence::Possible);
    }

    #[test]
    fn look_alikes_stay_quiet() {
        quiet(&RULE, Case::path_loss());
        quiet(&RULE, Case::ecn_marking().congestion("bbr"));
        quiet(&RULE, Case::ecn_marking().retransmitted(0.01));
        quiet(&RULE, Case::ecn_marking().grows(Far, RECEIVED_CE, 1));
        quiet(&RULE, Case::ecn_marking().tcp(|tcp, _| tcp.rtt_us = Some(40_000)));
    }

    #[test]
    fn cannot_tell_on_an_old_kernel() {
        cannot_tell(&RULE, Case::ecn_marking().tcp(|tcp, _| tcp.delivered_ce_segments = None));
    }
}
