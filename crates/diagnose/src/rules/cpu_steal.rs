//! # What it means
//! The hypervisor gives the CPUs of one end's virtual machine to others while it has work to do.
//!
//! # Why it limits
//! A stolen CPU does no work here, and a flow's thread has only one CPU.
//!
//! # How it is seen
//! The hypervisor stole at least 10 % of the time in which the host's CPUs had work, and the host's
//! CPU holds the flow.
//!
//! # What to try
//! Another host or a dedicated one, fewer virtual machines on it, pinned CPUs. Repeat the
//! measurement at another time: steal varies.
//!
//! # When it is wrong
//! A virtual machine with a CPU limit shows steal for whatever exceeds its contract.
//!
//! # Source
//! proc(5) (`/proc/stat`, steal); Documentation/admin-guide/cpu-load.rst.

use goodput_model::{Confidence, Finding, Missing, Role};

use crate::bounds::next_with_cpu_room;
use crate::cpu_bound::{cpu_bound, describe, saw_room};
use crate::finding::{Draft, percent};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::view::{CpuTaker, Side, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "cpu-steal",
    title: "The hypervisor takes the CPU away",
    refines: parts::HOSTS,
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "stolen_percent",
    witness_words: ("working time taken by the hypervisor", " %"),
    source: include_str!("cpu_steal.rs"),
};

/// Stolen part of the time with work from which it counts. Measured on an idle hypervisor: below 1 %.
const MIN_STOLEN_TIME_SHARE: f64 = 0.1;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    match most_stolen(view)? {
        (side, share) if share >= MIN_STOLEN_TIME_SHARE && cpu_bound(side)?.is_some() => {
            found(view, side, share)
        }
        _ => Ok(None),
    }
}

/// The side that more is stolen from, of those that know it.
fn most_stolen<'v, 'a>(view: &'v View<'a>) -> Result<(&'v Side<'a>, f64), Missing> {
    let shares = view.sides().map(|side| Ok((side, side.steal_share()?)));
    let why = shares.iter().find_map(|share| share.as_ref().err().cloned());
    let most = shares.into_iter().flatten().max_by(|a, b| a.1.total_cmp(&b.1));
    most.ok_or_else(|| why.unwrap_or_else(|| Missing::because("neither end reports")))
}

fn found(view: &View, side: &Side, share: f64) -> Result<Option<Finding>, Missing> {
    let place = side.place();
    let role = if side.role == Role::Sender { "sender" } else { "receiver" };
    let summary = format!("the {role}'s CPU, partly given to others by the hypervisor");
    let text =
        format!("the hypervisor stole {} of the time with work (/proc/stat)", percent(share));
    let draft = Draft::new(RULE.id, place, Confidence::Likely, summary)
        .share(share.min(1.0))
        .saw(place, RULE.witness_name, share * 100.0, text)
        .saw_if(place, "thread_cpu_share", side.thread_cpu_share(), |share| {
            format!("the flow's thread used {} of a CPU (CPU time of the thread)", percent(share))
        });
    let taker = CpuTaker::Hypervisor;
    saw_room(describe(draft, side), view, side, taker)
        .predicted(next_with_cpu_room(view, side, RULE.id, taker))
        .advice("a dedicated host, pinned CPUs, or fewer virtual machines on the same one")
        .found()
}

/// Stolen part of the time with work, of the end that more is stolen from, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    Ok(most_stolen(view)?.1 * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Near;
    use goodput_model::Place;

    fn stolen(us: u64) -> Case {
        let case = Case::healthy().cpu(Near, 0.1, 0.8).writer(0.01, 0.0, 0.96);
        case.grows(Near, "cpu.0.steal_us", us)
    }

    #[test]
    fn fires_where_much_is_stolen_and_the_cpu_limits() {
        assert_eq!(fires(&RULE, stolen(1_500_000)).end, Place::Near);
    }

    #[test]
    fn little_or_harmless_steal_is_quiet() {
        quiet(&RULE, stolen(300_000));
        quiet(&RULE, stolen(1_500_000).writer(0.6, 0.0, 0.3));
    }

    #[test]
    fn cannot_tell_without_the_cpus() {
        cannot_tell(&RULE, Case::empty());
    }
}
