//! # What it means
//! The receiver's card drops frames although its ring is at its maximum and its CPUs have time. The
//! path from the card to memory may be congested.
//!
//! # Why it limits
//! If the IOMMU, the bus between sockets or the memory is busy, a card can't write its frames to
//! memory fast enough. It drops what its own small buffer doesn't hold.
//!
//! # How it is seen
//! By elimination. The card missed at least half of what the flows lost, and its receive ring is at
//! its maximum. No CPU spends more than 80 % in interrupts and softirqs, and softirqs never ran out
//! of budget.
//!
//! # What to try
//! Run the programs on the card's own memory node, load the memory less, put the IOMMU into
//! pass-through mode, or use a smaller ring that stays in the cache.
//!
//! # When it is wrong
//! A short burst overruns even the largest ring and looks the same from here, so the finding is
//! possible at most. Bus and memory counters would settle it, but they need tools of the CPU's
//! vendor. The authors have not seen this on hardware.
//!
//! # Source
//! Agarwal et al.: Understanding host interconnect congestion, HotNets 2022; Agarwal et al.: Host congestion
//! control, SIGCOMM 2023; Documentation/admin-guide/kernel-parameters.txt (`iommu=pt`).

use goodput_model::{Confidence, Finding, Missing};

use crate::bounds::next_after;
use crate::finding::{Draft, percent};
use crate::lost_here::LostHere;
use crate::names::RING_RX;
use crate::parts;
use crate::remedy::on_node_of;
use crate::ring::{is_at_most, ring};
use crate::rule::{Depth, Rule};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "host-interconnect",
    title: "The path from the card to memory may be congested",
    refines: parts::LOSSES,
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "ring_drops_per_million_packets",
    witness_words: ("packets dropped at the ring per million", ""),
    source: include_str!("host_interconnect.rs"),
};

/// Share of a CPU's time in interrupts and softirqs up to which it empties the ring in time.
const MAX_SOFTIRQ_CPU_SHARE: f64 = 0.8;
/// Squeezes a second that are none to speak of.
const MAX_SQUEEZES_PER_S: f64 = 1.0;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let side = &view.receiver;
    let drops = side.ring_drops()?;
    let Some(lost) = LostHere::of(view, drops)? else { return Ok(None) };
    let busy = side.softirq_share()?;
    if !is_at_most(side)
        || busy > MAX_SOFTIRQ_CPU_SHARE
        || side.squeezes_per_s()? > MAX_SQUEEZES_PER_S
    {
        return Ok(None);
    }
    let (place, device, counter) = (side.place(), side.device()?, side.ring_counter());
    let idle = format!("yet no CPU spends more than {} on softirqs", percent(busy));
    let summary = format!("perhaps the path from {device} to memory");
    Draft::new(RULE.id, place, Confidence::Possible, summary)
        .saw(place, counter, drops, format!("{device} missed {drops:.0} frames ({counter})"))
        .saw(view.sender.place(), "lost", lost.lost, lost.text(view))
        .saw_if(place, RING_RX, side.count(RING_RX), |frames| ring(side, frames))
        .saw(place, "softirq_share", busy, idle)
        .saw_if(place, "bus.numa_node", side.number("bus.numa_node"), |node| {
            format!("the card is on memory node {node:.0}")
        })
        .predicted(next_after(view, &[RULE.id, "ring-overrun"]))
        .command(place, on_node_of(device), "the CPUs and the memory beside the card")
        .advice("let the IOMMU pass through")
        .permanent("/etc/default/grub", "GRUB_CMDLINE_LINUX=\"iommu=pt\"")
        .found()
}

/// Frames that the receiver's card missed, per million that arrived.
fn witness(view: &View) -> Result<f64, Missing> {
    view.receiver.per_million_arrived(view.receiver.ring_drops()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::RING_RX_MAX;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Far;

    fn congested() -> Case {
        Case::path_loss().fact(Far, RING_RX, 4096u64).fact(Far, RING_RX_MAX, 4096u64).grows(
            Far,
            "driver.rx_discards",
            7,
        )
    }

    #[test]
    fn what_remains_is_possible_and_stands_behind_the_ring() {
        assert_eq!(fires(&RULE, congested()).confidence, Confidence::Possible);
        let diagnosis = crate::diagnose(&congested().evidence());
        assert_eq!(diagnosis.verdict.limit, "ring-overrun");
        assert!(diagnosis.findings.iter().any(|f| f.rule == "host-interconnect"));
    }

    #[test]
    fn a_ring_that_could_grow_a_busy_cpu_or_a_squeeze_explains_it() {
        quiet(&RULE, congested().fact(Far, RING_RX, 256u64));
        quiet(&RULE, congested().cpu(Far, 0.9, 0.95));
        quiet(&RULE, congested().grows(Far, "softnet.squeezed", 50));
        quiet(&RULE, Case::path_loss());
    }

    #[test]
    fn cannot_tell_without_counters() {
        cannot_tell(&RULE, congested().without(Far, "link").without(Far, "driver"));
    }
}
