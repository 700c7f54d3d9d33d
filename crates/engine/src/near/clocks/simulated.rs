//! Two hosts, their clocks and a path in virtual time: the result of the exchanges contains the truth, whatever is
//! lost, late or invented.

use goodput_diagnose::clocks::{Idle, relation};
use goodput_model::{ClockRelation, Exchange, Missing};
use goodput_wire::clock_questions::ClockQuestions;
use proptest::prelude::*;

const NS_PER_MS: u64 = 1_000_000;
/// When payload begins and ends by the near clock, nanoseconds.
const LOADED: (u64, u64) = (1000 * NS_PER_MS, 5000 * NS_PER_MS);

/// A path and a far clock.
#[derive(Debug, Clone, Copy)]
struct SimulatedPath {
    ahead_ns: i64,
    ppm: f64,
    /// Time that each direction takes when idle, nanoseconds.
    ways_ns: (u64, u64),
    /// Time that each direction queues while payload moves.
    queues_ns: (u64, u64),
}

impl SimulatedPath {
    fn far_ns(&self, at_ns: u64) -> u64 {
        (at_ns as f64 * (1.0 + self.ppm * 1e-6)) as u64 + self.ahead_ns as u64
    }

    /// How far the far clock is ahead at a time of the near clock.
    fn truly_ahead_ns(&self, at_ns: u64) -> f64 {
        self.far_ns(at_ns) as f64 - at_ns as f64
    }

    /// Asks at these times. For each question, `spoil` says how much later its answer comes, nanoseconds, or that it
    /// never comes.
    fn asked(
        &self,
        at: impl Iterator<Item = u64>,
        spoil: impl Fn(u64) -> Option<u64>,
    ) -> Vec<Exchange> {
        let mut questions = ClockQuestions::default();
        let exchange = |sent_ns: u64| {
            let number = questions.ask(sent_ns);
            let loaded = (LOADED.0..LOADED.1).contains(&sent_ns);
            let (there, back) = if loaded { self.queues_ns } else { (0, 0) };
            let arrived_ns = sent_ns + self.ways_ns.0 + there;
            let answered_ns = arrived_ns + spoil(number)?;
            let times = (self.far_ns(arrived_ns), self.far_ns(answered_ns));
            let back_ns = answered_ns + self.ways_ns.1 + back;
            let exchange = questions.compared(number, times, back_ns);
            // The network may deliver it twice.
            assert_eq!(questions.compared(number, times, back_ns + NS_PER_MS), None);
            exchange
        };
        at.filter_map(exchange).collect()
    }

    /// The questions that go over UDP: before, while and after payload moves.
    fn compared(&self, spoil: impl Fn(u64) -> Option<u64>) -> Vec<Exchange> {
        let idle = |from_ms: u64| (0..16).map(move |n| (from_ms + 4 * n) * NS_PER_MS);
        let loaded = (1000..5000).step_by(50).map(|ms| ms * NS_PER_MS);
        self.asked(idle(700).chain(loaded).chain(idle(5500)), spoil)
    }

    fn is_within(&self, found: &ClockRelation) -> bool {
        [found.from_ns, found.to_ns].iter().all(|at_ns| {
            let since = (at_ns - found.from_ns) as f64;
            let said = found.ahead_ns as f64 + since * found.drift_ppm * 1e-6;
            // Numbers of this size have nanosecond resolution at best.
            (said - self.truly_ahead_ns(*at_ns)).abs() <= found.error_ns + 4.0
        })
    }
}

fn world() -> impl Strategy<Value = SimulatedPath> {
    let way = 10_000u64..80 * NS_PER_MS;
    let queue = 0..200 * NS_PER_MS;
    (0i64..1 << 50, -400.0f64..400.0, (way.clone(), way), (queue.clone(), queue)).prop_map(
        |(ahead_ns, ppm, ways_ns, queues_ns)| SimulatedPath { ahead_ns, ppm, ways_ns, queues_ns },
    )
}

proptest! {
    /// However asymmetric: the truth lies within the bound, and the bound is no more than a round trip.
    #[test]
    fn offset_and_drift_are_bounded_by_the_fastest_round_trips(world in world()) {
        let found = relation(&world.compared(|_| Some(0)), false).unwrap();
        prop_assert!(world.is_within(&found), "{found:?}");
        let trip_ns = (world.ways_ns.0 + world.ways_ns.1) as f64;
        prop_assert!(found.error_ns <= trip_ns + 10.0, "{} of {trip_ns}", found.error_ns);
    }

    /// With half of the answers lost and others up to a second late: true, and no worse than the rest allows.
    #[test]
    fn lost_and_late_answers_leave_the_bound_true(
        world in world(),
        fates in proptest::collection::vec(proptest::option::of(0..1000 * NS_PER_MS), 112),
    ) {
        let exchanges = world.compared(|number| fates[number as usize - 1]);
        if let Ok(found) = relation(&exchanges, false) {
            prop_assert!(world.is_within(&found), "{found:?}");
            if let Ok(idle) = Idle::of(&exchanges, LOADED, &found) {
                prop_assert!(idle.error_there_s().is_finite() && idle.error_back_s().is_finite());
            }
        } else {
            prop_assert!(exchanges.is_empty());
        }
    }

    /// Pings on the control connection, before and after: the queues of the flows still need no offset.
    #[test]
    fn a_few_pings_bound_the_clock_and_both_idle_ways(world in world()) {
        let world = SimulatedPath { ppm: world.ppm / 4.0, ..world };
        let times = |from: u64| (0..8).map(move |n| (from + 2 * n) * NS_PER_MS);
        let exchanges = world.asked(times(700).chain(times(5500)), |_| Some(0));
        let found = relation(&exchanges, false).unwrap();
        prop_assert!(world.is_within(&found), "{found:?}");
        let idle = Idle::of(&exchanges, LOADED, &found).unwrap();
        let sent_ns = 3000 * NS_PER_MS;
        let arrived_ns = sent_ns + world.ways_ns.0 + world.queues_ns.0;
        let there_s = idle.waited_there_s(sent_ns, world.far_ns(arrived_ns));
        let off_s = (there_s - world.queues_ns.0 as f64 / 1e9).abs();
        prop_assert!(off_s <= idle.error_there_s() + 1e-6, "{off_s} {idle:?}");
    }

    /// A peer that invents its numbers causes nothing but nonsense or nothing: no panic, no bound that is not a number.
    /// It can't make one answer count twice.
    #[test]
    fn numbers_that_are_made_up_break_nothing(
        times in proptest::collection::vec(
            (prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), Just(1 << 63)], any::<u64>()), 1..40),
        one_clock: bool,
    ) {
        let mut questions = ClockQuestions::default();
        let exchanges: Vec<_> = times
            .iter()
            .filter_map(|times| {
                let number = questions.ask(questions.last() * NS_PER_MS);
                questions.compared(number, *times, number * NS_PER_MS)
            })
            .collect();
        prop_assert_eq!(exchanges.len(), times.len());
        let found: Result<_, Missing> = relation(&exchanges, one_clock);
        if let Ok(found) = found {
            prop_assert!(found.error_ns.is_finite() && found.drift_ppm.is_finite());
            if let Ok(idle) = Idle::of(&exchanges, (5 * NS_PER_MS, 9 * NS_PER_MS), &found) {
                prop_assert!(idle.waited_there_s(0, u64::MAX).is_finite());
                prop_assert!(!idle.error_there_s().is_nan() && !idle.error_back_s().is_nan());
            }
        }
    }
}
