//! # What it means
//! The program runs on another memory node than the card, and its CPU limits.
//!
//! # Why it limits
//! Each packet is written to the memory of one socket and read from the other: every cache line
//! crosses the bus between them. That costs 10 to 30 % of a CPU-bound transfer.
//!
//! # How it is seen
//! The machine has more than one memory node, the process may only use CPUs of nodes other than the
//! card's, and its thread or a CPU's softirqs limit the transfer.
//!
//! # What to try
//! Run the program on the card's node: `numactl --cpunodebind=netdev:DEVICE`.
//!
//! # When it is wrong
//! The cost of the longer way depends on the machine, and only a comparison of both placements
//! shows it, so the finding is possible at most. A process that may run anywhere is not reported,
//! because goodput doesn't know where its threads ran. The authors have not seen this on hardware.
//!
//! # Source
//! Documentation/networking/scaling.rst; Documentation/ABI/testing/sysfs-bus-pci (`numa_node`);
//! numactl(8); Cai et al.: Understanding host network stack overheads, SIGCOMM 2021.

use goodput_model::{Confidence, Finding, Missing};

use crate::bounds::next_after;
use crate::cpu_bound::cpu_bound;
use crate::finding::{Draft, percent};
use crate::parts;
use crate::remedy::on_node_of;
use crate::rule::{Depth, Rule};
use crate::thresholds::MIN_CPU_SHARE_OF_WALL_TIME;
use crate::view::{Side, View, first_of};

/// The rule.
pub const RULE: Rule = Rule {
    id: "cpu-placement",
    title: "The program runs far from its card",
    refines: parts::HOSTS,
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "ends_far_from_their_card",
    witness_words: ("ends far from their card", ""),
    source: include_str!("cpu_placement.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    first_of(view, |side| at(view, side))
}

fn at(view: &View, side: &Side) -> Result<Option<Finding>, Missing> {
    let bound = cpu_bound(side)?.is_some_and(|bound| !bound.crowded);
    if !bound && side.softirq_share()? < MIN_CPU_SHARE_OF_WALL_TIME || !is_elsewhere(side)? {
        return Ok(None);
    }
    let (place, node) = (side.place(), side.number("bus.numa_node")?);
    let nodes = side.words("numa.process_nodes").unwrap_or_default();
    let text = format!("the card is on memory node {node:.0}, the process on {nodes} (/sys)");
    let summary =
        format!("perhaps the {} end's program, on another memory node than its card", side.name);
    Draft::new(RULE.id, place, Confidence::Possible, summary)
        .saw(place, "bus.numa_node", node, text)
        .saw_if(place, "thread_cpu_share", side.thread_cpu_share(), |share| {
            format!("the flow's thread used {} of a CPU", percent(share))
        })
        .predicted(next_after(view, &[RULE.id]))
        .command(place, on_node_of(side.device()?), "the CPUs and the memory beside the card")
        .permanent(
            "the program's unit, [Service]",
            format!("NUMAPolicy=bind\nNUMAMask={node:.0}\nCPUAffinity=numa"),
        )
        .permanent("FreeBSD", format!("cpuset -n prefer:{node:.0} PROGRAM"))
        .found()
}

/// Whether the process may use no CPU of the card's memory node. A machine with one node, or a card
/// that is on none, has nothing to be far from.
fn is_elsewhere(side: &Side) -> Result<bool, Missing> {
    if side.count("numa.nodes")? < 2.0 || side.number("bus.numa_node").is_err() {
        return Ok(false);
    }
    let node = format!("{:.0}", side.number("bus.numa_node")?);
    let ours = side.words("numa.process_nodes");
    let ours = ours.ok_or_else(|| Missing::because("the process's memory nodes are unknown"))?;
    Ok(!ours.is_empty() && ours.split(',').all(|one| one != node))
}

/// How many of the two ends' programs run far from their card.
fn witness(view: &View) -> Result<f64, Missing> {
    let far = view.sides().map(|side| is_elsewhere(side).map(|far| f64::from(u8::from(far))));
    match far {
        [Ok(one), Ok(other)] => Ok(one + other),
        [one, other] => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::{Far, Near};

    fn far_away() -> Case {
        let case = Case::healthy().writer(0.01, 0.0, 0.97).fact(Near, "numa.nodes", 2u64);
        case.fact(Near, "bus.numa_node", 1u64).fact(Near, "numa.process_nodes", "0")
    }

    #[test]
    fn a_program_on_the_other_socket_is_possible_behind_its_cpu() {
        assert_eq!(fires(&RULE, far_away()).confidence, Confidence::Possible);
        assert_eq!(crate::diagnose(&far_away().evidence()).verdict.limit, "sender-cpu");
    }

    #[test]
    fn near_the_card_anywhere_one_node_or_time_left_is_quiet() {
        quiet(&RULE, far_away().fact(Near, "numa.process_nodes", "1"));
        quiet(&RULE, far_away().fact(Near, "numa.process_nodes", "0,1"));
        quiet(&RULE, far_away().fact(Near, "numa.nodes", 1u64));
        quiet(&RULE, far_away().writer(0.6, 0.0, 0.3));
    }

    #[test]
    fn cannot_tell_a_busy_end_without_its_nodes() {
        cannot_tell(&RULE, Case::healthy().reader(0.01, 0.0, 0.97).without(Far, "numa"));
    }
}
