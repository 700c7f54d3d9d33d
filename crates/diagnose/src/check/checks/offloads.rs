//! Work that the card or the kernel could do once for many segments, switched off.

use goodput_model::{Confidence, Finding, Missing, Place};

use super::super::{Check, HostView, Scope};
use crate::finding::Draft;

/// Offloads that cost CPU where they are off.
const WANTED: [&str; 4] = ["tso", "gso", "gro", "tx-checksum"];

/// Segmentation, coalescing and checksums.
pub(super) struct Offloads;

pub(super) const OFFLOADS: Offloads = Offloads;

impl Check for Offloads {
    fn id(&self) -> &'static str {
        "offload-off"
    }

    fn title(&self) -> &'static str {
        "offloads of the card that are off"
    }

    fn scope(&self) -> Scope {
        Scope::Device
    }

    fn check(&self, host: &HostView) -> Result<Option<Finding>, Missing> {
        // Virtual devices have reasons of their own: veth leaves GRO off by default.
        if !host.is_hardware() {
            return Ok(None);
        }
        let state = |name: &&str| host.text(&format!("offload.{name}"));
        state(&WANTED[0])?;
        let off: Vec<_> = WANTED.into_iter().filter(|name| state(name) == Ok("off")).collect();
        if off.is_empty() {
            return Ok(None);
        }
        let text = format!("{} off: each segment costs CPU of its own", off.join(", "));
        let change = |name: &&str| {
            host.change(
                &format!("offload.{name}"),
                Some("off".into()),
                "on",
                "less CPU for each byte",
            )
        };
        Draft::new(self.id(), Place::Near, Confidence::Possible, text.clone())
            .saw(Place::Near, "offloads_off", off.len() as f64, text)
            .changes(off.iter().map(change))
            .found()
    }
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
