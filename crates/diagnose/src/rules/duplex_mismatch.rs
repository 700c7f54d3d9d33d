//! # What it means
//! The two ends of a cable disagree on duplex. One sends at any time; the other reads that as a
//! collision and aborts its frame.
//!
//! # Why it limits
//! It works while traffic is light. Under load the full-duplex end sends into the middle of the
//! other end's frames. Those frames are lost, and the half-duplex end backs off after collisions
//! that are too late to be repeated. Of 100 Mbit/s, only a few are left.
//!
//! # How it is seen
//! Collisions later than the first 64 bytes of a frame, which agreeing ends never have; or a link
//! that runs in half duplex although its driver supports full, with collisions or losses. The
//! finding is possible if an end runs in full duplex with autonegotiation off, and the flows lost
//! broken frames.
//!
//! # What to try
//! Autonegotiation on at both ends. A manually configured end does not announce its duplex, so the
//! other end must fall back to half duplex (parallel detection).
//!
//! # When it is wrong
//! A cable longer than the standard allows also has late collisions. A hub is half duplex by
//! design: its collisions are early, and the finding is then only possible. The authors have not
//! seen this on hardware.
//!
//! # Source
//! IEEE 802.3 clauses 4.1.2.2 (late collision) and 28.2.3.1 (parallel detection); Shalunov, Carlson:
//! Detecting duplex mismatch on Ethernet, PAM 2005; ethtool(8).

use goodput_model::{Confidence, Finding, Missing};

use crate::account::path_share;
use crate::bounds::next_after;
use crate::ceiling::link_ceiling;
use crate::finding::{Draft, percent};
use crate::lost_here::LostHere;
use crate::names::{AUTONEG, LINK_DUPLEX};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::{MIN_HEAVY_LOSS_SHARE, MIN_LIMITING_TIME_SHARE, MIN_SHARE_OF_CEILING};
use crate::udev_rule;
use crate::view::{Side, View, first_of};

