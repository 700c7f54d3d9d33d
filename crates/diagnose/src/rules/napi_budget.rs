//! # What it means
//! The receiving host's softirq uses up its budget of packets or time and stops polling its cards
//! before their rings are empty. Packets are dropped meanwhile.
//!
//! # Why it limits
//! One round of polling takes at most `net.core.netdev_budget` packets, 300, or
//! `netdev_budget_usecs`, 2 ms. The rest waits until ksoftirqd gets its turn among all other
//! threads, and the ring or the backlog overflows.
//!
//! # How it is seen
//! The third column of softnet_stat (time_squeeze) grew by more than 10 a second, and the ring or
//! the backlog of the same host dropped at least half of what the flows lost. Squeezes without
//! drops are normal and not reported.
//!
//! # What to try
//! Twice the packet budget, four times the time budget.
//!
//! # When it is wrong
//! If one CPU does nothing but softirqs, no budget helps; then softirq-saturation is reported. Both
//! counters are for the whole host.
//!
//! # Source
//! net/core/dev.c `net_rx_action`; Documentation/admin-guide/sysctl/net.rst (`netdev_budget`); Red Hat
//! Enterprise Linux network performance tuning guide (`time_squeeze`).

use goodput_model::{Change, Confidence, Finding, Missing};

use crate::bounds::next_after;
use crate::change::{SOFTIRQ_BUDGETS, of_host};
use crate::finding::Draft;
use crate::lost_here::LostHere;
use crate::names::{SOFTNET_DROPPED, SOFTNET_SQUEEZED};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::view::{Side, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "napi-budget",
    title: "Softirqs run out of budget before the ring is empty",
    refines: parts::LOSSES,
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "squeezes_per_million_packets",
    witness_words: ("squeezed polls per million packets", ""),
    source: include_str!("napi_budget.rs"),
};

/// Squeezes a second from which they may be what makes rings overflow; fewer are normal under load.
const MANY_PER_S: f64 = 10.0;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let side = &view.receiver;
    let squeezes = side.squeezes_per_s()?;
    if squeezes < MANY_PER_S {
        return Ok(None);
    }
    let (ring, backlog) = (side.ring_drops(), view.backlog_drops());
    let drops = match (&ring, &backlog) {
        (Ok(ring), Ok(backlog)) => ring.max(*backlog),
        (one, other) => one.clone().or_else(|_| other.clone())?,
    };
    let Some(lost) = LostHere::of(view, drops)? else { return Ok(None) };
    // Of the device's own count it is likely; the backlog's is the whole host's.
    let confidence = match ring {
        Ok(ring) if ring >= drops && lost.confidence() == Confidence::Certain => Confidence::Likely,
        _ => Confidence::Possible,
    };
    let place = side.place();
    let squeezed = format!(
        "softirqs ran out of budget {squeezes:.0} times a second (softnet_stat, third column)"
    );
    Draft::new(RULE.id, place, confidence, "the softirq budget")
        .saw(place, "squeezes_per_s", squeezes, squeezed)
        .saw_if(place, "ring_drops", ring, |drops| {
            format!("the card missed {drops:.0} frames ({})", side.ring_counter())
        })
        .saw_if(place, SOFTNET_DROPPED, backlog, |drops| {
            format!("the CPUs' backlogs dropped {drops:.0} packets")
        })
        .saw(view.sender.place(), "lost", lost.lost, lost.text(view))
        .predicted(next_after(view, &[RULE.id]))
        .changes(SOFTIRQ_BUDGETS.iter().filter_map(|(name, times)| larger(side, name, *times)))
        .advice(
            "the budgets belong to the machine: in a network namespace, raise them outside of it",
        )
        .permanent(
            "/etc/sysctl.d/90-goodput.conf",
            "net.core.netdev_budget = 600\nnet.core.netdev_budget_usecs = 8000",
        )
        .permanent("/boot/loader.conf (FreeBSD, ix)", "hw.ix.rx_process_limit=\"-1\"")
        .found()
}

fn larger(side: &Side, name: &str, times: u64) -> Option<Change> {
    let now: u64 = side.words(name)?.parse().ok()?;
    let values = (Some(now.to_string()), now.checked_mul(times)?.to_string());
    Some(of_host(side, name, None, values, "more packets in one round of polling"))
}

/// Times that softirqs of the receiving host ran out of budget, per million packets that they processed.
fn witness(view: &View) -> Result<f64, Missing> {
    view.receiver.per_million_processed(view.receiver.grown(SOFTNET_SQUEEZED)? as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Far;

    fn squeezed() -> Case {
        Case::path_loss()
            .fact(Far, "sysctl.net.core.netdev_budget", "300")
            .grows(Far, "softnet.squeezed", 800)
            .grows(Far, "driver.rx_missed", 7)
    }

    #[test]
    fn fires_on_squeezes_with_drops_and_takes_the_place_of_the_ring() {
        let finding = fires(&RULE, squeezed());
        assert_eq!(finding.confidence, Confidence::Likely);
        assert_eq!(finding.changes[0].as_argument(), "far:sysctl.net.core.netdev_budget=300,600");
        assert_eq!(crate::diagnose(&squeezed().evidence()).verdict.limit, "napi-budget");
    }

    #[test]
    fn squeezes_alone_are_normal() {
        quiet(&RULE, squeezed().grows(Far, "driver.rx_missed", 0));
        quiet(&RULE, Case::healthy().grows(Far, "softnet.squeezed", 8000));
        quiet(&RULE, squeezed().grows(Far, "softnet.squeezed", 8));
    }

    #[test]
    fn drops_of_the_whole_hosts_backlog_make_it_possible() {
        let case = squeezed().grows(Far, "driver.rx_missed", 0).grows(Far, SOFTNET_DROPPED, 7);
        assert_eq!(fires(&RULE, case).confidence, Confidence::Possible);
    }

    #[test]
    fn cannot_tell_without_softnet() {
        cannot_tell(&RULE, squeezed().without(Far, "softnet"));
    }
}
