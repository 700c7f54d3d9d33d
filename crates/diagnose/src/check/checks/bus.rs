//! A card in a slot that is slower than the card.

use goodput_model::Confidence;

use super::super::{Answer, Check, HostView, Scope};

/// The slot of the card.
pub(super) const PCIE: Check = Check {
    id: "pcie-link",
    title: "a card whose PCI Express link is slower or narrower than the card supports",
    scope: Scope::Device,
    ask: &pcie,
};

fn pcie(check: &Check, host: &HostView) -> Answer {
    let (speed, most) = (host.number("bus.pcie_gt_per_s")?, host.number("bus.pcie_max_gt_per_s")?);
    let (lanes, all) = (host.number("bus.pcie_lanes")?, host.number("bus.pcie_max_lanes")?);
    if speed >= most && lanes >= all {
        return Ok(None);
    }
    let text = format!(
        "the card runs at {speed} GT/s × {lanes} lanes and supports {most} GT/s × {all} lanes"
    );
    // An idle link may sleep at a lower speed, but never with fewer lanes.
    let confidence = if lanes < all { Confidence::Likely } else { Confidence::Possible };
    check
        .draft(confidence, "bus.pcie_lanes", lanes, &text)
        .advice("reseat the card, or use a slot with all its lanes (lspci -vv: LnkSta)")
        .found()
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Snapshot;

    #[test]
    fn four_of_eight_lanes() {
        let mut facts = Snapshot::default();
        for (name, value) in [("gt_per_s", 8.0), ("max_gt_per_s", 8.0)] {
            facts.put(format!("bus.pcie_{name}"), value);
        }
        facts.put("bus.pcie_lanes", 4u64);
        facts.put("bus.pcie_max_lanes", 8u64);
        let view = HostView { device: Some("eth0"), now: &facts, before: None };
        let found = PCIE.check(&view).unwrap().unwrap();
        let (runs, supports) = found.summary.split_once("supports").unwrap();
        assert!(runs.contains("× 4 lanes") && supports.contains("× 8 lanes"), "{}", found.summary);
        assert_eq!(found.confidence, Confidence::Likely);
    }
}
