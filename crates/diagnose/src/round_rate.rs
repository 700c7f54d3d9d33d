//! Recognises a contract: a goodput that is a round rate × a known share of headers.

use goodput_model::Missing;

use crate::finding::rate;
use crate::framing::{IP_EXTRA_BYTES, QDISC_EXTRA_BYTES, WIRE_EXTRA_BYTES, packet};
use crate::view::View;

/// Rates that are commonly sold and configured, in each decade.
const ROUND_RATES_PER_DECADE: [f64; 10] = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
/// How near a rate must be to a round one. Small, so that chance hits at most one in ten.
const MAX_RELATIVE_ERROR: f64 = 0.003;

/// A round rate and who would count it that way.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundRate {
    /// The round rate, bits per second.
    pub rate: f64,
    share: f64,
    counts: &'static str,
}

impl RoundRate {
    /// The equation, for a person.
    pub fn text(&self, goodput: f64) -> String {
        format!(
            "{} is {} × {:.4}, as {} gives",
            rate(goodput),
            rate(self.rate),
            self.share,
            self.counts
        )
    }
}

/// The nearest round rate that explains `goodput`, bits per second, if one does.
pub fn round_rate(view: &View, goodput: f64) -> Result<Option<RoundRate>, Missing> {
    let packet = packet(view)?;
    let counters = [
        (QDISC_EXTRA_BYTES, "a shaper that counts Ethernet frames"),
        (IP_EXTRA_BYTES, "a limit that counts IP packets"),
        (WIRE_EXTRA_BYTES, "a link of this speed"),
    ];
    let candidates = counters.into_iter().filter_map(|(extra, counts)| {
        let share = packet.share(extra);
        let (rate, error) = nearest_round(goodput / share)?;
        (error < MAX_RELATIVE_ERROR).then_some((error, RoundRate { rate, share, counts }))
    });
    Ok(candidates.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, round)| round))
}

/// The nearest round rate and the relative error.
fn nearest_round(rate: f64) -> Option<(f64, f64)> {
    let decade = 10f64.powf(rate.log10().floor());
    let off = |round: f64| ((rate / round - 1.0).abs(), round);
    let nearest = ROUND_RATES_PER_DECADE
        .iter()
        .map(|digit| off(digit * decade))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    nearest.map(|(error, round)| (round, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;

    fn of(goodput: f64) -> Option<RoundRate> {
        round_rate(&View::new(&Case::healthy().evidence()), goodput).unwrap()
    }

    #[test]
    fn the_measured_shaper_and_policer_are_distinguished() {
        let shaper = of(95.64e6).unwrap();
        assert_eq!(
            (shaper.rate.round(), shaper.counts),
            (1e8, "a shaper that counts Ethernet frames")
        );
        let policer = of(96.53e6).unwrap();
        assert_eq!((policer.rate.round(), policer.counts), (1e8, "a limit that counts IP packets"));
        let text = shaper.text(95.64e6);
        for fact in ["95.6 Mbit/s", "100 Mbit/s", "0.9564", shaper.counts] {
            assert!(text.contains(fact), "{fact} in {text}");
        }
    }

    #[test]
    fn most_rates_are_nothing_special() {
        assert_eq!(of(70e6), None);
        assert_eq!(of(86e6), None);
    }
}
