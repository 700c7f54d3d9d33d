//! How much a host can receive if it polls its card instead of taking interrupts: HZ × burst_max packets/s, by the
//! arithmetic of `goodput ceiling`.

use std::collections::BTreeSet;

use goodput_ceiling::{bounds, ceiling, number};
use goodput_model::{BitRate, CeilingInputs, Family, Transport};
use goodput_remote::PollingRates;

/// Share of the bound above which the bound is the limit: the rest is lost between two ticks.
const NEAR_THE_BOUND: f64 = 0.9;

/// A run in which a card was polled.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PolledRun {
    /// The card.
    pub device: String,
    /// How often the card is polled, and how much each time.
    pub rates: PollingRates,
    /// Received packets, if the host reported them.
    pub packets_per_s: Option<f64>,
}

/// Notes about these runs: for each card and way to poll it, the run that received most.
pub(super) fn notes(runs: &[PolledRun]) -> Vec<String> {
    let mut most: Vec<&PolledRun> = Vec::new();
    for run in runs {
        let same = most.iter_mut().find(|of| of.device == run.device && of.rates == run.rates);
        match same {
            Some(of) if run.packets_per_s > of.packets_per_s => *of = run,
            Some(_) => {}
            None => most.push(run),
        }
    }
    let slow =
        most.iter().filter_map(|run| Some(format!("{}: {}", run.device, run.rates.too_slow()?)));
    let slow: BTreeSet<String> = slow.collect();
    most.iter().filter_map(|run| note(run)).chain(slow).collect()
}

fn note(run: &PolledRun) -> Option<String> {
    let PolledRun { device, rates, packets_per_s } = run;
    let mut note = rates.bound(device)?;
    let most = rates.packets_per_s() as f64;
    if let Some(goodput) = goodput_of(*rates) {
        note += &format!(", {goodput} in segments of 1448 bytes");
    }
    let Some(came) = packets_per_s else { return Some(note) };
    let share = came / most;
    note += &format!("; {} packets/s came, {:.0} % of it", number(came.round()), share * 100.0);
    if share >= NEAR_THE_BOUND {
        note += ", so polling is the limit: try a larger sysctl.kern.polling.burst_max, or kern.hz=\"1000\" in \
                 /boot/loader.conf";
    }
    Some(note)
}

/// The goodput with the largest segments of Ethernet.
fn goodput_of(rates: PollingRates) -> Option<BitRate> {
    let inputs = CeilingInputs {
        transport: Some(Transport::Tcp),
        family: Some(Family::V4),
        mtu_bytes: Some(1500),
        tcp_option_bytes: Some(goodput_ceiling::TIMESTAMPS_BYTES),
        polls_per_s: Some(rates.hz as f64),
        poll_packets: Some(rates.burst_max),
        ..CeilingInputs::default()
    };
    let id = bounds::find("polling")?.id;
    let bound = ceiling(&inputs).bounds.into_iter().find(|bound| bound.id == id)?;
    bound.bits_per_s.value().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(hz: u64, packets_per_s: Option<f64>) -> PolledRun {
        let rates = PollingRates { hz, burst_max: 150, idle_poll: false };
        PolledRun { device: "em0".into(), rates, packets_per_s }
    }

    #[test]
    fn a_slow_clock_bounds_the_goodput_to_174_megabits() {
        let notes = notes(&[run(100, Some(9_000.0)), run(100, Some(14_900.0)), run(100, None)]);
        let [bound, slow] = &notes[..] else { panic!("{notes:?}") };
        for part in [
            "at most 15000 packets/s from em0 (HZ 100 × burst_max 150), 173.8 Mbit/s in segments of 1448 bytes",
            "14900 packets/s came, 99 % of it, so polling is the limit",
        ] {
            assert!(bound.contains(part), "{part} is not in: {bound}");
        }
        assert!(slow.contains("em0: the host's clock has 100 ticks/s"), "{slow}");
    }

    #[test]
    fn far_below_the_bound_it_is_no_limit() {
        let notes = notes(&[run(1000, Some(8_600.0))]);
        assert!(notes.len() == 1 && notes[0].ends_with("6 % of it"), "{notes:?}");
        let silent = super::notes(&[run(1000, None)]);
        assert!(silent[0].ends_with("in segments of 1448 bytes"), "{silent:?}");
    }

    #[test]
    fn an_idle_cpu_that_polls_has_no_bound() {
        let mut idle = run(1000, Some(1e6));
        idle.rates.idle_poll = true;
        assert_eq!(notes(&[idle]), [""; 0]);
    }
}
