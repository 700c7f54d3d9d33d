//! # What it means
//! The link is full. There is nothing to fix.
//!
//! # Why it limits
//! Preamble, gap, headers and checksum take part of each frame: on Ethernet 38 bytes around an IP
//! packet, and the IP and TCP headers inside it. At MTU 1500 with timestamps, 94.1 % of the link
//! speed is payload.
//!
//! # How it is seen
//! Goodput is at least 97 % of link speed × framing efficiency, for a link at either end whose
//! driver reports its speed.
//!
//! # What to try
//! A faster link, more links, or a larger MTU along the whole path, which saves headers.
//!
//! # When it is wrong
//! Virtual devices report a speed that is not real; goodput ignores it. A faster link behind a
//! shaper that happens to give the same rate looks the same.
//!
//! # Source
//! IEEE 802.3 clause 4 (preamble, gap); RFC 9293 section 3.1 and RFC 7323 section 3 (headers).

use goodput_model::{Confidence, Finding, Missing};

use crate::bounds::next_after;
use crate::ceiling::link_ceiling;
use crate::finding::{Draft, percent, rate};
use crate::names::LINK_SPEED;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::MIN_SHARE_OF_CEILING;
use crate::view::{Side, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "line-rate",
    title: "The link is full",
    refines: &[parts::PATH_RATE],
    depth: Depth::Limiter,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "goodput_of_link_percent",
    witness_words: ("goodput as a share of the link", " %"),
    source: include_str!("line_rate.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let goodput = view.goodput()?;
    let links = view.sides().map(|side| (side, link_ceiling(view, side)));
    let mut unknown = None;
    for (side, ceiling) in links {
        match ceiling {
            Ok(ceiling) if goodput >= MIN_SHARE_OF_CEILING * ceiling => {
                return found(view, side, ceiling);
            }
            Ok(_) => {}
            Err(why) => unknown = unknown.or(Some(why)),
        }
    }
    unknown.map_or(Ok(None), Err)
}

fn found(view: &View, side: &Side, ceiling: f64) -> Result<Option<Finding>, Missing> {
    let (goodput, speed) = (view.goodput()?, side.count(LINK_SPEED)?);
    let summary = format!("the {} link of the {} end", rate(speed), side.name);
    let text = format!(
        "{} of the {} that {} Ethernet can carry",
        percent(goodput / ceiling),
        rate(ceiling),
        rate(speed)
    );
    Draft::new(RULE.id, side.place(), Confidence::Certain, summary)
        .saw(side.place(), RULE.witness_name, goodput / ceiling * 100.0, text)
        .predicted(next_after(view, &[RULE.id]))
        .found()
}

/// Goodput as a percentage of what the slower known link can carry.
fn witness(view: &View) -> Result<f64, Missing> {
    let [near, far] = view.sides().map(|side| link_ceiling(view, side));
    let ceiling = match (near, far) {
        (Ok(a), Ok(b)) => a.min(b),
        (one, other) => one.or(other)?,
    };
    Ok(view.goodput()? / ceiling * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Far;
    use goodput_model::Place;

    #[test]
    fn fires_at_the_ceiling_and_predicts_nothing_that_was_outrun() {
        let finding = fires(&RULE, Case::healthy().goodput(935e6));
        assert_eq!(finding.confidence, Confidence::Certain);
        assert_eq!(finding.summary, "the 1 Gbit/s link of the near end");
    }

    #[test]
    fn stays_quiet_below_it() {
        quiet(&RULE, Case::healthy().goodput(900e6));
    }

    #[test]
    fn a_slow_far_link_is_named() {
        let case = Case::healthy().fact(Far, LINK_SPEED, 100_000_000u64).goodput(93.5e6);
        assert_eq!(fires(&RULE, case).end, Place::Far);
    }

    #[test]
    fn cannot_tell_without_a_speed() {
        assert_eq!(
            cannot_tell(&RULE, Case::healthy().without_links()),
            "a veth device has no speed of its own"
        );
    }
}
