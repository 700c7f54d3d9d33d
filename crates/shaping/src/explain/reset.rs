//! The rate that was asked about, as changes of a shaper that is set to another one.

use goodput_model::{Change, LocalShaper, SettingRef};

use super::Seen;
use super::local::{bottleneck, is_set_otherwise, parents};
use super::short::in_tc;
use crate::others::Counted;

/// Settings of rates (`goodput settings list`).
pub(super) const RATE: &str = "qdisc.tbf.rate";
pub(super) const CLASS_RATE: &str = "qdisc.htb.rate";
pub(super) const CEIL: &str = "qdisc.htb.ceil";
const BANDWIDTH: &str = "qdisc.cake.bandwidth";

/// The rate that was asked about, whole bits per second, if the shaper is set to another one and that is what limits. A faster
/// one in front of the shaper that was asked about stays: its rate is not what was asked about.
pub(super) fn wanted(seen: &Seen) -> Option<u64> {
    let shaper = seen.shaper()?;
    let wanted = seen.test.configured_bits_per_s.0;
    let limits = shaper.rate_bits_per_s.0 < wanted || seen.gives_what_is_set();
    (is_set_otherwise(seen.test, shaper) && limits).then(|| wanted.round() as u64)
}

/// The changes after which the shaper is set to the rate that was asked about; none if it is already.
pub(super) fn changes(seen: &Seen) -> Vec<Change> {
    let Some((wanted, shaper)) = wanted(seen).zip(seen.shaper()) else { return Vec::new() };
    let name = match shaper.kind.as_str() {
        "tbf" => RATE,
        "cake" => BANDWIDTH,
        _ => return of_classes(seen, shaper, wanted),
    };
    let now = seen.sender.before.count("qdisc.rate_bits_per_s").ok();
    now.map(|now| of(shaper, name, shaper.device.clone(), now, wanted)).into_iter().collect()
}

/// On the way of the traffic to the root, each ceil that is too low, or the lowest one, if that is too high; and the class's own
/// rate where it has to follow: what may not borrow gets no more than its rate, and what has a higher rate gets that.
fn of_classes(seen: &Seen, shaper: &LocalShaper, wanted: u64) -> Vec<Change> {
    let Some(leaf) = shaper.class.as_deref() else { return Vec::new() };
    let facts = seen.sender.before;
    let lowest = bottleneck(seen.sender, Counted { before: facts, after: seen.sender.after });
    let is_raised = shaper.rate_bits_per_s.0 < wanted as f64;
    let mut found = Vec::new();
    for class in [leaf].into_iter().chain(parents(seen.sender, leaf)) {
        let fact = |what: &str| facts.count(&format!("class.{class}.{what}_bits_per_s")).ok();
        let Some((rate, ceil)) = fact("rate").zip(fact("ceil")) else { continue };
        let other_ceil = match is_raised {
            true => ceil < wanted,
            false => lowest.as_deref() == Some(class),
        };
        let other_rate = match is_raised {
            true => other_ceil && rate == ceil,
            false => rate > wanted && (class == leaf || other_ceil),
        };
        let scope = format!("{}:{class}", shaper.device);
        let each = [(other_ceil, CEIL, ceil), (other_rate, CLASS_RATE, rate)];
        let each = each.into_iter().filter(|(is_other, ..)| *is_other);
        found.extend(each.map(|(_, name, now)| of(shaper, name, scope.clone(), now, wanted)));
    }
    found
}

fn of(shaper: &LocalShaper, name: &str, scope: String, now: u64, wanted: u64) -> Change {
    Change {
        setting: SettingRef { end: shaper.end, name: name.into(), scope: Some(scope) },
        from: Some(in_tc(now)),
        to: in_tc(wanted),
        why: "the rate that was asked about".into(),
    }
}
