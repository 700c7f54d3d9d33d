//! How much round trips vary while nothing else is on the path.

use goodput_model::Exchange;

use super::View;

/// Fewer idle exchanges have no ninth decile.
const MIN_EXCHANGES: usize = 10;

impl View<'_> {
    /// How much longer a round trip may take than the shortest although nothing waits in a queue, seconds: the ninth decile of
    /// the exchanges of the clocks before the payload. This is what these hosts' timers and wake-ups add, and what varies on
    /// this path. `None` if there were too few.
    pub fn idle_jitter_s(&self) -> Option<f64> {
        let began_ns = self.evidence.near.value()?.clock.as_ref()?.began_ns;
        let idle = self.evidence.clocks.exchanges.iter().filter(|e| e.back_ns <= began_ns);
        let mut trips_ns: Vec<u64> = idle.filter_map(round_trip_ns).collect();
        trips_ns.sort_unstable();
        let (least, high) = (trips_ns.first()?, trips_ns.get(trips_ns.len() * 9 / 10)?);
        (trips_ns.len() >= MIN_EXCHANGES).then(|| (high - least) as f64 / 1e9)
    }
}

/// Time on both ways, nanoseconds; `None` if a clock ran backwards.
fn round_trip_ns(exchange: &Exchange) -> Option<u64> {
    let all = exchange.back_ns.checked_sub(exchange.sent_ns)?;
    all.checked_sub(exchange.answered_ns.checked_sub(exchange.received_ns)?)
}

#[cfg(test)]
mod tests {
    use goodput_model::Evidence;

    use super::*;
    use crate::testing::Case;

    /// Each second exchange before the payload takes this much longer.
    fn varies(by_ns: u64) -> Evidence {
        let mut evidence = Case::path_rate().evidence();
        for exchange in evidence.clocks.exchanges.iter_mut().step_by(2) {
            exchange.back_ns += by_ns;
        }
        evidence
    }

    #[test]
    fn late_is_what_round_trips_vary_by_on_the_idle_path() {
        let late_s = |by_ns| View::new(&varies(by_ns)).late_s();
        assert_eq!(late_s(0), late_s(300_000), "less than any host may take");
        assert!((late_s(4_000_000) - 0.004).abs() < 1e-4, "{}", late_s(4_000_000));
    }

    #[test]
    fn it_is_unknown_without_exchanges() {
        let mut evidence = varies(0);
        evidence.clocks.exchanges.truncate(MIN_EXCHANGES - 1);
        assert_eq!(View::new(&evidence).idle_jitter_s(), None);
    }
}
