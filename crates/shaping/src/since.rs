//! What changed since the last test of the same shaper.

use goodput_model::{
    BitRate, Bytes, Confirmation, Difference, Estimate, Known, LocalShaper, Shaping, ShapingClass,
    ShapingKind, ShapingTest,
};

/// Largest difference between two rates that may be an error of measurement, as a share.
const RATE_ACCURACY: f64 = 0.005;
/// Largest such difference between two buckets, as a share.
const BUCKET_ACCURACY: f64 = 0.1;

/// The differences that count, a sentence each; none if nothing changed.
pub fn since(before: &ShapingTest, now: &ShapingTest) -> Vec<String> {
    let bits = |value: f64| BitRate(value).to_string();
    let bytes = |value: f64| Bytes(value.max(0.0).round() as u64).to_string();
    let rate = |who: &str, one: &Known<Estimate>, other: &Known<Estimate>| {
        changed(who, one, other, RATE_ACCURACY, |rate| bits(rate.value))
    };
    // How much of a bucket was seen that may not have been full depends on what crossed it before.
    let of_full = |train: &Shaping| match train.fills_for_longer() {
        Some(_) => Known::missing("it may not have been full"),
        None => train.bucket_bytes.clone(),
    };
    let bucket = |test: &ShapingTest| of_train(test, of_full);
    let size = |bucket: &Estimate| match bucket.low > 0.0 {
        true => bytes(bucket.value),
        false => format!("at most {}", bytes(bucket.high)),
    };
    let all = [
        confirmation(before.confirmation, now.confirmation),
        kind(before, now),
        rate("datagrams get", &before.datagrams_bits_per_s, &now.datagrams_bits_per_s),
        rate("TCP gets", &before.tcp_bits_per_s, &now.tcp_bits_per_s),
        changed("the bucket holds", &bucket(before), &bucket(now), BUCKET_ACCURACY, size),
        set(&before.shaper, &now.shaper),
    ];
    let classes = before.classes.iter().zip(&now.classes);
    let of_class = |(one, other): (&ShapingClass, &ShapingClass)| {
        let name = &other.name;
        [
            rate(&format!("{name} alone gets"), &one.alone_bits_per_s, &other.alone_bits_per_s),
            rate(
                &format!("{name} beside the others gets"),
                &one.beside_bits_per_s,
                &other.beside_bits_per_s,
            ),
        ]
    };
    all.into_iter().chain(classes.flat_map(of_class)).flatten().collect()
}

fn of_train(test: &ShapingTest, what: impl Fn(&Shaping) -> Known<Estimate>) -> Known<Estimate> {
    match &test.train {
        Known::Value(train) => what(train),
        Known::Missing(why) => Known::Missing(why.clone()),
    }
}

fn confirmation(before: Confirmation, now: Confirmation) -> Option<String> {
    let words = match (before, now) {
        (Confirmation::Missed, Confirmation::Confirmed) => {
            "the shaper gives what was asked for; then it did not"
        }
        (Confirmation::Confirmed, Confirmation::Missed) => {
            "the shaper does not give what was asked for; then it did"
        }
        _ => return None,
    };
    Some(words.into())
}

fn kind(before: &ShapingTest, now: &ShapingTest) -> Option<String> {
    let (before, now) = (known_kind(before)?, known_kind(now)?);
    (before != now).then(|| format!("now {}; last time {}", kind_words(now), kind_words(before)))
}

/// What holds the rate. A train of which no more came than the rate does not show whether anything does.
fn known_kind(test: &ShapingTest) -> Option<ShapingKind> {
    let kind = test.train.value()?.kind;
    (kind != ShapingKind::None || test.is_unheld()).then_some(kind)
}

fn kind_words(kind: ShapingKind) -> &'static str {
    match kind {
        ShapingKind::Shaper => "a shaper",
        ShapingKind::Policer => "a policer",
        ShapingKind::None => "nothing that holds the rate",
    }
}

/// A value whose interval lies beside the earlier one, by more than the measurement's accuracy. If only a bound is known of
/// either, nobody knows how many times as much it is.
fn changed(
    who: &str,
    before: &Known<Estimate>,
    now: &Known<Estimate>,
    accuracy: f64,
    words: impl Fn(&Estimate) -> String,
) -> Option<String> {
    let (before, now) = (before.value()?, now.value()?);
    let apart = now.high < before.low || now.low > before.high;
    let said = format!("{who} {} instead of {}", words(now), words(before));
    if now.low <= 0.0 || before.low <= 0.0 {
        return apart.then_some(said);
    }
    let ratio = now.value / before.value;
    let difference = Difference((ratio - 1.0) * 100.0);
    (apart && (ratio - 1.0).abs() > accuracy).then(|| format!("{said}, {difference}"))
}

/// Another setting of the same shaper: one test may have looked at a router, the other at the sender. A test that read none says
/// why, which may be that there is none.
fn set(before: &Known<LocalShaper>, now: &Known<LocalShaper>) -> Option<String> {
    let router = |shaper: &LocalShaper| shaper.router.clone();
    match (before, now) {
        (Known::Value(before), Known::Value(now)) => {
            let is_other = router(before) == router(now) && settings(before) != settings(now);
            is_other.then(|| format!("set: {} instead of {}", settings(now), settings(before)))
        }
        (Known::Value(before), Known::Missing(why)) if before.router.is_none() => {
            Some(format!("set: {why}; before: {}", settings(before)))
        }
        (Known::Missing(why), Known::Value(now)) if now.router.is_none() => {
            Some(format!("set: {}; before: {why}", settings(now)))
        }
        _ => None,
    }
}

