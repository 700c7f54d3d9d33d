//! # What it means
//! The flows arrive on one receive queue of the card, so one CPU handles them all while others
//! idle.
//!
//! # Why it limits
//! A card spreads flows over its queues by a hash of their addresses and ports. With one queue, or
//! a hash that puts all flows on the same queue, the flows share what one CPU can do.
//!
//! # How it is seen
//! There are at least two flows. One CPU spends at least 90 % of its time in interrupts and
//! softirqs, no other CPU half of that. Either the card uses fewer queues than it has, or one of
//! its queues received more than twice its even share of the packets.
//!
//! # What to try
//! As many queues as CPUs; an even hash table (`ethtool -X DEVICE default`); steering in software
//! if the card has one queue.
//!
//! # When it is wrong
//! A few flows hash unevenly by chance, so the finding is only possible with fewer than four flows
//! to a queue. A single flow always has one queue; then it is softirq-saturation. The authors had
//! no card with more than one queue.
//!
//! # Source
//! Documentation/networking/scaling.rst (RSS); Documentation/netlink/specs/netdev.yaml; ethtool(8) `-L`,
//! `-x`, `-X`.

use goodput_model::{Confidence, Finding, Missing};

use crate::bounds::next_after;
use crate::change::more_queues;
use crate::finding::{Draft, percent};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::view::{Side, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "queue-imbalance",
    title: "One receive queue gets all the flows",
    refines: &[parts::RECEIVING_HOST, parts::CUT_WINDOW, parts::RECOVERY],
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "busiest_cpu_softirq_percent",
    witness_words: ("busiest CPU in softirqs", " %"),
    source: include_str!("queue_imbalance.rs"),
};

/// Share of a CPU's time from which it is full of softirqs.
const MIN_SOFTIRQ_CPU_SHARE: f64 = 0.9;
/// Share of that which the others may have at most.
const MAX_SHARE_OF_FULL_CPU: f64 = 0.5;
/// Times the even share from which a queue has too much; of two or three queues, half of the way from
/// the even share to all.
const MIN_UNEVENNESS_RATIO: f64 = 2.0;
/// Flows for each queue from which an uneven hash is no chance.
const MIN_FLOWS_PER_QUEUE: f64 = 4.0;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let side = &view.receiver;
    let (cpu, share) = side.softirq_cpu()?;
    let shares = side.interrupt_shares()?;
    let others = shares.iter().filter(|(number, _)| *number != cpu).map(|(_, share)| *share);
    let idle = others.fold(None, |most: Option<f64>, share| Some(most.unwrap_or(0.0).max(share)));
    let flows = f64::from(view.plan().flows);
    if share < MIN_SOFTIRQ_CPU_SHARE
        || idle.is_none_or(|most| most >= MAX_SHARE_OF_FULL_CPU * share)
        || flows < 2.0
    {
        return Ok(None);
    }
    let fewer = more_queues(side);
    let uneven = match uneven(side) {
        Err(_) if fewer.is_some() => None,
        found => found?,
    };
    let confidence = match uneven {
        _ if fewer.is_some() => Confidence::Likely,
        Some((queues, _)) if flows >= MIN_FLOWS_PER_QUEUE * queues => Confidence::Likely,
        Some(_) => Confidence::Possible,
        None => return Ok(None),
    };
    let (place, device) = (side.place(), side.device()?);
    let text = format!("interrupts and softirqs took {} of CPU {cpu} (/proc/stat)", percent(share));
    Draft::new(
        RULE.id,
        place,
        confidence,
        format!("one receive queue of {device}, shared by {flows} flows"),
    )
    .share(share)
    .saw(place, RULE.witness_name, share * 100.0, text)
    .saw_if(place, "other_cpus", idle.ok_or_else(nothing), |most| {
        format!("no other CPU more than {}", percent(most))
    })
    .saw_if(place, "busiest_queue", uneven.map(|(_, part)| part).ok_or_else(nothing), |part| {
        format!("one queue received {} of the packets (netdev qstats)", percent(part))
    })
    .saw_if(place, "channels.combined", side.count("channels.combined"), |queues| {
        format!("the card uses {queues:.0} queues (ethtool -l)")
    })
    .predicted(next_after(view, &[RULE.id, "receiver-cpu"]))
    .changes(fewer)
    .command(place, format!("ethtool -X {device} default"), "the driver's own, even hash table")
    .permanent("/boot/loader.conf (FreeBSD, ix)", "hw.ix.num_queues=\"4\"")
    .found()
}

fn nothing() -> Missing {
    Missing::because("not counted")
}

/// Number of receive queues and what part of the packets the busiest received, if that is too
/// much. Interrupts would mislead: a queue that is polled without end makes the fewest.
fn uneven(side: &Side) -> Result<Option<(f64, f64)>, Missing> {
    let queues = side.count("qstats.rx_queues")?;
    if queues < 2.0 {
        return Ok(None);
    }
    let (_, part) = side.largest_part("qstats.rx_packets")?;
    let too_much = (MIN_UNEVENNESS_RATIO / queues).min((1.0 + 1.0 / queues) / 2.0);
    Ok((part > too_much).then_some((queues, part)))
}

/// Time that the CPU with most interrupts and softirqs spent in them, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    Ok(view.receiver.softirq_share()? * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Far;

    /// CPU 0 full, CPU 1 idle, 16 flows, 4 queues of which one has nearly all.
    fn uneven() -> Case {
        let case = Case::healthy().cpu(Far, 0.97, 0.99).plan(|plan| plan.flows = 16);
        let case = ["softirq", "system"]
            .iter()
            .fold(case, |case, kind| case.grows(Far, &format!("cpu.1.{kind}_us"), 100_000));
        case.grows(Far, "cpu.1.idle_us", 4_000_000)
            .fact(Far, "channels.combined", 4u64)
            .fact(Far, "channels.combined_max", 4u64)
            .fact(Far, "qstats.rx_queues", 4u64)
            .grows(Far, "qstats.rx_packets.0", 970_000)
            .grows(Far, "qstats.rx_packets.1", 30_000)
    }

    #[test]
    fn fires_on_a_queue_with_all_the_packets_and_is_why_a_cpu_is_full() {
        assert_eq!(fires(&RULE, uneven()).confidence, Confidence::Likely);
        assert_eq!(crate::diagnose(&uneven().evidence()).verdict.limit, "queue-imbalance");
        let few = uneven().plan(|plan| plan.flows = 2);
        assert_eq!(fires(&RULE, few).confidence, Confidence::Possible);
    }

    #[test]
    fn a_card_that_uses_one_of_its_queues_gets_more() {
        let case = uneven().fact(Far, "channels.combined", 1u64);
        let finding = fires(&RULE, case);
        assert_eq!(finding.changes[0].as_argument(), "far:channels.combined@eth0=1,2");
    }

    #[test]
    fn one_flow_or_busy_neighbours_are_no_imbalance() {
        quiet(&RULE, uneven().plan(|plan| plan.flows = 1));
        quiet(&RULE, uneven().cpu(Far, 0.97, 0.99));
        quiet(
            &RULE,
            uneven().grows(Far, "qstats.rx_packets.1", 980_000).grows(
                Far,
                "qstats.rx_packets.2",
                900_000,
            ),
        );
    }

    #[test]
    fn cannot_tell_without_the_cpus_or_the_queues() {
        cannot_tell(&RULE, uneven().without(Far, "cpu"));
        cannot_tell(&RULE, uneven().without(Far, "qstats"));
    }
}
