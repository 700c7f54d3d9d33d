//! # What it means
//! The sending program does not supply data fast enough.
//!
//! # Why it limits
//! TCP can't send what was not written. With goodput's own `--rate` that is intended.
//!
//! # How it is seen
//! The writer paused on purpose for at least half of the time, or waited for its `--rate` and
//! nothing else. Or the writer almost never waited for space in the send buffer, used little CPU and was
//! not throttled, and the connection ran dry.
//!
//! # What to try
//! Raise or drop `--rate`. In other programs, find what the program waits for: its source, a lock,
//! another peer.
//!
//! # When it is wrong
//! A writer that waits for a CPU on a crowded host looks the same if the host does not report its
//! CPUs. The kernel's `busy` time shows nothing here: with pauses shorter than a round trip it is
//! 100 %.
//!
//! # Source
//! net/ipv4/tcp_rate.c (`tcp_rate_check_app_limited`); net/ipv4/tcp_output.c (chronographs).

use goodput_model::{Confidence, Finding, Missing};

use crate::account::held_share;
use crate::bounds::next_after;
use crate::cpu_bound::{cpu_bound, is_throttled, stopped};
use crate::finding::{Draft, percent, rate, rate_argument};
use crate::others_on_cpu::others_delay_the_pace;
use crate::parts;
use crate::remedy::Again;
use crate::rule::{Depth, Rule};
use crate::thresholds::{MAX_WAIT_SHARE_OF_SLOW_THREAD, MIN_COSTLY_SHARE, MIN_LIMITING_TIME_SHARE};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "sender-application",
    title: "The sending program supplies too little data",
    refines: &[parts::SENDING_PROGRAM],
    depth: Depth::Limiter,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "application_percent",
    witness_words: ("time waiting for the sending application", " %"),
    source: include_str!("sender_application.rs"),
};

/// Share of the samples from which a state of the thread is part of the evidence, percent.
const MIN_SHOWN_PERCENT: f64 = 10.0;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let side = &view.sender;
    let paced = side.paced_share()?;
    if paced >= MIN_LIMITING_TIME_SHARE || holds_its_rate(view, paced)? {
        if others_delay_the_pace(view) {
            return Ok(None);
        }
        // Datagrams that got lost are not what the pace holds back.
        let lost = view.sends_too_much();
        let confidence = if lost { Confidence::Possible } else { Confidence::Certain };
        return draft(view, confidence, on_purpose(view), paced).found();
    }
    let share = held_share(view, RULE.refines)?;
    let stopped = matches!(stopped(side), Ok(Some(Confidence::Likely)));
    let starved = share >= MIN_LIMITING_TIME_SHARE
        && (side.blocked_share()? < MAX_WAIT_SHARE_OF_SLOW_THREAD || stopped);
    if !starved || is_throttled(side) || cpu_bound(side)?.is_some() {
        return Ok(None);
    }
    let sure = side.throttled_share().is_ok() && side.host_busy_share().is_ok();
    let confidence = if sure { Confidence::Likely } else { Confidence::Possible };
    draft(view, confidence, "the sending program supplies too little data".into(), share)
        .advice("find what the program waits for: its source, a lock, another peer")
        .found()
}

/// Whether it waits for the plan's rate, though the work between the waits takes most of its time.
fn holds_its_rate(view: &View, paced: f64) -> Result<bool, Missing> {
    let waits = view.plan().rate_bits_per_s.is_some() && paced >= MIN_COSTLY_SHARE;
    let own_turn = [parts::SENDING_PROGRAM, parts::SENDING_HOST];
    Ok(waits && held_share(view, &own_turn)? >= MIN_LIMITING_TIME_SHARE)
}

fn on_purpose(view: &View) -> String {
    match view.plan().rate_bits_per_s {
        Some(limit) => format!("the sender's own pacing (--rate {})", rate_argument(limit.0)),
        None => "the sender's own pacing".into(),
    }
}

