//! Whether a class gets what it should.

use goodput_model::{BitRate, ClassAnswer, Confirmation, Estimate, Known, ShapingClass};

use super::confirmation;
use crate::configured::Configured;

/// Where an estimate is, compared with the rates that pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Below,
    Inside,
    Above,
    /// The interval does not say.
    Unclear,
}

/// What a class gets, whose TCP and whose datagrams may get these rates at most beside the others.
pub(super) fn of(
    configured: Configured,
    class: &ShapingClass,
    most_tcp: BitRate,
    most_datagrams: BitRate,
) -> ClassAnswer {
    let rate = class.rate_bits_per_s;
    let place = |seen: &Known<Estimate>, least: BitRate, most: BitRate| {
        seen.value().map(|seen| place(configured, seen, least, most))
    };
    let beside = place(&class.beside_bits_per_s, rate, most_tcp);
    let datagrams = place(&class.datagrams_bits_per_s, rate, most_datagrams);
    let own = place(&class.alone_bits_per_s, rate, configured.rate);
    let ceil = match &class.ceil_bits_per_s {
        Known::Value(ceil) => place(&class.alone_bits_per_s, *ceil, *ceil),
        Known::Missing(_) => own,
    };
    let any = |wanted| [beside, datagrams].contains(&Some(wanted));
    match (own, ceil) {
        (Some(Place::Below), _) => ClassAnswer::TooSlow,
        (Some(Place::Inside | Place::Above), _) if any(Place::Below) => ClassAnswer::Starves,
        _ if any(Place::Below) => ClassAnswer::TooSlow,
        (_, Some(Place::Above)) => ClassAnswer::TooFast,
        _ if any(Place::Above) => ClassAnswer::TooFast,
        (_, Some(Place::Below)) => ClassAnswer::BelowCeil,
        // Datagrams of a busy sender come and go; TCP waits for its turn.
        (_, Some(Place::Inside)) if beside == Some(Place::Inside) => ClassAnswer::Gives,
        _ => ClassAnswer::Inconclusive,
    }
}

fn place(configured: Configured, seen: &Estimate, least: BitRate, most: BitRate) -> Place {
    let tolerance = configured.tolerance_percent / 100.0;
    let (least, most) = (least.0 * (1.0 - tolerance), most.0 * (1.0 + tolerance));
    if seen.value >= least && seen.value <= most {
        Place::Inside
    } else if seen.high < least {
        Place::Below
    } else if seen.low > most {
        Place::Above
    } else {
        Place::Unclear
    }
}

/// The answer for all classes together, with a sentence for each class that does not give what it should.
pub(super) fn of_all(
    configured: Configured,
    classes: &[ShapingClass],
    together: Option<&Estimate>,
) -> (Confirmation, Vec<String>) {
    let too_fast = together.filter(|all| {
        let zero = BitRate(0.0);
        place(configured, all, zero, configured.rate) == Place::Above
    });
    let too_fast = too_fast
        .map(|all| format!("nothing holds the classes together: they get {}", BitRate(all.value)));
    let any = |wanted| classes.iter().any(|class| confirmation(class.answer) == wanted);
    let all =
        match (any(Confirmation::Missed) || too_fast.is_some(), any(Confirmation::Inconclusive)) {
            (true, _) => Confirmation::Missed,
            (false, true) => Confirmation::Inconclusive,
            (false, false) => Confirmation::Confirmed,
        };
    (all, classes.iter().filter_map(reason).chain(too_fast).collect())
}

/// Why a class does not get what it should, in words.
fn reason(class: &ShapingClass) -> Option<String> {
    let ShapingClass { name, rate_bits_per_s: rate, .. } = class;
    let alone = words(&class.alone_bits_per_s);
    let beside = beside(class);
    Some(match class.answer {
        ClassAnswer::Gives => return None,
        // Only its datagrams do.
        ClassAnswer::Starves if has(&class.beside_bits_per_s, *rate) => {
            let (datagrams, tcp) =
                (words(&class.datagrams_bits_per_s), words(&class.beside_bits_per_s));
            format!(
                "{name} starves: its datagrams get {datagrams} of its {rate} beside the others (TCP {tcp}), and TCP {alone} \
                 alone"
            )
        }
        ClassAnswer::Starves => {
            format!(
                "{name} starves: it gets {beside} of its {rate} beside the others, and {alone} alone"
            )
        }
        ClassAnswer::TooSlow => {
            format!("{name} gets {alone} of its {rate} alone, {beside} beside the others")
        }
        ClassAnswer::TooFast => {
            format!("{name} gets more than it should: {alone} alone, {beside} beside the others")
        }
        ClassAnswer::BelowCeil => {
            let ceil = class.ceil_bits_per_s.value().copied().unwrap_or(*rate);
            format!("{name} does not borrow up to its ceil of {ceil}: it gets {alone} alone")
        }
        ClassAnswer::Inconclusive => {
            format!("{name}: too inexact to decide: {alone} alone, {beside} beside the others")
        }
    })
}

fn has(seen: &Known<Estimate>, rate: BitRate) -> bool {
    seen.value().is_some_and(|seen| seen.value >= rate.0)
}

/// What TCP gets beside the others, and datagrams, if they get something else.
fn beside(class: &ShapingClass) -> String {
    let tcp = words(&class.beside_bits_per_s);
    match &class.datagrams_bits_per_s {
        Known::Value(rate) => format!("{tcp} (datagrams {})", BitRate(rate.value)),
        Known::Missing(_) => tcp,
    }
}

fn words(rate: &Known<Estimate>) -> String {
    match rate {
        Known::Value(rate) => BitRate(rate.value).to_string(),
        Known::Missing(why) => format!("an unknown rate ({})", why.missing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_whose_datagrams_alone_starve_says_so() {
        let known = |mbit: f64| {
            let value = mbit * 1e6;
            Known::Value(Estimate { value, low: value, high: value })
        };
        let class = |beside, datagrams| ShapingClass {
            name: "ef".into(),
            rate_bits_per_s: BitRate(3e7),
            ceil_bits_per_s: Known::missing("not read"),
            most_bits_per_s: BitRate(3e7),
            htb_class: Known::missing("not read"),
            alone_bits_per_s: known(99.0),
            beside_bits_per_s: known(beside),
            datagrams_bits_per_s: known(datagrams),
            answer: ClassAnswer::Starves,
        };
        let said = "ef starves: its datagrams get 26.7 Mbit/s of its 30 Mbit/s beside the others (TCP 35.7 Mbit/s), and TCP 99 Mbit/s alone";
        assert_eq!(reason(&class(35.7, 26.7)).as_deref(), Some(said));
        let both = "ef starves: it gets 5 Mbit/s (datagrams 6 Mbit/s) of its 30 Mbit/s beside the others, and 99 Mbit/s alone";
        assert_eq!(reason(&class(5.0, 6.0)).as_deref(), Some(both));
    }
}
