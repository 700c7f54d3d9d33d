//! Whether the burst that a shaper lets through is small enough.

use goodput_model::{BitRate, Bytes, Confirmation, Estimate, Missing, Seconds, Shaping};

/// Whether the burst is at most `most`, with the reason. `rate`: the configured one.
pub(crate) fn burst(
    most: Bytes,
    rate: BitRate,
    train: &Result<Shaping, Missing>,
) -> (Confirmation, String) {
    let train = match train {
        Ok(train) => train,
        Err(why) => return unknown(why),
    };
    match train.bucket_bytes.get() {
        Ok(bucket) => of_bucket(most, bucket, train.fills_for_longer()),
        // What came above the rate without a limit is a burst, however long it might go on.
        Err(why) => match train.excess_bytes(rate) {
            least if train.exceeds(rate, 0.0) && least > most => {
                (Confirmation::Missed, format!("a burst of {least} or more gets through"))
            }
            _ => unknown(why.clone()),
        },
    }
}

fn unknown(why: impl std::fmt::Display) -> (Confirmation, String) {
    (Confirmation::Inconclusive, format!("the burst is unknown: {why}"))
}

/// `fills_s`: how long the bucket takes to fill, if it may not have been full.
fn of_bucket(most: Bytes, bucket: &Estimate, fills_s: Option<f64>) -> (Confirmation, String) {
    // An interval from zero says only how large the burst is at most.
    let (about, known) = match bucket.low > 0.0 {
        true => ("", bucket.value),
        false => ("at most ", bucket.high.max(0.0)),
    };
    let words = format!("a burst of {about}{} gets through", Bytes(known.round() as u64));
    let most = most.0 as f64;
    match (known <= most, bucket.low > most, fills_s) {
        (true, _, Some(fills_s)) => {
            let fills = Seconds(fills_s);
            let words = format!(
                "{words}, or a larger one: the bucket fills for {fills} or more, and may not have been full"
            );
            (Confirmation::Inconclusive, words)
        }
        (true, _, None) => (Confirmation::Confirmed, words),
        (_, true, _) => (Confirmation::Missed, words),
        _ => (Confirmation::Inconclusive, format!("{words}, too inexactly known to decide")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tests::train;
    use goodput_model::{Known, ShapingKind};

    const RATE: BitRate = BitRate(1e8);

    #[test]
    fn a_burst_of_which_only_a_bound_is_known_is_confirmed_by_the_bound() {
        let bound = Estimate { value: -8e3, low: -9e3, high: 19e3 };
        let seen = Shaping { bucket_bytes: Known::Value(bound), ..train(1e8) };
        let (kept, said) = burst(Bytes(20_000), RATE, &Ok(seen.clone()));
        assert_eq!(
            (kept, &*said),
            (Confirmation::Confirmed, "a burst of at most 19 kB gets through")
        );
        assert_eq!(burst(Bytes(10_000), RATE, &Ok(seen)).0, Confirmation::Inconclusive);
    }

    /// A limit of nftables in bytes holds a second of its rate, which a rest of a second may not fill.
    #[test]
    fn a_bucket_that_may_not_have_been_full_is_at_least_so_deep() {
        let deep = Estimate { value: 13e6, low: 12.9e6, high: 13.1e6 };
        let seen = Ok(Shaping { bucket_bytes: Known::Value(deep), ..train(1e8) });
        let (kept, said) = burst(Bytes(20_000_000), RATE, &seen);
        assert!(kept == Confirmation::Inconclusive && said.contains("fills for 1.04 s"), "{said}");
        assert_eq!(burst(Bytes(10_000_000), RATE, &seen).0, Confirmation::Missed);
    }

    #[test]
    fn what_nothing_held_is_a_burst() {
        let free = Shaping {
            kind: ShapingKind::None,
            bucket_bytes: Known::missing("all came as fast as they were sent"),
            ..train(1e8)
        };
        // 1000 frames at four times the rate.
        let (kept, said) = burst(Bytes(100_000), RATE, &Ok(free.clone()));
        assert!(kept == Confirmation::Missed && said.contains("1.14 MB or more"), "{said}");
        assert_eq!(burst(Bytes(2_000_000), RATE, &Ok(free)).0, Confirmation::Inconclusive);
    }
}
