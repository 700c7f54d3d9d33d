//! # What it means
//! A cgroup's CPU quota stops goodput's process at one end for part of each period.
//!
//! # Why it limits
//! A process that has used up its quota does not run until the period ends, 100 ms by default. A
//! stopped sender sends nothing. A stopped reader that holds the socket does not even acknowledge.
//!
//! # How it is seen
//! The cgroup was throttled for at least 5 % of the time between the snapshots; from 1 % the
//! finding is possible beside another cause. If the receiver is throttled, the sender's counters
//! show only a longer round-trip time, as if there were a queue on the path.
//!
//! # What to try
//! Raise the quota of the service or container that goodput runs in.
//!
//! # When it is wrong
//! Other processes of the same cgroup may have used up the quota; the remedy is the same.
//!
//! # Source
//! Documentation/scheduler/sched-bwc.rst and Documentation/admin-guide/cgroup-v2.rst (`cpu.stat`);
//! systemd.resource-control(5).

use goodput_model::{Confidence, Finding, Missing, Role};

use crate::bounds::next_with_cpu_room;
use crate::finding::{Draft, percent, time};
use crate::names::QUOTA_PERCENT;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::MIN_THROTTLED_TIME_SHARE;
use crate::view::{CpuTaker, Side, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "cpu-quota",
    title: "A CPU quota stops the process",
    refines: parts::HOSTS,
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "throttled_percent",
    witness_words: ("time throttled by a quota", " %"),
    source: include_str!("cpu_quota.rs"),
};

/// From this share on nothing else need be asked.
const MIN_SUFFICIENT_THROTTLED_SHARE: f64 = 0.2;
/// From this share on it is worth a word.
const MIN_NOTICEABLE_THROTTLED_SHARE: f64 = 0.01;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    match most_throttled(view) {
        (Some((side, share)), _) if share >= MIN_NOTICEABLE_THROTTLED_SHARE => {
            found(view, side, share)
        }
        (_, Some(why)) => Err(why),
        _ => Ok(None),
    }
}

/// The side with the larger throttled share among those that know it, and why another does not.
fn most_throttled<'v, 'a>(view: &'v View<'a>) -> (Option<(&'v Side<'a>, f64)>, Option<Missing>) {
    let (mut most, mut unknown): (Option<(&Side, f64)>, _) = (None, None);
    for side in view.sides() {
        match side.throttled_share() {
            Ok(share) if most.is_none_or(|(_, other)| share > other) => most = Some((side, share)),
            Ok(_) => {}
            Err(why) => unknown = unknown.or(Some(why)),
        }
    }
    (most, unknown)
}

fn found(view: &View, side: &Side, share: f64) -> Result<Option<Finding>, Missing> {
    let place = side.place();
    let role = if side.role == Role::Sender { "sender" } else { "receiver" };
    let confidence = match share {
        share if share >= MIN_SUFFICIENT_THROTTLED_SHARE => Confidence::Certain,
        share if share >= MIN_THROTTLED_TIME_SHARE => Confidence::Likely,
        _ => Confidence::Possible,
    };
    let summary = format!("the CPU quota of the {role}'s cgroup");
    let text = format!("{} (cpu.stat of the cgroup)", stopped(share));
    Draft::new(RULE.id, place, confidence, summary)
        .share(share.min(1.0))
        .saw(place, RULE.witness_name, share * 100.0, text)
        .saw_if(place, QUOTA_PERCENT, side.number(QUOTA_PERCENT), |quota| {
            format!("the quota is {quota:.0} % of one CPU")
        })
        .saw_if(view.sender.place(), "rtt_us", view.sender.rtt_s().map(|s| s * 1e6), |us| {
            format!("round trips took {} at the sender", time(us / 1e6))
        })
        .predicted(next_with_cpu_room(view, side, RULE.id, CpuTaker::Quota))
        .advice("with systemd, clear or raise CPUQuota= of the unit (systemctl set-property)")
        .advice("cgroup v2: write `max` to cpu.max; v1: write -1 to cpu.cfs_quota_us")
        .found()
}

/// cgroup v1 adds up the CPUs whose threads it stopped, so the sum can exceed the time.
fn stopped(share: f64) -> String {
    match percent(share) {
        part if share <= 1.0 => {
            format!("the process was out of quota {part} of the time")
        }
        part => format!("the threads were out of quota {part} of the time (all threads added up)"),
    }
}

/// Time that the more throttled of the two processes was held back, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    match most_throttled(view) {
        (Some((_, share)), _) => Ok(share * 100.0),
        (None, Some(why)) => Err(why),
        (None, None) => Err(Missing::because("neither end reports")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::{Far, Near};
    use goodput_model::Place;

    #[test]
    fn trap_3_a_throttled_receiver_is_not_a_queue_on_the_path() {
        let finding = fires(&RULE, Case::throttled_receiver());
        assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Certain));
    }

    #[test]
    fn several_cpus_held_back_at_once_are_no_share_above_all_of_the_time() {
        let case = Case::throttled_receiver().grows(Far, "cgroup.throttled_us", 4_900_000);
        let finding = fires(&RULE, case);
        assert_eq!(finding.share_percent.value(), Some(&100.0));
        assert!(
            finding.evidence[0].text.contains("117 % of the time (all threads added up)"),
            "{finding:?}"
        );
    }

    #[test]
    fn fires_at_the_sender_even_if_the_far_end_is_silent() {
        let case = Case::healthy().grows(Near, "cgroup.throttled_us", 2_000_000).without_far();
        assert_eq!(fires(&RULE, case).end, Place::Near);
    }

    #[test]
    fn stays_quiet_where_little_was_throttled() {
        let throttled = |us| Case::healthy().grows(Near, "cgroup.throttled_us", us);
        quiet(&RULE, throttled(30_000));
        assert_eq!(fires(&RULE, throttled(150_000)).confidence, Confidence::Possible);
    }

    #[test]
    fn a_host_without_quota_is_not_throttled() {
        let far = Case::healthy().without(Far, "cgroup").fact(Far, "cgroup.quota", "none");
        quiet(&RULE, far);
    }

    #[test]
    fn cannot_tell_while_one_end_is_unknown() {
        cannot_tell(&RULE, Case::healthy().without(Far, "cgroup"));
    }
}
