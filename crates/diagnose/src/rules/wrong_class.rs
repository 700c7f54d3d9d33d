//! # What it means
//! The flows go through a class of the sender's shaper that was not meant for them: the default
//! class, although another class may send much faster.
//!
//! # Why it limits
//! htb puts packets that no filter matches into its default class, which often has a small rate. If
//! a filter is missing, or matches other addresses or ports, the flows stay there.
//!
//! # How it is seen
//! Nearly all bytes left through the default class, and the goodput has reached its ceil, or packets
//! wait for its tokens and the rate of the path holds the flows most of the time. Another class of
//! the same device may send at least 15 % more, and sent almost nothing.
//!
//! # What to try
//! A filter that puts the flows into the right class, or a faster default class.
//!
//! # When it is wrong
//! If the default class is meant to be slow for such flows, this is only the shaper at its rate.
//!
//! # Source
//! net/sched/sch_htb.c (`htb_classify`); tc-htb(8) (`default`).

use goodput_model::{Confidence, Finding, Missing};

use crate::account::held_share;
use crate::finding::{Draft, percent, rate};
use crate::htb::{Leaf, leaves, used};
use crate::names::QDISC_KIND;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::shaper::Shaper;
use crate::thresholds::{MIN_LIMITING_TIME_SHARE, MIN_SPARE_RATE_RATIO};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "wrong-class",
    title: "The flows are in a slow class of the local shaper",
    refines: &[parts::PATH_RATE],
    depth: Depth::Reason,
    is_of_discipline: true,
    check,
    witness,
    witness_name: "goodput_of_shaper_percent",
    witness_words: ("goodput as a share of the shaper's rate", " %"),
    source: include_str!("wrong_class.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    if view.sender.text(QDISC_KIND)? != "htb" {
        return Ok(None);
    }
    view.goodput()?;
    let leaves = leaves(&view.sender)?;
    let own = used(&leaves)?;
    let fastest = leaves.iter().max_by(|a, b| a.ceil.total_cmp(&b.ceil));
    let Some(better) = fastest.filter(|leaf| leaf.ceil >= MIN_SPARE_RATE_RATIO * own.ceil) else {
        return Ok(None);
    };
    let Some(shaper) = Shaper::of(view)? else { return Ok(None) };
    if !own.is_default || !shaper.gives(view) && !holds(view, &shaper)? {
        return Ok(None);
    }
    draft(view, &own, better, &shaper).predicted(predicted(view, &shaper, better)).found()
}

/// Whether the class sets the rate although less goes through: packets wait for its tokens, and the path's rate holds the
/// flows most of the time. A window that was cut leaves it idle for the rest.
fn holds(view: &View, shaper: &Shaper) -> Result<bool, Missing> {
    let most = held_share(view, &[parts::PATH_RATE])? >= MIN_LIMITING_TIME_SHARE;
    Ok(view.is_tcp() && most && shaper.makes_wait(view)?)
}

/// What the better class leaves for payload, headers as in the present one.
fn predicted(
    view: &View,
    shaper: &Shaper,
    better: &Leaf,
) -> goodput_model::Known<goodput_model::BitRate> {
    let class = better.ceil * shaper.ceiling / shaper.rate;
    let next = crate::bounds::next_after(view, &[RULE.id, "shaper-rate"]);
    let least = next.value().map_or(class, |next| next.0.min(class));
    goodput_model::Known::Value(goodput_model::BitRate(least))
}

fn draft(view: &View, own: &Leaf, better: &Leaf, shaper: &Shaper) -> Draft {
    let (place, device, goodput) = (view.sender.place(), shaper.device, view.goodput_or_zero());
    let summary =
        format!("the default class {} of htb on {device}, limited to {}", own.id, rate(own.ceil));
    let gives = format!(
        "{} of the {} that class {} leaves for payload",
        percent(goodput / shaper.ceiling),
        rate(shaper.ceiling),
        own.id
    );
    let through = format!("{:.0} bytes left through class {} (tc -s class)", own.sent, own.id);
    let other = format!(
        "class {} may send {}, but sent only {:.0} bytes",
        better.id,
        rate(better.ceil),
        better.sent
    );
    Draft::new(RULE.id, place, Confidence::Likely, summary)
        .saw(place, RULE.witness_name, goodput / shaper.ceiling * 100.0, gives)
        .saw(place, "class_bytes", own.sent, through)
        .saw(place, "better_class_bits_per_s", better.ceil, other)
        .command(
            place,
            format!(
                "tc filter add dev {device} parent {}: protocol ip prio 65535 u32 match u32 0 0 flowid {}",
                own.id.split(':').next().unwrap_or("1"),
                better.id
            ),
            "for all that no other filter takes",
        )
}

/// Goodput as a percentage of what the flows' class allows.
fn witness(view: &View) -> Result<f64, Missing> {
    let own = used(&leaves(&view.sender)?)?;
    Ok(view.goodput()? / own.ceil * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Near;

    /// Class 1:10 of 900 Mbit/s, and 1:20 of 20 Mbit/s, which is the default.
    fn classes(sent: [u64; 2]) -> Case {
        let case = Case::path_rate().goodput(19.1e6).tbf(2e7, 1600);
        let case = case.fact(Near, "qdisc.kind", "htb").fact(Near, "class.default", "1:20");
        let class = |case: Case, id: &str, ceil: u64, sent: u64| {
            let name = |what: &str| format!("class.{id}.{what}");
            case.fact(Near, &name("rate_bits_per_s"), ceil)
                .fact(Near, &name("ceil_bits_per_s"), ceil)
                .fact(Near, &name("burst_bytes"), 1600u64)
                .fact(Near, &name("cburst_bytes"), 1600u64)
                .fact(Near, &name("level"), 0u64)
                .fact(Near, &name("parent"), "1:0")
                .grows(Near, &name("sent_bytes"), sent)
        };
        let case = class(case, "1:10", 900_000_000, sent[0]);
        class(case, "1:20", 20_000_000, sent[1])
    }

    #[test]
    fn fires_where_all_goes_through_a_slow_default() {
        let finding = fires(&RULE, classes([0, 10_000_000]));
        assert!(finding.summary.contains("1:20"), "{}", finding.summary);
        assert!(finding.advice[0].contains("flowid 1:10 "), "{:?}", finding.advice);
        assert!(finding.predicted_bits_per_s.value().unwrap().0 > 8e8);
    }

    #[test]
    fn stays_quiet_in_the_right_class_below_the_rate_and_without_classes() {
        quiet(&RULE, classes([10_000_000, 0]).goodput(860e6));
        quiet(&RULE, classes([0, 10_000_000]).goodput(10e6));
        quiet(&RULE, classes([0, 10_000_000]).fact(Near, "class.default", "none"));
        quiet(&RULE, Case::healthy());
    }

    #[test]
    fn fires_below_the_rate_if_packets_wait_for_its_tokens() {
        let below = || classes([0, 10_000_000]).goodput(16.5e6);
        fires(&RULE, below().overlimits(0.08));
        quiet(&RULE, below().overlimits(0.0));
    }

    #[test]
    fn cannot_tell_without_the_classes() {
        cannot_tell(&RULE, classes([0, 10_000_000]).without(Near, "class"));
    }
}