fn settings(shaper: &LocalShaper) -> String {
    let burst = shaper.burst_bytes.value().map(|burst| format!(", burst {burst}"));
    let (kind, rate) = (&shaper.kind, shaper.rate_bits_per_s);
    format!("{kind} on {}, rate {rate}{}", shaper.device, burst.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::tests::{explained, tbf, test};

    #[test]
    fn the_same_again_is_no_change_and_less_is_one() {
        let facts = |burst| tbf(100_000_000, burst, 1_000_000);
        let seen = |rate, burst| {
            let facts = facts(burst);
            explained(test(ShapingKind::Shaper, rate, rate), &facts, &facts)
        };
        assert_eq!(since(&seen(1e8, 100_000), &seen(1.001e8, 100_000)), [""; 0]);
        let less = since(&seen(1e8, 100_000), &seen(9e7, 1600));
        assert_eq!(
            less,
            [
                "datagrams get 90 Mbit/s instead of 100 Mbit/s, -10.0 %",
                "TCP gets 90 Mbit/s instead of 100 Mbit/s, -10.0 %",
                "set: tbf on eth0, rate 100 Mbit/s, burst 1.60 kB instead of tbf on eth0, rate 100 Mbit/s, burst 100 kB",
            ]
        );
    }

    #[test]
    fn the_shapers_of_different_hosts_are_not_compared() {
        let seen = |router: Option<&str>, rate| {
            let facts = tbf(rate, 100_000, 1_000_000);
            let mut seen = explained(test(ShapingKind::Shaper, 1e8, 1e8), &facts, &facts);
            if let Known::Value(shaper) = &mut seen.shaper {
                shaper.router = router.map(str::to_owned);
            }
            seen
        };
        let changes = |before, now| since(&seen(before, 100_000_000), &seen(now, 90_000_000)).len();
        assert_eq!(changes(None, Some("ssh://r")), 0);
        assert_eq!(changes(Some("ssh://q"), Some("ssh://r")), 0);
        assert_eq!(changes(Some("ssh://r"), Some("ssh://r")), 1);
    }

    #[test]
    fn a_shaper_that_was_not_read_is_not_said_to_be_gone() {
        let facts = tbf(100_000_000, 100_000, 500_000);
        let before = explained(test(ShapingKind::Shaper, 1e8, 1e8), &facts, &facts);
        let why = "no class of htb counted the traffic";
        let now = ShapingTest { shaper: Known::missing(why), ..before.clone() };
        let set = "set: no class of htb counted the traffic; before: tbf on eth0, rate 100 Mbit/s, burst 100 kB";
        assert_eq!(since(&before, &now), [set]);
        assert_eq!(since(&now, &now), [""; 0]);
    }

    #[test]
    fn another_kind_and_a_rate_that_is_given_again_are_reported() {
        let (mut before, mut now) =
            (test(ShapingKind::Policer, 1e8, 1e8), test(ShapingKind::Shaper, 1e8, 1e8));
        (before.confirmation, now.confirmation) = (Confirmation::Missed, Confirmation::Confirmed);
        assert_eq!(
            since(&before, &now),
            [
                "the shaper gives what was asked for; then it did not",
                "now a shaper; last time a policer"
            ]
        );
    }

    /// The earlier test knew only that the bucket holds no more than 6.49 kB.
    #[test]
    fn a_bound_is_said_as_one_and_has_no_ratio() {
        let seen = |value, low, high| {
            let mut test = test(ShapingKind::Shaper, 1e8, 1e8);
            if let Known::Value(train) = &mut test.train {
                train.bucket_bytes = Known::Value(Estimate { value, low, high });
            }
            test
        };
        let (bound, known) = (seen(1190.0, -3e3, 6490.0), seen(69.8e3, 68e3, 71e3));
        let said = "the bucket holds 69.8 kB instead of at most 6.49 kB";
        assert_eq!(since(&bound, &known), [said]);
        let said = "the bucket holds at most 6.49 kB instead of 69.8 kB";
        assert_eq!(since(&known, &bound), [said]);
        assert_eq!(since(&bound, &seen(2e3, -2e3, 7e3)), [""; 0]);
    }

    #[test]
    fn a_sender_below_the_rate_shows_no_other_kind() {
        let before = test(ShapingKind::Shaper, 1e8, 1e8);
        let mut now = test(ShapingKind::None, 1e8, 1e8);
        now.tcp_bits_per_s = Known::missing("not measured");
        if let Known::Value(train) = &mut now.train {
            train.sent = 40_000;
        }
        assert_eq!(since(&before, &now), ["now nothing that holds the rate; last time a shaper"]);
        if let Known::Value(train) = &mut now.train {
            train.offered_bits_per_s = BitRate(9e7);
        }
        assert_eq!(since(&before, &now), [""; 0]);
    }
}
