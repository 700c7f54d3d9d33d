//! Whether someone changed the shaper while it was measured.

use std::collections::BTreeSet;

use goodput_model::{BitRate, Bytes, Fact, PacketBytes, Snapshot};

/// What a shaper is set to, by the ends of the facts' names. Of htb's discipline, only the classes and the table of sizes
/// have it.
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

/// Those that are sizes of a packet or of a part of one, which have every byte. What a table takes off a packet is below 0.
const OF_A_PACKET: [&str; 3] = ["quantum_bytes", "overhead_bytes", "least_bytes"];

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
    let names: BTreeSet<&String> = one.facts.keys().chain(other.facts.keys()).collect();
    let differs = |name: &String| {
        let (of, what) = setting(kind, name)?;
        if is_unread(one, name) || is_unread(other, name) {
            return None;
        }
        let [before, after] = [one, other].map(|look| look.facts.get(name));
        let [said, then] = [before, after]
            .map(|fact| fact.map_or_else(|| "none".into(), |fact| value(what, fact)));
        let what = words(what);
        (before != after).then(|| format!("{of}{kind} on {device} had {what} {said}, then {then}"))
    };
    names.into_iter().find_map(differs)
}

/// Whether the look says why it lacks this fact, or all of which it is part. Without a reason, it is not set.
fn is_unread(look: &Snapshot, name: &str) -> bool {
    let is_part = |rest: &str| rest.is_empty() || rest.starts_with('.');
    look.missing.keys().any(|lacking| name.strip_prefix(lacking.as_str()).is_some_and(is_part))
}

/// Of what, in words, this fact is which setting; `None` if it is none.
fn setting<'a>(kind: &str, name: &'a str) -> Option<(String, &'a str)> {
    let (place, what) = name.rsplit_once('.').filter(|(_, what)| SETTINGS.contains(what))?;
    let of = match (place, place.strip_prefix("class.")) {
        ("qdisc.table", _) => "the table of sizes of ".into(),
        ("qdisc", _) if kind != "htb" => String::new(),
        (_, Some(class)) if kind == "htb" => format!("class {class} of "),
        _ => return None,
    };
    Some((of, what))
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
    if what.ends_with("_bits_per_s") {
        return BitRate(number).to_string();
    }
    let size = number.abs() as u64;
    let sign = if number < 0.0 { "-" } else { "" };
    match OF_A_PACKET.contains(&what) {
        true => format!("{sign}{}", PacketBytes(size)),
        false => format!("{sign}{}", Bytes(size)),
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
        let said = "tbf on eth0 had rate 100 Mbit/s, then 50 Mbit/s";
        assert_eq!(changed(&[&one, &one, &other, &other]).as_deref(), Some(said));
        let none = device("noqueue", &[], &[]);
        let said = "the queueing discipline of eth0 was tbf, then noqueue";
        assert_eq!(changed(&[&one, &none]).as_deref(), Some(said));
    }

    #[test]
    fn a_setting_that_comes_or_goes_has_changed() {
        let peak = |counts: &[(&str, u64)]| device("tbf", counts, &[]);
        let (without, with) = (peak(&[]), peak(&[("qdisc.peak_rate_bits_per_s", 20_000_000)]));
        let said = "tbf on eth0 had peak rate none, then 20 Mbit/s";
        assert_eq!(changed(&[&without, &with]).as_deref(), Some(said));
        let said = "tbf on eth0 had peak rate 20 Mbit/s, then none";
        assert_eq!(changed(&[&with, &without]).as_deref(), Some(said));
        let table = |overhead: f64| {
            let mut facts = device("htb", &[], &[]);
            facts.put("qdisc.table.overhead_bytes", overhead);
            facts
        };
        let said = "the table of sizes of htb on eth0 had overhead 18 bytes, then -4 bytes";
        assert_eq!(changed(&[&table(18.0), &table(-4.0)]).as_deref(), Some(said));
        let mut unread = device("htb", &[], &[]);
        unread.lacks("qdisc.table", "the kernel did not answer");
        assert_eq!(changed(&[&table(18.0), &unread]), None, "what was not read is not known");
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
        let said = "class 1:10 of htb on eth0 had ceil 20 Mbit/s, then 30 Mbit/s";
        assert_eq!(
            changed(&[&htb(1, 20_000_000, 5), &htb(1, 30_000_000, 5)]).as_deref(),
            Some(said)
        );
    }
}
