//! # What it means
//! A CPU that limits runs slower than it could: held down by a power policy, or by heat.
//!
//! # Why it limits
//! The work of one thread or one softirq takes a fixed number of cycles, so goodput follows the
//! clock.
//!
//! # How it is seen
//! The CPU limits this end (its thread is CPU-bound, or a CPU is full of softirqs). The highest
//! clock that the policy allows is at most 90 % of what the CPU can do, or heat slowed the cores
//! down during the measurement.
//!
//! # What to try
//! The governor `performance`, no limit on the clock, better cooling.
//!
//! # When it is wrong
//! A CPU's maximum is often a turbo clock for a single core, out of reach when all cores work. The
//! clock at one instant says little and is not used. Virtual machines show no clock, so the rule
//! can't decide there. The authors have not seen this on hardware.
//!
//! # Source
//! Documentation/admin-guide/pm/cpufreq.rst (`scaling_max_freq`, `cpuinfo_max_freq`);
//! Documentation/admin-guide/pm/intel_pstate.rst; arch/x86/kernel/cpu/mce/therm_throt.c;
//! cpupower-frequency-set(1).

use goodput_model::{Confidence, Finding, Known, Missing};

use crate::bounds::next_with_cpu_room;
use crate::change::full_clock;
use crate::cpu_bound::cpu_bound;
use crate::finding::{Draft, percent};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::MIN_CPU_SHARE_OF_WALL_TIME;
use crate::view::{CpuTaker, Side, View, first_of};

/// The rule.
pub const RULE: Rule = Rule {
    id: "cpu-frequency",
    title: "The CPU that limits is clocked down",
    refines: parts::HOSTS,
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "clock_lacking_percent",
    witness_words: ("CPU clock missing", " %"),
    source: include_str!("cpu_frequency.rs"),
};

/// Share of its most from which a clock is held down: more is within what turbo clocks vary by.
const MAX_HELD_DOWN_FREQUENCY_SHARE: f64 = 0.9;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    first_of(view, |side| at(view, side))
}

fn at(view: &View, side: &Side) -> Result<Option<Finding>, Missing> {
    let bound = cpu_bound(side)?.is_some_and(|bound| !bound.crowded);
    if !bound && side.softirq_share()? < MIN_CPU_SHARE_OF_WALL_TIME {
        return Ok(None);
    }
    let clock = side.clock_share();
    let heat = side.grown("frequency.throttle_events");
    let share = match (&clock, &heat) {
        (Ok(share), _) if *share <= MAX_HELD_DOWN_FREQUENCY_SHARE => Some(*share),
        (_, Ok(events)) if *events > 0 => None,
        (Ok(_), _) | (Err(_), Ok(_)) => return Ok(None),
        (Err(why), Err(_)) => return Err(why.clone()),
    };
    let place = side.place();
    let predicted = match share {
        Some(_) => next_with_cpu_room(view, side, RULE.id, CpuTaker::Clock),
        None => Known::missing("the cost of heat is unknown"),
    };
    let summary = format!("the reduced clock of the {} end's CPUs", side.name);
    Draft::new(RULE.id, place, Confidence::Likely, summary)
        .saw_if(place, RULE.witness_name, clock.map(|share| (1.0 - share) * 100.0), |lacking| {
            format!(
                "the policy does not allow {} of its clock (scaling_max_freq)",
                percent(lacking / 100.0)
            )
        })
        .saw_if(place, "throttle_events", heat.map(|events| events as f64), |events| {
            format!("heat slowed a core down {events:.0} times")
        })
        .saw_if(place, "thread_cpu_share", side.thread_cpu_share(), |share| {
            format!("the flow's thread used {} of a CPU", percent(share))
        })
        .predicted(predicted)
        .changes(full_clock(side))
        .command(place, "tuned-adm profile network-throughput", "the same for good, with tuned")
        .permanent("/etc/default/cpupower", "governor='performance'")
        .permanent("/etc/rc.conf (FreeBSD)", "performance_cpu_freq=\"HIGH\"")
        .found()
}

/// Share of the clock that the policy of either end withholds, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    let lacking = view.sides().map(|side| Ok((1.0 - side.clock_share()?) * 100.0));
    match lacking {
        [Ok(one), Ok(other)] => Ok(f64::max(one, other)),
        [one, other] => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::{Far, Near};

    fn clocked(limit: u64) -> Case {
        let case = Case::healthy().writer(0.01, 0.0, 0.97);
        [Near, Far].into_iter().fold(case, |case, end| {
            case.fact(end, "frequency.max_hz", 3_600_000_000u64)
                .fact(end, "frequency.limit_hz", limit)
                .fact(end, "frequency.throttle_events", 0u64)
        })
    }

    #[test]
    fn a_cpu_that_limits_at_half_its_clock_is_named_with_what_the_rest_would_give() {
        let finding = fires(&RULE, clocked(1_800_000_000));
        assert_eq!(finding.end, goodput_model::Place::Near);
        assert!(finding.evidence[0].text.contains("50 % of its clock"), "{finding:?}");
        let verdict = crate::diagnose(&clocked(1_800_000_000).evidence()).verdict;
        assert_eq!(verdict.limit, "cpu-frequency");
    }

    #[test]
    fn the_governor_is_what_can_be_changed() {
        let held = |governor: &'static str| {
            let case = clocked(1_800_000_000).fact(Near, "frequency.governor", governor);
            fires(&RULE, case).changes.first().map(goodput_model::Change::as_argument)
        };
        assert_eq!(held("powersave").unwrap(), "cpu.governor=powersave,performance");
        assert_eq!(held("performance"), None);
        assert_eq!(held("powersave, schedutil"), None, "no one value to go back to");
    }

    #[test]
    fn heat_is_counted() {
        let case = clocked(3_600_000_000).grows(Near, "frequency.throttle_events", 4);
        assert!(fires(&RULE, case).predicted_bits_per_s.value().is_none());
    }

    #[test]
    fn a_full_clock_or_a_cpu_with_time_left_is_quiet() {
        quiet(&RULE, clocked(3_600_000_000));
        quiet(&RULE, clocked(1_800_000_000).writer(0.6, 0.0, 0.3));
    }

    #[test]
    fn cannot_tell_in_a_virtual_machine_whose_cpu_limits() {
        cannot_tell(&RULE, Case::healthy().writer(0.01, 0.0, 0.97));
    }
}