/// The rule.
pub const RULE: Rule = Rule {
    id: "duplex-mismatch",
    title: "The ends of the cable disagree on duplex",
    refines: parts::DROPPING_LIMIT,
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "late_collisions_and_broken_frames_per_million_packets",
    witness_words: ("late collisions and broken frames per million packets", ""),
    source: include_str!("duplex_mismatch.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    first_of(view, |side| at(view, side))
}

fn at(view: &View, side: &Side) -> Result<Option<Finding>, Missing> {
    if !side.on_hardware()? || at_ceiling(view, side) {
        return Ok(None);
    }
    let late = side.late_collisions()?;
    let half = side.text(LINK_DUPLEX).is_ok_and(|duplex| duplex == "half");
    let confidence = if late > 0.0 && suffers(view) {
        Confidence::Likely
    } else if half && suffers(view) {
        // A hub is half duplex too, and collides early.
        Confidence::Possible
    } else if breaks_frames_unasked(view, side)? {
        Confidence::Possible
    } else {
        return Ok(None);
    };
    // Half duplex with late collisions has two witnesses, each of which a sane link never shows.
    let confidence = if half && late > 0.0 { Confidence::Certain } else { confidence };
    found(view, side, late, confidence)
}

fn at_ceiling(view: &View, side: &Side) -> bool {
    link_ceiling(view, side)
        .is_ok_and(|ceiling| view.goodput_or_zero() >= MIN_SHARE_OF_CEILING * ceiling)
}

/// Whether losses or the wait for the wire hold the flows back.
fn suffers(view: &View) -> bool {
    let lost = match view.is_tcp() {
        true => view.sender.retransmitted_share(),
        false => view.receiver.lost_share(),
    };
    lost.is_ok_and(|share| share >= MIN_HEAVY_LOSS_SHARE)
        || view.is_tcp() && path_share(view).is_ok_and(|share| share >= MIN_LIMITING_TIME_SHARE)
}

/// Whether an end that negotiates nothing receives broken frames, which are what the flows lost.
fn breaks_frames_unasked(view: &View, side: &Side) -> Result<bool, Missing> {
    let forced = side.text(AUTONEG).is_ok_and(|autoneg| autoneg == "off");
    let full = side.text(LINK_DUPLEX).is_ok_and(|duplex| duplex == "full");
    if !(forced && full && side.name == view.receiver.name) {
        return Ok(false);
    }
    Ok(LostHere::of(view, side.broken_frames()?)?.is_some())
}

fn found(
    view: &View,
    side: &Side,
    late: f64,
    confidence: Confidence,
) -> Result<Option<Finding>, Missing> {
    let (place, device) = (side.place(), side.device()?);
    let duplex = side.text(LINK_DUPLEX).map(|duplex| format!("{device} runs in {duplex} duplex"));
    let negotiates = side.text(AUTONEG).map(|on| format!(", autonegotiation is {on}"));
    let text =
        format!("{late:.0} late collisions at {device}, after the first 64 bytes of a frame");
    let mut draft = Draft::new(
        RULE.id,
        place,
        confidence,
        format!("the cable of {device}: its ends disagree on duplex"),
    )
    .saw(place, "late_collisions", late, text);
    if let Ok(duplex) = duplex {
        let half = f64::from(u8::from(duplex.contains("half")));
        draft = draft.saw(place, LINK_DUPLEX, half, duplex + &negotiates.unwrap_or_default());
    }
    draft
        .saw_if(place, "link.collisions", side.grown("link.collisions").map(|n| n as f64), |n| {
            format!("{n:.0} collisions in all")
        })
        .saw_if(place, "broken_frames", side.broken_frames(), |n| {
            format!("{n:.0} frames arrived broken")
        })
        .saw_if(
            view.sender.place(),
            "retransmitted_percent",
            view.sender.retransmitted_share().map(|s| s * 100.0),
            |share| format!("{} of the bytes were sent again", percent(share / 100.0)),
        )
        .predicted(next_after(view, &[RULE.id]))
        .command(
            place,
            format!("ethtool -s {device} autoneg on"),
            "negotiates; do the same at the switch's port",
        )
        .command(place, format!("ifconfig {device} media autoselect"), "FreeBSD")
        .permanent(udev_rule::FILE, udev_rule::autonegotiation(device))
        .permanent("/etc/rc.conf (FreeBSD)", "ifconfig_em0=\"DHCP media autoselect\"")
        .found()
}

/// Late collisions of both ends' cables per million frames sent, and their broken frames per million that arrived.
fn witness(view: &View) -> Result<f64, Missing> {
    let of = |side: &Side| -> Result<f64, Missing> {
        let broken = side.broken_frames().and_then(|frames| side.per_million_arrived(frames));
        Ok(side.per_million_sent(side.late_collisions()?)? + broken.unwrap_or(0.0))
    };
    match (of(&view.sender), of(&view.receiver)) {
        (Ok(a), Ok(b)) => Ok(a + b),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::{Far, Near};
    use goodput_model::Place;

    fn link_of_100() -> Case {
        let case = Case::path_loss().retransmitted(0.03).goodput(3e6);
        case.fact(Near, "link.speed_bits_per_s", 100_000_000u64).fact(Near, LINK_DUPLEX, "half")
    }

    #[test]
    fn late_collisions_in_half_duplex_are_certain() {
        let finding = fires(&RULE, link_of_100().grows(Near, "driver.late_collisions", 400));
        assert_eq!((finding.end, finding.confidence), (Place::Near, Confidence::Certain));
        assert!(finding.permanent[0].lines.contains("ethtool -s eth0 autoneg on"));
        let finding = fires(&RULE, Case::path_loss().grows(Far, "link.tx_window_errors", 40));
        assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Likely));
    }

    #[test]
    fn half_duplex_alone_may_be_a_hub() {
        assert_eq!(fires(&RULE, link_of_100()).confidence, Confidence::Possible);
    }

    #[test]
    fn a_forced_end_with_broken_frames_is_possible_beside_the_cable() {
        let case = Case::path_loss().grows(Far, "link.rx_crc_errors", 7);
        quiet(
            &RULE,
            Case::path_loss().grows(Far, "link.rx_crc_errors", 7).fact(Far, AUTONEG, "on"),
        );
        let case = case.fact(Far, AUTONEG, "off").fact(Far, LINK_DUPLEX, "full");
        assert_eq!(fires(&RULE, case).confidence, Confidence::Possible);
    }

    #[test]
    fn stays_quiet_on_links_that_agree_and_on_virtual_ones() {
        quiet(&RULE, Case::path_loss().fact(Near, LINK_DUPLEX, "full"));
        quiet(&RULE, link_of_100().without_links());
        quiet(&RULE, Case::healthy().fact(Near, LINK_DUPLEX, "half").goodput(935e6));
    }

    #[test]
    fn cannot_tell_without_the_links() {
        cannot_tell(&RULE, Case::path_loss().without(Near, "link"));
    }
}
