//! How much a host can receive if it polls its card instead of taking interrupts: HZ × burst_max packets/s, by the
//! arithmetic of `goodput ceiling`.

use std::collections::BTreeSet;

use goodput_ceiling::{bounds, ceiling, number};
use goodput_model::{BitRate, CeilingInputs, Family, Transport};
use goodput_remote::PollingRates;

/// Share of the bound above which the bound is the limit: the rest is lost between two ticks.
const NEAR_THE_BOUND: f64 = 0.9;
/// Share of the bound above which the bound can't be right: ticks that begin and end a run are worth less.
const ABOVE_THE_BOUND: f64 = 1.05;

/// A run in which a card was polled.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PolledRun {
    /// The card.
    pub device: String,
    /// How often the card is polled, and how much each time.
    pub rates: PollingRates,
    /// Received packets, if the host reported them.
    pub packets_per_s: Option<f64>,
    /// Payload of the run.
    pub goodput: BitRate,
}

/// Payload bytes that a packet carries at most, however its frames were joined: an IP packet has a length of 16 bits.
const MOST_BYTES_PER_PACKET: f64 = 65_535.0;

impl PolledRun {
    /// Whether the received packets can have carried the run's payload, or its acknowledgements: Linux and FreeBSD
    /// acknowledge at least every second packet that the card joined.
    fn is_on_path(&self) -> bool {
        let least = self.goodput.0 / 8.0 / MOST_BYTES_PER_PACKET / 2.0;
        self.packets_per_s.is_none_or(|came| came >= least)
    }
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
    let PolledRun { device, rates, packets_per_s, goodput: measured } = run;
    let mut note = rates.bound(device)?;
    let most = rates.packets_per_s() as f64;
    if let Some(goodput) = goodput_of(*rates) {
        note += &format!(", {goodput} in segments of 1448 bytes");
    }
    let Some(came) = packets_per_s else { return Some(note) };
    if !run.is_on_path() {
        note += &format!(
            "; only {} packets/s came beside {measured}, so {device} is not on the path that was measured",
            number(came.round())
        );
        return Some(note);
    }
    let share = came / most;
    note += &format!("; {} packets/s came, {:.0} % of it", number(came.round()), share * 100.0);
    if share > ABOVE_THE_BOUND {
        note += ": more than the arithmetic allows, so the host takes packets at other times, too, or its clock is faster \
                 than it says";
    } else if share >= NEAR_THE_BOUND {
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
        PolledRun { device: "em0".into(), rates, packets_per_s, goodput: BitRate(450e6) }
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
    fn a_card_that_is_not_on_the_path_is_no_limit() {
        let [note] = &notes(&[run(1000, Some(0.0))])[..] else { panic!("one note") };
        assert!(
            note.ends_with(
                "0 packets/s came beside 450 Mbit/s, so em0 is not on the path that was measured"
            ),
            "{note}"
        );
    }

    #[test]
    fn more_than_the_bound_is_remarked() {
        let note = notes(&[run(100, Some(35_600.0))]).remove(0);
        assert!(note.contains("237 % of it: more than the arithmetic allows"), "{note}");
        assert!(!note.contains("polling is the limit"), "{note}");
    }

    #[test]
    fn an_idle_cpu_that_polls_has_no_bound() {
        let mut idle = run(1000, Some(1e6));
        idle.rates.idle_poll = true;
        assert_eq!(notes(&[idle]), [""; 0]);
    }
}
