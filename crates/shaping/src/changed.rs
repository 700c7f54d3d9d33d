//! Whether someone changed the shaper while it was measured.

use goodput_model::{BitRate, Bytes, Fact, Snapshot};

/// What a shaper is set to, by the ends of the facts' names. Of htb's discipline, only the classes have it.
const SETTINGS: [&str; 10] = [
    "rate_bits_per_s",
    "ceil_bits_per_s",
    "peak_rate_bits_per_s",
    "burst_bytes",
    "cburst_bytes",
    "limit_bytes",
    "quantum_bytes",
    "overhead_bytes",
    "least_bytes",
    "link_layer",
];

/// The first setting of the shaper that differs between two of these looks, in words.
pub(crate) fn changed(looks: &[&Snapshot]) -> Option<String> {
    looks.windows(2).find_map(|two| between(two[0], two[1]))
}

fn between(one: &Snapshot, other: &Snapshot) -> Option<String> {
    let (kind, now) = (one.text("qdisc.kind").ok()?, other.text("qdisc.kind").ok()?);
    let device = one.text("link.device").unwrap_or("the device");
    if kind != now {
        return Some(format!("the queueing discipline of {device} was {kind}, then {now}"));
    }
    let of = if kind == "htb" { "class." } else { "qdisc." };
    let differs = |(name, before): (&String, &Fact)| {
        let (place, what) =
            name.strip_prefix(of).map(|rest| rest.rsplit_once('.').unwrap_or(("", rest)))?;
        let after =
            other.facts.get(name).filter(|after| SETTINGS.contains(&what) && *after != before)?;
        let place = if kind == "htb" { format!("class {place} of ") } else { String::new() };
        let [before, after] = [before, after].map(|fact| value(what, fact));
        let what = words(what);
        Some(format!("{place}{kind} on {device} had a {what} of {before}, then of {after}"))
    };
    one.facts.iter().find_map(differs)
}

/// `peak_rate_bits_per_s`: `peak rate`.
fn words(what: &str) -> String {
    let bare =
        what.strip_suffix("_bits_per_s").or_else(|| what.strip_suffix("_bytes")).unwrap_or(what);
    bare.replace('_', " ")
}

fn value(what: &str, fact: &Fact) -> String {
    let number = match fact {
        Fact::Count(count) => *count as f64,
        Fact::Real(real) => *real,
        Fact::Text(text) => return text.clone(),
    };
    match what.ends_with("_bits_per_s") {
        true => BitRate(number).to_string(),
        false => Bytes(number as u64).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::tests::{device, tbf};

    #[test]
    fn a_shaper_that_was_changed_is_named_with_both_values() {
        let (one, other) = (tbf(100_000_000, 70_000, 200_000), tbf(50_000_000, 70_000, 200_000));
        assert_eq!(changed(&[&one, &one, &one]), None);
        let said = "tbf on eth0 had a rate of 100 Mbit/s, then of 50 Mbit/s";
        assert_eq!(changed(&[&one, &one, &other, &other]).as_deref(), Some(said));
        let none = device("noqueue", &[], &[]);
        let said = "the queueing discipline of eth0 was tbf, then noqueue";
        assert_eq!(changed(&[&one, &none]).as_deref(), Some(said));
    }

    /// The rate in the facts of htb's discipline is that of the class that was busiest, which may be another one later.
    #[test]
    fn of_htb_the_classes_count_and_no_counter_does() {
        let htb = |busiest: u64, ceil: u64, sent: u64| {
            let counts = [
                ("qdisc.rate_bits_per_s", busiest),
                ("class.1:10.ceil_bits_per_s", ceil),
                ("class.1:10.sent_bytes", sent),
            ];
            device("htb", &counts, &[])
        };
        assert_eq!(changed(&[&htb(1, 20_000_000, 5), &htb(2, 20_000_000, 9)]), None);
        let said = "class 1:10 of htb on eth0 had a ceil of 20 Mbit/s, then of 30 Mbit/s";
        assert_eq!(
            changed(&[&htb(1, 20_000_000, 5), &htb(1, 30_000_000, 5)]).as_deref(),
            Some(said)
        );
    }
}
