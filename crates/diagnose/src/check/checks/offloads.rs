//! Work that the card or the kernel could do once for many segments, but that is switched off.

use goodput_model::Confidence;

use super::super::{Answer, Check, HostView, Scope};

/// Offloads that cost CPU if they are off.
const WANTED: [&str; 4] = ["tso", "gso", "gro", "tx-checksum"];

/// Segmentation, coalescing and checksums.
pub(super) const OFFLOADS: Check = Check {
    id: "offload-off",
    title: "offloads of the card that are off",
    scope: Scope::Device,
    ask: &offloads,
};

fn offloads(check: &Check, host: &HostView) -> Answer {
    // Virtual devices have their own reasons: veth leaves GRO off by default.
    if !host.is_hardware() {
        return Ok(None);
    }
    let state = |name: &&str| host.text(&format!("offload.{name}"));
    state(&WANTED[0])?;
    let off: Vec<_> = WANTED.into_iter().filter(|name| state(name) == Ok("off")).collect();
    if off.is_empty() {
        return Ok(None);
    }
    let text = format!("{} off: each segment costs extra CPU", off.join(", "));
    let change = |name: &&str| {
        host.change(&format!("offload.{name}"), Some("off".into()), "on", "less CPU per byte")
    };
    check
        .draft(Confidence::Possible, "offloads_off", off.len() as f64, &text)
        .changes(off.iter().map(change))
        .found()
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Snapshot;

    #[test]
    fn only_what_is_off_is_proposed_and_only_on_hardware() {
        let mut facts = Snapshot::default();
        facts.put(crate::names::LINK_KIND, "hardware");
        for (name, state) in [("tso", "off"), ("gso", "on"), ("gro", "on")] {
            facts.put(format!("offload.{name}"), state);
        }
        let of = |facts: &Snapshot| {
            OFFLOADS.check(&HostView { device: Some("eth0"), now: facts, before: None }).unwrap()
        };
        let found = of(&facts).unwrap();
        assert_eq!(found.changes.len(), 1);
        assert_eq!(found.changes[0].setting.to_string(), "offload.tso@eth0");
        facts.put(crate::names::LINK_KIND, "veth");
        assert_eq!(of(&facts), None);
    }
}
