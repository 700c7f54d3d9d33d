//! # What it means
//! The card's PCI Express link is narrower or slower than the card and the slot allow, and that
//! link is full.
//!
//! # Why it limits
//! Every byte crosses this link once, in packets of 128 to 512 bytes with about 26 bytes of header
//! each. A 10 Gbit/s card in a slot with one lane of generation 3 gets 6.4 Gbit/s.
//!
//! # How it is seen
//! The card's present speed or width is below its maximum, and the goodput with its headers is at
//! least 85 % of what the present link gives.
//!
//! # What to try
//! Another slot, or reseat the card. A slot often has fewer lanes than its length suggests.
//!
//! # When it is wrong
//! The link's capacity is a model for payloads of 256 bytes (±10 %). A second card behind the same
//! switch shares the link unseen. A card whose present link equals its maximum is not reported,
//! even if both are too small. The authors have not seen this on hardware: virtual machines show no
//! link.
//!
//! # Source
//! Documentation/ABI/testing/sysfs-bus-pci (`current_link_speed`, `current_link_width`); Neugebauer et
//! al.: Understanding PCIe performance for end host networking, SIGCOMM 2018; PCI Express base
//! specification 5.0, section 4.2.2 (128b/130b).

use goodput_ceiling::buses::pcie;
use goodput_model::{BitRate, Confidence, Finding, Known, Missing};

use crate::bounds::next_after;
use crate::finding::{Draft, percent, rate};
use crate::framing::{QDISC_EXTRA_BYTES, packet};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::view::{Side, View, first_of, positive};

/// The rule.
pub const RULE: Rule = Rule {
    id: "pcie-link",
    title: "The card's PCI Express link is full and below its maximum",
    refines: &[parts::PATH_RATE],
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "pcie_percent",
    witness_words: ("goodput as a share of the PCIe link", " %"),
    source: include_str!("pcie_link.rs"),
};

/// Share of what the link gives from which it limits.
const MIN_SHARE_OF_LINK: f64 = 0.85;

/// The present link of a card, and its most.
struct Link {
    now: (f64, f64),
    most: (f64, f64),
}

impl Link {
    fn of(side: &Side) -> Result<Self, Missing> {
        Ok(Self {
            now: (side.number("bus.pcie_gt_per_s")?, side.number("bus.pcie_lanes")?),
            most: (side.number("bus.pcie_max_gt_per_s")?, side.number("bus.pcie_max_lanes")?),
        })
    }

    fn is_below_its_most(&self) -> bool {
        self.now.0 < self.most.0 || self.now.1 < self.most.1
    }

    /// Share of the present link that the measurement takes: frames without checksum, because the card
    /// writes them into memory.
    fn share(&self, view: &View) -> Result<f64, Missing> {
        let crossed = view.goodput()? / packet(view)?.share(QDISC_EXTRA_BYTES);
        Ok(crossed / positive(pcie(self.now.0, self.now.1), "what the link gives")?)
    }
}

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    first_of(view, |side| at(view, side))
}

fn at(view: &View, side: &Side) -> Result<Option<Finding>, Missing> {
    if !side.on_hardware()? || has_no_pcie(side) {
        return Ok(None);
    }
    let link = Link::of(side)?;
    let share = link.share(view)?;
    if !link.is_below_its_most() || share < MIN_SHARE_OF_LINK {
        return Ok(None);
    }
    let (place, device) = (side.place(), side.device()?);
    let (now, most) = (words(link.now), words(link.most));
    let text = format!(
        "{device} runs at {now}, about {}; {} of this rate is used (lspci -vv: LnkSta)",
        rate(pcie(link.now.0, link.now.1)),
        percent(share)
    );
    let could = pcie(link.most.0, link.most.1);
    let most = format!("the card supports {most}, about {} (LnkCap)", rate(could));
    let predicted = view.goodput()? / share * could / pcie(link.now.0, link.now.1);
    Draft::new(RULE.id, place, Confidence::Likely, format!("the PCI Express link of {device}"))
        .saw(place, RULE.witness_name, share * 100.0, text)
        .saw(place, "bus.pcie_max_lanes", link.most.1, most)
        .predicted(lower(view, predicted))
        .advice("reseat the card, or use a slot with enough lanes")
        .found()
}

/// Whether this device is known to hang on something else.
fn has_no_pcie(side: &Side) -> bool {
    let kind = side.text("bus.kind");
    kind.is_ok_and(|kind| kind != "pci" || side.number("bus.pcie_lanes").is_err())
}

fn words((gt_per_s, lanes): (f64, f64)) -> String {
    format!("{gt_per_s} GT/s × {lanes} lanes")
}

fn lower(view: &View, rate: f64) -> Known<BitRate> {
    let other = next_after(view, &[RULE.id]);
    let other = other.value().map_or(f64::INFINITY, |rate| rate.0);
    Known::Value(BitRate(rate.min(other)))
}

/// Share of the fuller of the two ends' PCI Express links that is used, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    let shares = view.sides().map(|side| Ok(Link::of(side)?.share(view)? * 100.0));
    match shares {
        [Ok(one), Ok(other)] => Ok(f64::max(one, other)),
        [one, other] => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::{Far, Near};

    fn in_slot(case: Case, lanes: u64) -> Case {
        [Near, Far].into_iter().fold(case, |case, end| {
            let lanes = if end == Far { lanes } else { 8 };
            case.fact(end, "link.speed_bits_per_s", 10_000_000_000u64)
                .fact(end, "bus.kind", "pci")
                .fact(end, "bus.pcie_gt_per_s", 8.0)
                .fact(end, "bus.pcie_max_gt_per_s", 8.0)
                .fact(end, "bus.pcie_lanes", lanes)
                .fact(end, "bus.pcie_max_lanes", 8u64)
        })
    }

    #[test]
    fn a_full_link_of_one_lane_is_named_and_the_link_speed_comes_next() {
        let finding = fires(&RULE, in_slot(Case::healthy().goodput(6e9), 1));
        assert_eq!(finding.end, goodput_model::Place::Far);
        let next = finding.predicted_bits_per_s.value().unwrap().to_string();
        assert_eq!(next, "9.41 Gbit/s");
    }

    #[test]
    fn stays_quiet_with_room_or_at_its_most_or_without_a_link() {
        quiet(&RULE, in_slot(Case::healthy().goodput(3e9), 1));
        quiet(&RULE, in_slot(Case::healthy().goodput(9e9), 8));
        quiet(&RULE, Case::healthy().goodput(6e9).without_links());
        let emulated = Case::healthy().without(Near, "bus").fact(Near, "bus.kind", "pci");
        quiet(&RULE, emulated.without(Far, "bus").fact(Far, "bus.kind", "usb"));
    }

    #[test]
    fn cannot_tell_without_the_bus() {
        cannot_tell(&RULE, in_slot(Case::healthy(), 8).without(Near, "bus"));
    }
}
