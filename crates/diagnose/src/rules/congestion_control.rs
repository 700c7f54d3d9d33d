//! # What it means
//! The congestion control does not fill this path: after a loss it takes longer to recover than the
//! test lasts, or it holds back for another reason of its own.
//!
//! # Why it limits
//! At most one congestion window can be in flight in each round trip. Reno adds one segment in each
//! round trip: after one loss it needs half a window of round trips, minutes on a long fast path.
//! CUBIC is faster, but not by much below its old window.
//!
//! # How it is seen
//! Most of the time the congestion window was full, past its slow-start threshold, while nothing
//! was lost and no queue stood on the path (tcp_info snd_cwnd, snd_ssthresh, unacked, rtt). There
//! was room, and the window did not use it. Losses began at most once in the measured window. The
//! finding is likely if TCP itself had seen a much higher delivery rate before.
//!
//! # What to try
//! BBR, which probes for the path's rate again after each loss. For Reno, CUBIC also helps.
//!
//! # When it is wrong
//! If losses come again and again, they are the cause, and path-loss says so. This rule sees the
//! aftermath of a loss; the loss itself may come from a queue too short for the path. A window that
//! never left slow start is startup. A window whose threshold was there from the start is
//! cached-metrics.
//!
//! # Source
//! RFC 5681 section 3.1; RFC 9438 sections 4.2 and 4.4; Cardwell, Cheng, Gunn, Yeganeh, Jacobson 2016.

use goodput_model::{BitRate, Change, Confidence, Finding, Known, Missing};

use crate::account::{held, held_share};
use crate::bounds::next_after;
use crate::change::other_control;
use crate::finding::{Draft, percent, rate, time};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::MIN_SPARE_RATE_RATIO;
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "congestion-control",
    title: "The congestion control does not fill the path",
    refines: parts::LOSSES,
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "crawling_percent",
    witness_words: ("time crawling", " %"),
    source: include_str!("congestion_control.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.needs_tcp()?;
    let held = held(view, &[parts::CUT_WINDOW])?;
    let share = held.share();
    if !view.backs_off_at_loss()? || !held.is_most() || !view.sender.hardly_loses()? {
        return Ok(None);
    }
    let name = view.congestion()?;
    let room = view.sender.best_delivery_rate()? >= MIN_SPARE_RATE_RATIO * view.goodput()?;
    // CUBIC is what most hosts have: if it crawls, the loss before it is as much to blame.
    let confidence = match room && name != "cubic" {
        true => Confidence::Likely,
        false => Confidence::Possible,
    };
    draft(view, name, share, confidence)?.changes(changes(view)).found()
}

fn draft(view: &View, name: &str, share: f64, confidence: Confidence) -> Result<Draft, Missing> {
    let (side, place) = (&view.sender, view.sender.place());
    let (rtt, last, best) = (side.rtt_s()?, side.last_tcp()?, side.best_delivery_rate()?);
    let segments = last.snd_cwnd_segments()?;
    let held = format!(
        "{name} kept its window full {} of the time, though nothing was lost and no queue stood \
         (tcp_info unacked, ca_state, rtt)",
        percent(share)
    );
    let window = format!(
        "the window ended at {} segments of {:.0} bytes, past a threshold of {}: {} in each {}",
        segments,
        side.mss_bytes()?,
        last.snd_ssthresh_segments()?,
        rate(segments as f64 * side.mss_bytes()? * 8.0 / rtt),
        time(rtt)
    );
    let goodput = view.goodput()?;
    let draft = Draft::new(RULE.id, place, confidence, format!("the congestion control, {name}"))
        .share(share)
        .saw(place, RULE.witness_name, share * 100.0, held)
        .saw(place, "tcp_info.snd_cwnd_segments", segments as f64, window);
    Ok(match best >= MIN_SPARE_RATE_RATIO * goodput {
        true => draft
            .saw(
                place,
                "best_delivery_bits_per_s",
                best,
                format!("earlier, {} were delivered (tcp_info delivery_rate)", rate(best)),
            )
            .predicted(Known::Value(BitRate(best))),
        false => draft.predicted(next_after(view, &[RULE.id])),
    })
}

fn changes(view: &View) -> Vec<Change> {
    let better = [
        ("bbr", "BBR probes for the path's rate again after each loss"),
        ("cubic", "CUBIC recovers its window in seconds, whatever the round-trip time"),
    ];
    better.into_iter().flat_map(|(name, why)| other_control(view, name, why)).collect()
}

/// Share of the time that the congestion window crawled, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    view.needs_tcp()?;
    Ok(held_share(view, &[parts::CUT_WINDOW])? * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Near;
    use goodput_model::Place;

    #[test]
    fn reno_on_a_long_fast_path_is_named_and_others_are_offered() {
        let finding = fires(&RULE, Case::crawling());
        assert_eq!((finding.end, finding.confidence), (Place::Near, Confidence::Likely));
        let changes: Vec<_> = finding.changes.iter().map(|c| c.as_argument()).collect();
        assert_eq!(changes, ["socket.congestion=reno,bbr", "socket.congestion=reno,cubic"]);
        assert_eq!(finding.predicted_bits_per_s.value().unwrap().to_string(), "190 Mbit/s");
    }

    #[test]
    fn the_route_s_choice_counts_before_the_host_s() {
        let case = Case::crawling().plan(|plan| plan.socket.congestion = None);
        let finding = fires(&RULE, case.fact(Near, "route.congctl", "vegas"));
        assert_eq!(finding.summary, "the congestion control, vegas");
    }

    #[test]
    fn a_loss_long_ago_is_not_what_limits_and_one_that_goes_on_is() {
        let first = |case: Case| diagnose(&case.evidence()).findings[0].rule.clone();
        let once = Case::crawling().tcp(|tcp, n| tcp.total_retrans_segments = Some(40 * n.min(1)));
        assert_eq!(first(once), "congestion-control");
        assert_eq!(first(Case::crawling().retransmitted(0.02)), "policer");
    }

    #[test]
    fn with_cubic_or_without_a_faster_moment_it_is_only_possible() {
        let cubic = fires(&RULE, Case::crawling().congestion("cubic"));
        assert_eq!(cubic.confidence, Confidence::Possible);
        let slow = Case::crawling().tcp(|tcp, _| tcp.delivery_rate_bytes_per_s = Some(15_250_000));
        assert_eq!(fires(&RULE, slow).confidence, Confidence::Possible);
    }

    #[test]
    fn losses_that_keep_coming_bbr_and_a_full_path_are_others() {
        let lossy = Case::crawling().tcp(|tcp, n| tcp.total_retrans_segments = Some(n / 8));
        quiet(&RULE, lossy);
        quiet(&RULE, Case::crawling().congestion("bbr"));
        quiet(&RULE, Case::path_rate().congestion("reno"));
        quiet(&RULE, Case::path_loss());
    }

    #[test]
    fn cannot_tell_for_datagrams() {
        cannot_tell(&RULE, Case::healthy_udp());
    }
}
