//! How much a cause lets through: the amount that a change may raise while the same cause goes on limiting.
//!
//! A cause has an amount here if it is read apart from the goodput. The cost of a CPU is a witness already.

use goodput_model::{LimitAmount, Missing};

use crate::ceiling::link_ceiling;
use crate::shaper::Shaper;
use crate::view::View;

/// The amount of some causes.
struct Amount {
    /// With its unit at the end.
    name: &'static str,
    /// Ids of the rules that name these causes.
    rules: &'static [&'static str],
    read: fn(&View) -> Result<f64, Missing>,
    /// Whether the goodput is in proportion to it, as long as nothing else limits.
    is_proportional: bool,
}

/// All of them. What a window or a buffer lets be in flight is sent once in each round trip. A congestion window is none: it
/// follows from what arrived.
const AMOUNTS: [Amount; 6] = [
    Amount {
        name: "receive_window_bytes",
        rules: &["receive-window", "route-window", "window-scaling-off"],
        read: |view| view.sender.peer_window_bytes().or_else(|_| view.receiver.own_window_bytes()),
        is_proportional: true,
    },
    Amount {
        name: "send_buffer_bytes",
        rules: &["send-buffer"],
        read: |view| view.sender.send_buffer_bytes(),
        is_proportional: true,
    },
    Amount {
        name: "bucket_bytes",
        rules: &["shaper-burst"],
        read: |view| shaper(view)?.burst,
        // A frame that waits for tokens costs less, the fewer of them wait.
        is_proportional: false,
    },
    Amount {
        name: "shaper_rate_bits_per_s",
        rules: &["shaper-rate", "wrong-class"],
        read: |view| Ok(shaper(view)?.rate),
        is_proportional: true,
    },
    Amount {
        name: "link_rate_bits_per_s",
        rules: &["line-rate", "link-speed"],
        read: slower_link,
        is_proportional: true,
    },
    Amount {
        name: "pacing_rate_bits_per_s",
        rules: &["pacing-cap"],
        read: |view| {
            let cap = view.plan().socket.max_pacing_bits_per_s;
            cap.map(|cap| cap.0).ok_or_else(|| Missing::because("the plan has no cap"))
        },
        is_proportional: true,
    },
];

/// How much the cause that `rule` names lets through. `None` if it has no amount, or if the amount can't be read.
pub(crate) fn limit_amount(view: &View, rule: &str) -> Option<LimitAmount> {
    let amount = AMOUNTS.iter().find(|amount| amount.rules.contains(&rule))?;
    let value = (amount.read)(view).ok().filter(|value| value.is_finite())?;
    let (name, is_proportional) = (amount.name.into(), amount.is_proportional);
    Some(LimitAmount { name, value, is_proportional })
}

fn shaper<'a>(view: &View<'a>) -> Result<Shaper<'a>, Missing> {
    Shaper::of(view)?.ok_or_else(|| Missing::because("no local shaper"))
}

/// Goodput that the slower link of the two ends carries, bits per second.
fn slower_link(view: &View) -> Result<f64, Missing> {
    let links = view.sides().into_iter().filter_map(|side| link_ceiling(view, side).ok());
    links.reduce(f64::min).ok_or_else(|| Missing::because("no link reports a speed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules;
    use crate::testing::Case;

    #[test]
    fn each_amount_belongs_to_rules_that_exist_and_each_rule_has_one() {
        let named: Vec<&str> = AMOUNTS.iter().flat_map(|amount| amount.rules).copied().collect();
        for (place, rule) in named.iter().enumerate() {
            assert!(rules::find(rule).is_some(), "{rule}");
            assert!(!named[..place].contains(rule), "{rule} has two amounts");
        }
        for Amount { name, .. } in &AMOUNTS {
            assert!(name.ends_with("_bytes") || name.ends_with("_bits_per_s"), "{name}");
        }
    }

    #[test]
    fn a_window_and_a_bucket_are_read_and_a_foreign_rate_is_not() {
        let of = |case: Case, rule: &str| {
            let evidence = case.evidence();
            limit_amount(&View::new(&evidence), rule)
        };
        let case = Case::receive_window().tcp(|tcp, _| tcp.snd_wnd_bytes = Some(131_072));
        let window = of(case, "receive-window").unwrap();
        assert_eq!((window.name.as_str(), window.value), ("receive_window_bytes", 131_072.0));
        let bucket = of(Case::healthy().tbf(1e8, 125_000), "shaper-burst").unwrap();
        assert_eq!((bucket.value, bucket.is_proportional), (125_000.0, false));
        assert_eq!(of(Case::path_rate(), "path-rate"), None);
        assert_eq!(of(Case::empty(), "receive-window"), None);
    }
}