fn draft(view: &View, confidence: Confidence, summary: String, share: f64) -> Draft {
    let (side, place) = (&view.sender, view.sender.place());
    let draft = Draft::new(RULE.id, place, confidence, summary)
        .share(share)
        .saw_if(place, "writer_blocked_percent", percents(side.blocked_share()), |value| {
            side.waits_text(value / 100.0)
        })
        .saw_if(place, "writer_paced_percent", percents(side.paced_share()), |value| {
            format!("the writer paused on purpose {} of the time", percent(value / 100.0))
        })
        .saw_if(place, "app_limited_percent", percents(side.app_limited_share()), |value| {
            format!(
                "{} of the samples were limited by the application (tcp_info app_limited)",
                percent(value / 100.0)
            )
        })
        .saw_if(place, "process.disk_wait_percent", state(view, "disk_wait"), |value| {
            format!(
                "the program's thread waited for a disk in {value:.0} % of the samples (state D)"
            )
        })
        .saw_if(place, "process.stopped_percent", state(view, "stopped"), |value| {
            format!("the program's thread was stopped in {value:.0} % of the samples (state T)")
        })
        .predicted(next_after(view, &[RULE.id]));
    let reader = percents(view.receiver.blocked_share());
    let draft = draft.saw_if(view.receiver.place(), "reader_blocked_percent", reader, |value| {
        view.receiver.waits_text(value / 100.0)
    });
    match view.plan().rate_bits_per_s {
        Some(limit) => draft
            .again(&Again::Without("--rate"), format!("it holds the sender at {}", rate(limit.0))),
        None => draft,
    }
}

/// How often another program's thread was seen in a state, percent, if that is worth a word.
fn state(view: &View, name: &str) -> Result<f64, Missing> {
    let percent = view.sender.end()?.after.number(&format!("process.{name}_percent"))?;
    if percent >= MIN_SHOWN_PERCENT {
        Ok(percent)
    } else {
        Err(Missing::because("it hardly ever was"))
    }
}

fn percents(share: Result<f64, Missing>) -> Result<f64, Missing> {
    share.map(|share| share * 100.0)
}

/// Share of the sender's time that its application held, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    Ok(held_share(view, RULE.refines)? * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::BitRate;
    use goodput_model::EndName::Near;

    #[test]
    fn trap_2_fires_though_the_connection_is_busy_throughout() {
        let finding = fires(&RULE, Case::sender_application());
        assert_eq!(finding.confidence, Confidence::Likely);
    }

    #[test]
    fn a_writer_that_is_stopped_now_and_then_offers_too_little() {
        let case = Case::sender_application().shares(0.3, 0.0, 0.0).writer(0.3, 0.0, 0.1);
        assert_eq!(fires(&RULE, case).confidence, Confidence::Likely);
    }

    #[test]
    fn another_program_that_waits_for_its_disk_is_reported_so() {
        let case = Case::sender_application().send_queue(0.05).watched().without_far();
        let finding = fires(&RULE, case.fact(Near, "process.disk_wait_percent", 80.0));
        assert!(finding.evidence.iter().any(|w| w.text.contains("a disk in 80 %")), "{finding:?}");
    }

    #[test]
    fn our_own_pacing_is_named() {
        let case = Case::healthy().writer(0.0, 0.97, 0.02).plan(|plan| {
            plan.rate_bits_per_s = Some(BitRate(5e7));
        });
        let finding = fires(&RULE, case);
        assert_eq!(finding.confidence, Confidence::Certain);
        assert!(finding.summary.contains("--rate 50mbit"), "{}", finding.summary);
        assert!(finding.advice[0].contains("--rate"), "{:?}", finding.advice);
    }

    #[test]
    fn stays_quiet_on_traps_and_on_a_full_cpu() {
        quiet(&RULE, Case::send_buffer());
        quiet(&RULE, Case::sender_application().writer(0.0, 0.0, 0.97));
        quiet(&RULE, Case::sender_application().grows(Near, "cgroup.throttled_us", 2_000_000));
    }

    #[test]
    fn works_for_datagrams() {
        let case = Case::healthy_udp().writer(0.0, 0.9, 0.05);
        assert_eq!(fires(&RULE, case).confidence, Confidence::Certain);
        let lossy = Case::healthy_udp().writer(0.0, 0.9, 0.05).lost(0.05);
        assert_eq!(fires(&RULE, lossy).confidence, Confidence::Possible);
    }

    #[test]
    fn a_rate_that_takes_most_of_a_cpu_is_still_the_rate() {
        let busy = |case: Case| case.writer(0.0, 0.45, 0.55);
        let case = busy(Case::healthy_udp()).plan(|plan| plan.rate_bits_per_s = Some(BitRate(5e7)));
        let finding = fires(&RULE, case);
        assert_eq!(finding.summary, "the sender's own pacing (--rate 50mbit)");
    }

    #[test]
    fn cannot_tell_without_chronographs() {
        cannot_tell(&RULE, Case::sender_application().tcp(|tcp, _| tcp.busy_us = None));
    }
}
