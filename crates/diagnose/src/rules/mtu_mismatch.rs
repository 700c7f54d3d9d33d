//! # What it means
//! Devices on one link disagree about the largest packet. One sends packets that the other, or a
//! bridge between them, can't take.
//!
//! # Why it limits
//! A device drops packets larger than its MTU, and on one link there is no router to report it. TCP
//! agrees on a segment size that fits both ends, but doesn't know what is between them. UDP knows
//! neither.
//!
//! # How it is seen
//! As with a black hole: short packets pass, no full-sized packet does. The route has no gateway,
//! so both hosts are on one link. The finding is certain if the sender's device carries larger
//! packets than the receiver's.
//!
//! # What to try
//! Give every device of the link the same MTU: hosts, bridge ports, switch ports.
//!
//! # When it is wrong
//! A firewall that drops by size on one link looks the same.
//!
//! # Source
//! RFC 1191 (only routers report packets that are too big); ip-link(8); udev(7).

use goodput_model::{Confidence, Finding, Missing, Place};

use crate::finding::Draft;
use crate::names::LINK_MTU;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::udev_rule;
use crate::vanishing::{shares_a_link, tried, unanswered_percent, vanishing};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "mtu-mismatch",
    title: "Devices of one link disagree about the largest packet",
    refines: parts::LOSSES,
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness: unanswered_percent,
    witness_name: "unanswered_percent",
    witness_words: ("large packets without an answer", " %"),
    source: include_str!("mtu_mismatch.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let Some(found) = vanishing(view)?.filter(|_| shares_a_link(view)) else { return Ok(None) };
    let mtus = [view.sender.count(LINK_MTU), view.receiver.count(LINK_MTU)];
    let differ = matches!(mtus, [Ok(sender), Ok(receiver)] if sender > receiver);
    let confidence = if differ { Confidence::Certain } else { Confidence::Likely };
    let mut draft = Draft::new(RULE.id, Place::Path, confidence, "different MTUs on one link")
        .share(1.0)
        .saw(view.sender.place(), "tries", found.tries, tried(view, found))
        .saw(
            Place::Path,
            "packet_bytes",
            found.packet_bytes,
            "short packets pass, and there is no router on the link to report the right size",
        );
    for side in view.sides() {
        draft = draft.saw_if(side.place(), LINK_MTU, side.count(LINK_MTU), |mtu| {
            let device = side.device().unwrap_or("its device");
            format!("{device} carries packets of {mtu:.0} bytes")
        });
    }
    let smallest = mtus.iter().flatten().copied().reduce(f64::min).unwrap_or(1500.0).min(1500.0);
    for (side, mtu) in view.sides().into_iter().zip(&mtus) {
        let device = side.device().ok().filter(|_| mtu.as_ref().is_ok_and(|mtu| *mtu > smallest));
        let Some(device) = device else { continue };
        let set = format!("ip link set {device} mtu {smallest:.0}");
        draft = draft.command(side.place(), set, "what the whole link carries");
    }
    if let Ok(device) = view.sender.device() {
        let rule = udev_rule::text(device, &format!("ATTR{{mtu}}=\"{smallest:.0}\""));
        draft = draft.permanent(udev_rule::FILE, rule);
    }
    draft
        .advice("compare the MTU of the bridges and switches between the hosts")
        .permanent("/etc/rc.conf (FreeBSD)", format!("ifconfig_em0=\"… mtu {smallest:.0}\""))
        .found()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Near;

    #[test]
    fn fires_on_one_link() {
        let case = || Case::black_hole().on_one_link();
        assert_eq!(fires(&RULE, case()).confidence, Confidence::Likely);
        let finding = fires(&RULE, case().fact(Near, LINK_MTU, 9000u64));
        assert_eq!((finding.end, finding.confidence), (Place::Path, Confidence::Certain));
        assert!(finding.advice[0].contains("ip link set eth0 mtu 1500"), "{finding:?}");
    }

    #[test]
    fn stays_quiet_beyond_a_router_and_where_something_arrives() {
        quiet(&RULE, Case::black_hole());
        quiet(&RULE, Case::healthy().on_one_link().fact(Near, LINK_MTU, 9000u64));
    }

    #[test]
    fn cannot_tell_without_counts() {
        let case = Case::black_hole().on_one_link();
        cannot_tell(&RULE, case.tcp(|tcp, _| tcp.acked_bytes = None));
    }
}
