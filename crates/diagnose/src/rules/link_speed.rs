//! # What it means
//! The link runs slower than the card can, and that limits.
//!
//! # Why it limits
//! A cable with one broken pair, a loose plug, a port configured by hand or a restricted offer can
//! make two ends agree on 100 Mbit/s although both support 1 Gbit/s.
//!
//! # How it is seen
//! Goodput is at least 90 % of what the link carries at its present speed, and the card supports a
//! faster one. Either this end doesn't offer that speed or doesn't negotiate, or both ends offer it
//! and the link still runs slower.
//!
//! # What to try
//! Autonegotiation on with all speeds offered, at both ends; then the cable and the plug.
//!
//! # When it is wrong
//! If the other end of the cable offers no more than the present speed, the link is as fast as it
//! can be, and line-rate says so. Few drivers report what the other end offers. Without that report
//! a bad cable is only possible, because a slower port looks the same. Virtual devices have no such
//! speed. The authors have not seen this on hardware.
//!
//! # Source
//! IEEE 802.3 clause 28 (autonegotiation); ethtool(8) ("Supported", "Advertised", "Link partner
//! advertised link modes"); udev(7).

use goodput_model::{BitRate, Confidence, Finding, Known, Missing};

use crate::bounds::next_after;
use crate::ceiling::link_ceiling;
use crate::finding::{Draft, percent, rate};
use crate::names::{AUTONEG, LINK_SPEED};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::udev_rule;
use crate::view::{Side, View, first_of};

/// The rule.
pub const RULE: Rule = Rule {
    id: "link-speed",
    title: "The link runs below its possible speed",
    refines: &[parts::PATH_RATE],
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "goodput_of_present_speed_percent",
    witness_words: ("goodput as a share of the present link speed", " %"),
    source: include_str!("link_speed.rs"),
};

/// Share of the present speed from which the link is what limits. Lower than for line-rate, since a
/// faster link is at hand.
const MIN_SHARE_OF_LINK_SPEED: f64 = 0.9;

/// Why the link runs slower than the card could.
enum Reason {
    /// This end negotiates nothing.
    Forced,
    /// This end offers no more than this.
    OffersLess(f64),
    /// Both ends offer this, and yet.
    Degraded(f64),
    /// The other end does not report what it offers.
    Unknown,
}

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    first_of(view, |side| at(view, side))
}

fn at(view: &View, side: &Side) -> Result<Option<Finding>, Missing> {
    if !side.on_hardware()? {
        return Ok(None);
    }
    let (goodput, ceiling) = (view.goodput()?, link_ceiling(view, side)?);
    if goodput < MIN_SHARE_OF_LINK_SPEED * ceiling {
        return Ok(None);
    }
    let (speed, supported) =
        (side.count(LINK_SPEED)?, side.count("negotiation.supported_bits_per_s")?);
    let Some((reason, confidence)) = reason(side, speed, supported) else { return Ok(None) };
    let (place, device) = (side.place(), side.device()?);
    let summary = format!("the link of {device}, at {} although it could be faster", rate(speed));
    let text = format!(
        "{} of the {} that {} Ethernet can carry",
        percent(goodput / ceiling),
        rate(ceiling),
        rate(speed)
    );
    let could = format!("the card supports {}; {}", rate(supported), words(&reason));
    Draft::new(RULE.id, place, confidence, summary)
        .saw(place, RULE.witness_name, goodput / ceiling * 100.0, text)
        .saw(place, "negotiation.supported_bits_per_s", supported, could)
        .predicted(predicted(view, ceiling / speed * supported))
        .command(
            place,
            format!("ethtool -s {device} autoneg on"),
            "offers all speeds; do the same at the switch's port",
        )
        .advice("then the cable: gigabit and faster need all four pairs")
        .command(place, format!("ifconfig {device} media autoselect"), "FreeBSD")
        .permanent(udev_rule::FILE, udev_rule::autonegotiation(device))
        .permanent("/etc/rc.conf (FreeBSD)", "ifconfig_em0=\"DHCP media autoselect\"")
        .found()
}

