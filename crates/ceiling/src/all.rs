//! All bounds that the inputs ask for, and the lowest of them.

use goodput_model::{BitRate, CeilingBound, CeilingInputs, Known, Missing};

use crate::bounds::{ALL, Bound};
use crate::inputs::given;
use crate::lines::Lines;

/// Part of a ceiling by which a measurement may exceed it before one of the two is wrong: a receiver's window
/// begins and ends within a batch of packets, and what waited in a queue before it is counted in it.
pub const MAX_EXCESS_SHARE: f64 = 0.02;

/// What the inputs allow.
#[derive(Debug, Clone, PartialEq)]
pub struct Ceiling {
    /// Every bound that was asked for, the lowest first, those that are unknown last.
    pub bounds: Vec<CeilingBound>,
}

impl Ceiling {
    /// The lowest bound that counts, and why there is none.
    pub fn lowest(&self) -> Result<(&CeilingBound, BitRate), Missing> {
        let counting = || self.bounds.iter().filter(|bound| bound.beside.is_none());
        let known = counting().find_map(|bound| Some((bound, *bound.bits_per_s.value()?)));
        known.ok_or_else(|| {
            let why = counting().find_map(|bound| bound.bits_per_s.get().err());
            why.unwrap_or_else(|| Missing::because("nothing is known that bounds the goodput"))
        })
    }

    /// The lowest bound's rate.
    pub fn rate(&self) -> Known<BitRate> {
        self.lowest().map(|(_, rate)| rate).into()
    }

    /// Seconds that `bytes` of payload take at that rate.
    pub fn transfer_s(&self, bytes: u64) -> Option<f64> {
        let (_, BitRate(rate)) = self.lowest().ok()?;
        Some(bytes as f64 * 8.0 / rate)
    }

    /// What speaks against the arithmetic if `measured` goodput was seen: the bounds that it exceeds.
    pub fn doubts(&self, measured: BitRate) -> Vec<String> {
        let counting = self.bounds.iter().filter(|bound| bound.beside.is_none());
        let exceeded = counting.filter_map(|bound| {
            let rate = *bound.bits_per_s.value()?;
            (measured.0 > rate.0 * (1.0 + MAX_EXCESS_SHARE)).then(|| {
                format!(
                    "{measured} was measured, but {} ({}) bounds it to {rate}: the model, an input or the \
                     measurement is wrong",
                    bound.title, bound.id
                )
            })
        });
        exceeded.collect()
    }
}

/// Works out every bound that the inputs ask for.
pub fn ceiling(inputs: &CeilingInputs) -> Ceiling {
    let asked = ALL.iter().filter(|bound| (bound.asked)(inputs));
    let mut bounds: Vec<_> = asked.map(|bound| worked_out(bound, inputs)).collect();
    let rate = |bound: &CeilingBound| bound.bits_per_s.value().map_or(f64::INFINITY, |rate| rate.0);
    bounds.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    Ceiling { bounds }
}

fn worked_out(bound: &Bound, inputs: &CeilingInputs) -> CeilingBound {
    let mut lines = Lines::default();
    let rate = (bound.work_out)(inputs, &mut lines);
    let rate = rate.and_then(|rate| given(Some(rate), "rate that comes out"));
    CeilingBound {
        id: bound.id.into(),
        title: bound.title.into(),
        bits_per_s: rate.map(BitRate).into(),
        beside: (bound.beside)(inputs),
        lines: lines.into_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds;

    fn example(id: &str) -> CeilingInputs {
        (bounds::find(id).unwrap().example)()
    }

    #[test]
    fn the_lowest_is_named_and_models_that_do_not_count_are_not() {
        let inputs = CeilingInputs {
            window_bytes: Some(1 << 30),
            rtt_us: Some(20_000.0),
            loss_percent: Some(3.0),
            ..example("wire")
        };
        let all = ceiling(&inputs);
        assert_eq!(all.bounds[0].id, "pftk");
        assert_eq!(all.lowest().unwrap().0.id, "cubic");
        let bbr = CeilingInputs { loss_model: Some("none".into()), ..inputs };
        assert_eq!(ceiling(&bbr).lowest().unwrap().0.id, "wire");
    }

    /// Origin C10: read and send, sendfile and cork all took 5.4 s for 64 MB at 100 Mbit/s: the wire.
    #[test]
    fn sixty_four_megabytes_take_5_4_seconds_at_100_megabits() {
        let inputs = CeilingInputs { link_bits_per_s: Some(BitRate(100e6)), ..example("wire") };
        let seconds = ceiling(&inputs).transfer_s(64_000_000).unwrap();
        assert!((seconds - 5.44).abs() < 0.01, "{seconds}");
    }

    #[test]
    fn a_measurement_above_it_is_doubted_and_one_below_is_not() {
        let all = ceiling(&example("wire"));
        assert_eq!(all.doubts(BitRate(945e6)), Vec::<String>::new());
        let doubts = all.doubts(BitRate(1.2e9));
        assert!(doubts[0].contains("bounds it to 941.5 Mbit/s"), "{doubts:?}");
    }

    #[test]
    fn nothing_given_is_no_bound_and_a_bound_that_lacks_something_says_what() {
        assert_eq!(ceiling(&CeilingInputs::default()).bounds, []);
        let inputs = CeilingInputs { window_bytes: Some(1), ..CeilingInputs::default() };
        let why = ceiling(&inputs).lowest().unwrap_err().to_string();
        assert_eq!(why, "no round-trip time was given");
    }
}
