//! Simulated days on metered lines: the tests of any 24 hours cost at most 1 % more than the budget, whatever the line
//! loses, however often tests fail, and whatever length the user chose.

use goodput_model::sample::{FlowSample, Role};
use goodput_model::{Bytes, Known, Length, Plan, Sample, TcpInfo};
use goodput_watch::{Budget, Meter, Schedule, expected_cost, limit, payload_of};
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

const DAYS: f64 = 4.0;
const DAY_S: f64 = 86_400.0;
/// Time between two samples of a test.
const SAMPLE_S: f64 = 0.1;
/// Payload of a packet, and its headers and half an acknowledgement.
const PACKET_BYTES: [u64; 2] = [1448, 52 + 26];

/// A watch, and the line that it tests.
struct Line {
    random: Xoshiro256PlusPlus,
    /// Payload that it carries, bytes per second.
    rate: f64,
    /// Largest share of packets that are lost. Each test loses another share.
    most_loss: f64,
    /// Share of the tests that have no result, because the far end is gone before the end.
    failing: f64,
    /// Share of the tests that are killed, with the watch: they have spent what they could.
    killed: f64,
    targets: usize,
    every_s: f64,
    budget: Bytes,
    /// Longest time of a test.
    seconds: f64,
}

impl Line {
    fn new(seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut any = |of: &[f64]| *of.choose(&mut random).expect("there are some");
        Self {
            rate: any(&[1e5, 1e6, 1.25e7, 1.25e8]),
            most_loss: any(&[0.0, 0.05, 0.3]),
            failing: any(&[0.0, 0.1, 0.9]),
            killed: any(&[0.0, 0.1]),
            targets: any(&[1.0, 2.0, 10.0]) as usize,
            every_s: any(&[300.0, 900.0, 3600.0, 20_000.0, DAY_S]),
            // What a line moves until a test hears that it should end is beyond control if it comes before the first
            // sample: here, less than 1 % of any budget, also if a third of it is lost and it ends late.
            budget: Bytes(any(&[6e9, 1e10, 2e10]) as u64),
            seconds: any(&[2.0, 10.0, 60.0]),
            random,
        }
    }

    /// The bytes of a test that ends when its meter says that no more are left, and whether it is whole.
    fn test(&mut self, length: Length, left: Bytes) -> (Bytes, bool) {
        let Length::Bytes(Bytes(most)) = length else { panic!("a test of bytes") };
        let (most, most_s) = (most as f64, self.seconds);
        let lost = self.most_loss * self.random.random::<f64>();
        let gone_s = match self.random.random_bool(self.failing) {
            true => most_s * self.random.random::<f64>(),
            false => most_s,
        };
        let mut meter = Meter::new(&Plan { length, ..Plan::standard() });
        for step in 1.. {
            let at_s = (f64::from(step) * SAMPLE_S).min(gone_s);
            let payload = (self.rate * at_s).min(most);
            let sample = sample(at_s, payload as u64, lost);
            meter.see(&sample);
            let is_over = at_s >= gone_s || payload >= most;
            if is_over {
                return (on_the_line(&sample), true);
            }
            if meter.will_exceed(left) {
                // Both ends hear of it, and send what is in the sockets.
                let end_s = (at_s + 2.0 * SAMPLE_S * self.random.random::<f64>()).min(gone_s);
                let payload = (self.rate * end_s).min(most);
                return (on_the_line(&self::sample(end_s, payload as u64, lost)), false);
            }
        }
        unreachable!("a test ends")
    }

    /// The costs of some days, and when they arose.
    fn days(mut self) -> Vec<(f64, Bytes)> {
        let mut budget = Budget::new(self.budget);
        let share = budget.share(self.every_s, self.targets);
        let length = Length::Bytes(payload_of(share));
        let plan = Plan { length, ..Plan::standard() };
        let mut schedule = Schedule::new(self.every_s, self.targets, 1);
        let (mut last, mut costs) = (vec![None; self.targets], Vec::new());
        let mut now_s = 0.0;
        while now_s < DAYS * DAY_S {
            let turn = schedule.next(now_s);
            now_s = turn.due_s;
            let expected = expected_cost(&plan, share, last[turn.target], self.budget);
            if budget.allow(now_s, expected).is_err() {
                continue;
            }
            let limit = limit(expected, budget.left(now_s));
            let (bytes, whole) = self.test(length, limit);
            costs.push((now_s, bytes));
            if self.random.random_bool(self.killed) {
                budget.spend(now_s, limit);
                continue;
            }
            let least = last[turn.target].filter(|_| !whole);
            last[turn.target] = Some(least.map_or(bytes, |least: Bytes| least.max(bytes)));
            budget.spend(now_s, bytes);
        }
        costs
    }
}

/// What the kernel counted, with a packet for each 1448 bytes of payload.
fn sample(at_s: f64, payload: u64, lost: f64) -> Sample {
    let again = (payload as f64 * lost) as u64;
    let segments = (payload + again).div_ceil(PACKET_BYTES[0]);
    let tcp = TcpInfo {
        sent_bytes: Some(payload + again),
        received_bytes: Some(0),
        retrans_bytes: Some(again),
        segs_out: Some(segments),
        segs_in: Some(segments / 2),
        ..TcpInfo::default()
    };
    let flow = FlowSample::unreported(0, Role::Sender, payload, "it is simulated");
    let flow = FlowSample { tcp: Known::Value(tcp), ..flow };
    Sample { at_s, sent_bytes: payload, received_bytes: 0, flows: vec![flow] }
}

/// What a counter of the line's device says.
fn on_the_line(sample: &Sample) -> Bytes {
    let tcp = sample.flows[0].tcp.value().expect("the simulation counts");
    let sent = tcp.sent_bytes.unwrap_or_default();
    Bytes(sent + sent.div_ceil(PACKET_BYTES[0]) * PACKET_BYTES[1])
}

#[test]
fn no_day_costs_more_than_the_budget_and_one_percent() {
    let mut nearly_used_up = 0;
    for seed in 0..300 {
        let line = Line::new(seed);
        let limit = line.budget.0 as f64;
        let what = format!("seed {seed}: every {} s, {:?}", line.every_s, line.seconds);
        let costs = line.days();
        let mut most: f64 = 0.0;
        for (until_s, _) in &costs {
            let day = costs.iter().filter(|(at_s, _)| *at_s <= *until_s && at_s + DAY_S > *until_s);
            most = most.max(day.map(|(_, bytes)| bytes.0 as f64).sum());
        }
        assert!(most <= limit * 1.01, "{what}: {:.2} % of the budget", most / limit * 100.0);
        nearly_used_up += u32::from(most > limit * 0.9);
    }
    // Otherwise this shows nothing.
    assert!(nearly_used_up > 50, "{nearly_used_up} of 300 used their budget up");
}