/// Why it runs slower than it could, and how sure that is; `None` if it does not.
fn reason(side: &Side, speed: f64, supported: f64) -> Option<(Reason, Confidence)> {
    if supported <= speed {
        return None;
    }
    let partner = side.count("negotiation.partner_bits_per_s").ok();
    let advertised = side.count("negotiation.advertised_bits_per_s").ok();
    if side.text(AUTONEG).is_ok_and(|autoneg| autoneg == "off") {
        return Some((Reason::Forced, Confidence::Likely));
    }
    match (advertised, partner) {
        // The other end knows no more: nothing is wrong with this one.
        (_, Some(partner)) if partner <= speed => None,
        (Some(offer), _) if offer < supported => {
            Some((Reason::OffersLess(offer), Confidence::Likely))
        }
        (_, Some(partner)) => Some((Reason::Degraded(partner.min(supported)), Confidence::Likely)),
        _ => Some((Reason::Unknown, Confidence::Possible)),
    }
}

fn words(reason: &Reason) -> String {
    match reason {
        Reason::Forced => "the card's autonegotiation is off (ethtool)".into(),
        Reason::OffersLess(offer) => format!("the card offers {} at most (ethtool)", rate(*offer)),
        Reason::Degraded(both) => {
            format!("both ends offer {}, and the link runs slower", rate(*both))
        }
        Reason::Unknown => "what the other end of the cable offers is unknown".into(),
    }
}

/// What the faster link would carry, or a lower limit of something else.
fn predicted(view: &View, faster: f64) -> Known<BitRate> {
    let other = next_after(view, &[RULE.id, "line-rate"]);
    let other = other.value().map_or(f64::INFINITY, |rate| rate.0);
    Known::Value(BitRate(faster.min(other)))
}

/// Goodput as a percentage of what the present speed of the slower link can carry.
fn witness(view: &View) -> Result<f64, Missing> {
    let shares = view.sides().map(|side| Ok(view.goodput()? / link_ceiling(view, side)? * 100.0));
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
    use goodput_model::Place;

    fn fast_ethernet() -> Case {
        let case = Case::healthy().goodput(93.5e6).fact(Far, LINK_SPEED, 100_000_000u64);
        let case = case.writer(0.9, 0.0, 0.02).reader(0.9, 0.0, 0.02).fact(
            Near,
            "negotiation.supported_bits_per_s",
            1_000_000_000u64,
        );
        case.fact(Far, "negotiation.supported_bits_per_s", 1_000_000_000u64)
            .fact(Far, "negotiation.advertised_bits_per_s", 1_000_000_000u64)
            .fact(Far, AUTONEG, "on")
    }

    #[test]
    fn a_cable_that_lost_a_pair_is_named_and_predicts_the_faster_link() {
        let case = || fast_ethernet().fact(Far, "negotiation.partner_bits_per_s", 1_000_000_000u64);
        let finding = fires(&RULE, case());
        assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Likely));
        assert!(finding.predicted_bits_per_s.value().unwrap().0 > 700e6);
        assert_eq!(crate::diagnose(&case().evidence()).verdict.limit, "link-speed");
    }

    #[test]
    fn a_port_that_knows_no_more_is_the_line_rate() {
        let case = || fast_ethernet().fact(Far, "negotiation.partner_bits_per_s", 100_000_000u64);
        quiet(&RULE, case());
        assert_eq!(crate::diagnose(&case().evidence()).verdict.limit, "line-rate");
    }

    #[test]
    fn what_is_set_by_hand_or_offered_too_low_is_said() {
        let finding = fires(&RULE, fast_ethernet().fact(Far, AUTONEG, "off"));
        assert!(finding.evidence[1].text.contains("autonegotiation is off"));
        let finding = fires(
            &RULE,
            fast_ethernet().fact(Far, "negotiation.advertised_bits_per_s", 100_000_000u64),
        );
        assert!(finding.evidence[1].text.contains("offers 100 Mbit/s at most"));
    }

    #[test]
    fn without_the_other_ends_word_it_is_only_possible() {
        assert_eq!(fires(&RULE, fast_ethernet()).confidence, Confidence::Possible);
        assert_eq!(crate::diagnose(&fast_ethernet().evidence()).verdict.limit, "line-rate");
    }

    #[test]
    fn stays_quiet_below_the_present_speed_and_on_virtual_links() {
        quiet(&RULE, fast_ethernet().goodput(50e6));
        quiet(&RULE, fast_ethernet().without_links());
    }

    #[test]
    fn cannot_tell_at_the_present_speed_without_the_modes() {
        let case = Case::healthy().goodput(93.5e6).fact(Far, LINK_SPEED, 100_000_000u64);
        cannot_tell(&RULE, case);
    }
}
