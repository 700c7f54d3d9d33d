//! # What it means
//! The path was faster at first. A bucket of credits let a burst through; once they are spent, only
//! their refill rate is left.
//!
//! # Why it limits
//! Cloud instances, contracts and shapers with a large burst grant more than their rate until the
//! bucket is empty. A short test sees the burst, a long transfer the rate.
//!
//! # How it is seen
//! The rate falls once, to half or less, and stays there. What passed before is at least half a
//! second's worth more than the later rate would have let through. The path holds the sender, and
//! neither host nor the sender's own shaper explains the fall.
//!
//! # What to try
//! Nothing at the hosts: the lower rate is the lasting one. Test longer than the bucket lasts, and
//! let it fill again before each run of a comparison.
//!
//! # When it is wrong
//! Other traffic that starts also leaves a step, but rarely as steep or as steady. So does a thread
//! that needs most of a CPU and is moved to another one; goodput recognises that. If the path drops
//! what exceeds the later rate instead of queueing it, it is a policer with a deep bucket.
//!
//! # Source
//! net/sched/sch_tbf.c; Uta, Custura, Duplyakin, Jimenez, Rellermeyer, Maltzahn, Ricci, Iosup: Is Big
//! Data Performance Reproducible in Modern Cloud Networks? NSDI 2020.

use goodput_model::{Confidence, Finding, Missing, Place};

use crate::account::path_share;
use crate::bounds::next_after;
use crate::elimination::{host_is_short, hosts_have_time, is_local};
use crate::finding::{Draft, bytes, rate, time};
use crate::parts;
use crate::round_rate::round_rate;
use crate::rule::{Depth, Rule};
use crate::thresholds::MIN_LIMITING_TIME_SHARE;
use crate::view::{Step, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "credit-bucket",
    title: "The path was faster until its credits were spent",
    refines: parts::DROPPING_LIMIT,
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "rate_before_of_after",
    witness_words: ("rate before the step over the rate after it", ""),
    source: include_str!("credit_bucket.rs"),
};

/// Rate before over after from which it is a step.
const MIN_STEP_RATE_RATIO: f64 = 1.8;
/// The same from which other traffic is no explanation.
const MIN_LARGE_STEP_RATE_RATIO: f64 = 3.0;
/// What must have passed beyond the later rate, seconds of that rate.
const CREDIT_S: f64 = 0.5;
/// Time for which the later rate must have held, seconds, and its largest spread.
const MIN_LATER_RATE_S: f64 = 0.7;
const MAX_LATER_RATE_SPREAD_RATIO: f64 = 0.1;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let step = view.receiver.step()?;
    let Some(step) = step.filter(is_of_credits) else { return Ok(None) };
    let held = if view.is_tcp() { path_share(view)? } else { 1.0 };
    if held < MIN_LIMITING_TIME_SHARE || is_local(view)? || host_is_short(view) {
        return Ok(None);
    }
    let round = round_rate(view, step.after)?;
    let sure = step.before >= MIN_LARGE_STEP_RATE_RATIO * step.after || round.is_some();
    // Threads that the scheduler moves to other CPUs change their pace as much, if they need most of one.
    if !sure && !hosts_have_time(view) {
        return Ok(None);
    }
    let confidence = if sure { Confidence::Likely } else { Confidence::Possible };
    let place = view.receiver.place();
    let summary = format!(
        "the path: {} after its credits of about {} were spent",
        rate(step.after),
        bytes(credit(&step))
    );
    let text = format!(
        "{} in the first {}, {} in the {} after",
        rate(step.before),
        time(step.at_s),
        rate(step.after),
        time(step.since_s)
    );
    let spent = format!("{} passed in excess of the later rate", bytes(credit(&step)));
    let mut draft = Draft::new(RULE.id, Place::Path, confidence, summary)
        .share(held)
        .saw(place, RULE.witness_name, step.before / step.after, text)
        .saw(place, "credit_bytes", credit(&step), spent);
    if let Some(round) = round {
        draft = draft.saw(Place::Path, "round_rate_bits_per_s", round.rate, round.text(step.after));
    }
    draft
        .predicted(next_after(view, &[RULE.id]))
        .advice(format!(
            "plan with {}; before a comparison wait until the bucket is full again",
            rate(step.after)
        ))
        .found()
}

/// Bytes that passed before the step beyond what the rate after it lets through.
fn credit(step: &Step) -> f64 {
    (step.before - step.after) * step.at_s / 8.0
}

fn is_of_credits(step: &Step) -> bool {
    step.after > 0.0
        && step.before >= MIN_STEP_RATE_RATIO * step.after
        && credit(step) * 8.0 >= CREDIT_S * step.after
        && step.since_s >= MIN_LATER_RATE_S
        && step.spread < MAX_LATER_RATE_SPREAD_RATIO
}

/// Rate before the largest change over the rate since, 1 if there was none.
fn witness(view: &View) -> Result<f64, Missing> {
    let step = view.receiver.step()?;
    Ok(step.filter(is_of_credits).map_or(1.0, |step| step.before / step.after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, quiet};
    use crate::view::View;
    use goodput_model::Known;
    use std::sync::Arc;

    /// 95.6 Mbit/s, with this many bytes more in the first half second.
    fn with_credit(case: Case, bytes: u64) -> Option<Finding> {
        let mut evidence = case.without_links().evidence();
        if let Known::Value(end) = &mut evidence.far {
            for (n, sample) in Arc::make_mut(end).samples.iter_mut().enumerate() {
                sample.received_bytes += bytes * (n as u64).min(5) / 5;
            }
        }
        check(&View::new(&evidence)).unwrap()
    }

    #[test]
    fn fires_where_a_burst_passed_first() {
        let finding = with_credit(Case::path_rate(), 60_000_000).unwrap();
        assert_eq!((finding.end, finding.confidence), (Place::Path, Confidence::Likely));
        assert!(finding.summary.contains("95.6 Mbit/s"), "{}", finding.summary);
    }

    #[test]
    fn stays_quiet_without_a_step_and_where_a_host_explains_it() {
        quiet(&RULE, Case::path_rate());
        assert_eq!(with_credit(Case::path_rate(), 500_000), None);
        assert_eq!(with_credit(Case::path_rate().tbf(1e8, 125_000), 60_000_000), None);
        assert_eq!(with_credit(Case::path_rate().wobble(0.5), 60_000_000), None);
    }

    #[test]
    fn cannot_tell_without_samples() {
        cannot_tell(&RULE, Case::path_rate().without_far());
    }
}
