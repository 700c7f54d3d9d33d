//! What clients do at a server, by what the engine reports.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use goodput_engine::serve::{Served, What};
use goodput_model::{BitRate, Direction, Plan, Sample, Seconds, Transport, counted, is_plain};

use super::super::series::Series;

/// Past measurements, and remarks, that are kept to be shown.
const MAX_KEPT: usize = 100;

/// Clients now and lately. All times are seconds since the view began.
#[derive(Debug, Clone, Default)]
pub struct ServerState {
    /// Where it listens, a line each.
    pub listening: Vec<String>,
    /// Number of clients that talk to the server, measuring or not.
    pub connected: usize,
    /// Measurements that go on, by their numbers.
    pub running: BTreeMap<u64, Running>,
    /// Measurements that have ended, the newest first.
    pub past: VecDeque<Past>,
    /// What clients did not get, or got in another way, the newest first.
    pub remarks: VecDeque<Remark>,
    /// All payload, and the CPU time of the whole server.
    pub all: Counted,
    /// Now.
    pub at_s: f64,
}

/// A measurement that goes on.
#[derive(Debug, Clone)]
pub struct Running {
    /// Its client.
    pub peer: SocketAddr,
    /// What it is, in words.
    pub what: String,
    /// When it began.
    pub began_s: f64,
    /// Time since its payload began to move, at the last count.
    pub moving_s: f64,
    /// What its flows did.
    pub counted: Counted,
}

/// A measurement that has ended.
#[derive(Debug, Clone)]
pub struct Past {
    /// Its client.
    pub peer: SocketAddr,
    /// What it was, in words.
    pub what: String,
    /// When it ended.
    pub ended_s: f64,
    /// What came of it, in words.
    pub outcome: String,
}

/// Something that a client did not get, or got in another way.
#[derive(Debug, Clone)]
pub struct Remark {
    /// The client.
    pub from: IpAddr,
    /// What it was and why, in words.
    pub text: String,
    /// When it last happened.
    pub at_s: f64,
    /// How often it has happened.
    pub times: u64,
}

/// What was counted in all, and how it grew from one look to the next.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    totals: Totals,
    before: Totals,
    /// Payload that came here, bit/s.
    pub received: Series,
    /// Payload that was sent from here, bit/s.
    pub sent: Series,
    /// CPU time, % of one CPU.
    pub cpu: Series,
}

#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    received_bytes: u64,
    sent_bytes: u64,
    /// Absent if nothing reports it.
    cpu_us: Option<u64>,
}

impl ServerState {
    /// Takes what has happened, and returns the line that plain output prints of it.
    pub fn enter(&mut self, served: &Served) -> Option<String> {
        match served {
            Served::Arrived { .. } => self.connected += 1,
            Served::Left { .. } => self.connected = self.connected.saturating_sub(1),
            Served::Remark { peer, protocol, text } => {
                return Some(self.remark(*peer, *protocol, text));
            }
            Served::Measurement { number, what } => return self.measurement(*number, what),
        }
        None
    }

    fn measurement(&mut self, number: u64, what: &What) -> Option<String> {
        match what {
            What::Began { peer, protocol, plan, .. } => {
                let what = format!("{}, {protocol}", in_words(plan));
                let line = format!("{peer}  {what}");
                let (began_s, counted) = (self.at_s, Counted::default());
                let running = Running { peer: *peer, what, began_s, moving_s: 0.0, counted };
                self.running.insert(number, running);
                Some(line)
            }
            What::Sampled(sample) => {
                let running = self.running.get_mut(&number)?;
                let more = running.sampled(sample);
                self.all.totals.received_bytes += more.received_bytes;
                self.all.totals.sent_bytes += more.sent_bytes;
                None
            }
            What::Ended(_) => self.over(number, ""),
            What::BrokenOff => self.over(number, ", broken off"),
        }
    }

    fn over(&mut self, number: u64, how: &str) -> Option<String> {
        let Running { peer, what, moving_s, counted, .. } = self.running.remove(&number)?;
        let outcome = counted.totals.outcome(moving_s) + how;
        let line = format!("{peer}  {what}: {outcome}");
        self.past.truncate(MAX_KEPT - 1);
        self.past.push_front(Past { peer, what, ended_s: self.at_s, outcome });
        Some(line)
    }

    /// The same for the same client is one entry, so that one client does not fill the list.
    fn remark(&mut self, peer: SocketAddr, protocol: Option<&str>, text: &str) -> String {
        let text: String = text.chars().map(|c| if is_plain(c) { c } else { ' ' }).collect();
        let text = protocol.map_or(text.clone(), |protocol| format!("{protocol}: {text}"));
        let line = format!("{peer}  {text}");
        let from = peer.ip();
        let known = self.remarks.iter().position(|old| old.from == from && old.text == text);
        let times = known.and_then(|at| self.remarks.remove(at)).map_or(0, |old| old.times);
        self.remarks.truncate(MAX_KEPT - 1);
        self.remarks.push_front(Remark { from, text, at_s: self.at_s, times: times + 1 });
        line
    }

    /// It is `at_s` now, and the server has used so much CPU time: counts what has happened since the last time.
    pub fn tick(&mut self, at_s: f64, cpu_us: Option<u64>) {
        let seconds = at_s - self.at_s;
        self.at_s = at_s;
        if seconds <= 0.0 {
            return;
        }
        self.all.totals.cpu_us = cpu_us;
        self.all.tick(at_s, seconds);
        for running in self.running.values_mut() {
            running.counted.tick(at_s, seconds);
        }
    }
}

impl Running {
    /// Returns what has been added since the last sample.
    fn sampled(&mut self, sample: &Sample) -> Totals {
        let times = sample.flows.iter().filter_map(|flow| flow.cpu_us.value().copied());
        let now = Totals {
            received_bytes: sample.received_bytes,
            sent_bytes: sample.sent_bytes,
            cpu_us: times.reduce(u64::saturating_add),
        };
        self.moving_s = sample.at_s;
        let before = std::mem::replace(&mut self.counted.totals, now);
        now.since(before)
    }
}

impl Counted {
    fn tick(&mut self, at_s: f64, seconds: f64) {
        let before = std::mem::replace(&mut self.before, self.totals);
        let step = self.totals.since(before);
        let rate = |bytes: u64| bytes as f64 * 8.0 / seconds;
        self.received.push(at_s, rate(step.received_bytes));
        self.sent.push(at_s, rate(step.sent_bytes));
        if let Some(us) = step.cpu_us {
            self.cpu.push(at_s, us as f64 / 1e6 / seconds * 100.0);
        }
    }
}

impl Totals {
    fn since(self, before: Self) -> Self {
        Self {
            received_bytes: self.received_bytes.saturating_sub(before.received_bytes),
            sent_bytes: self.sent_bytes.saturating_sub(before.sent_bytes),
            cpu_us: self.cpu_us.map(|now| now.saturating_sub(before.cpu_us.unwrap_or(0))),
        }
    }

    /// The rates over so many seconds.
    fn outcome(self, seconds: f64) -> String {
        let both = [("received", self.received_bytes), ("sent", self.sent_bytes)];
        let moved = both.into_iter().filter(|(_, bytes)| *bytes > 0);
        let rate = |(verb, bytes)| Some(format!("{verb} {}", BitRate::over(bytes, seconds)?));
        let rates: Vec<String> = moved.filter_map(rate).collect();
        match &rates[..] {
            [] => "no payload was counted".into(),
            rates => format!("{} in {}", rates.join(", "), Seconds(seconds)),
        }
    }
}

/// Where payload moves, over what, in how many flows. The plan is seen from here.
fn in_words(plan: &Plan) -> String {
    let direction = match plan.direction {
        Direction::Send => "from here",
        Direction::Reverse => "to here",
        Direction::Both => "both ways",
    };
    let transport = match plan.transport {
        Transport::Tcp => "TCP",
        Transport::Udp => "UDP",
    };
    format!("{direction}, {transport}, {}", counted(plan.flow_plans().len(), "flow"))
}

#[cfg(test)]
pub mod tests {
    use goodput_model::{FlowSample, Known, Role};

    use super::*;

    fn peer(last: u8) -> SocketAddr {
        ([192, 0, 2, last], 4711).into()
    }

    fn measurement(number: u64, what: What) -> Served {
        Served::Measurement { number, what }
    }

    fn sample(at_s: f64, received_bytes: u64) -> What {
        let flow = FlowSample {
            cpu_us: Known::Value((at_s * 2e5) as u64),
            ..FlowSample::unreported(0, Role::Receiver, received_bytes, "of a test")
        };
        What::Sampled(Box::new(Sample { at_s, sent_bytes: 0, received_bytes, flows: vec![flow] }))
    }

    /// A client that sends 1 MB in each of three seconds, one that has ended, and one that was refused twice.
    pub fn state() -> ServerState {
        let mut state = ServerState::default();
        let plan = Plan { flows: 4, direction: Direction::Reverse, ..Plan::standard() };
        for number in [1, 2] {
            let (plan, peer) = (Box::new(plan.clone()), peer(number as u8));
            state.enter(&Served::Arrived { peer });
            let began = What::Began { peer, protocol: "goodput", plan, connections: Vec::new() };
            state.enter(&measurement(number, began));
        }
        for second in 1_u32..=3 {
            state.enter(&measurement(1, sample(second.into(), u64::from(second) * 1_000_000)));
            state.tick(second.into(), Some(u64::from(second) * 300_000));
        }
        state.enter(&measurement(2, What::BrokenOff));
        state.enter(&Served::Left { peer: peer(2) });
        for _ in 0..2 {
            let text = "refused: \x1b[2Jtoo long".into();
            state.enter(&Served::Remark { peer: peer(3), protocol: Some("goodput"), text });
        }
        state
    }

    #[test]
    fn rates_are_what_was_counted_in_between() {
        let state = state();
        assert_eq!((state.connected, state.running.len(), state.past.len()), (1, 1, 1));
        for counted in [&state.all, &state.running[&1].counted] {
            assert_eq!(counted.received.last(), Some(8e6));
            assert_eq!(counted.sent.last(), Some(0.0));
        }
        assert_eq!(state.all.cpu.last().map(f64::round), Some(30.0));
        assert_eq!(state.running[&1].counted.cpu.last().map(f64::round), Some(20.0));
        assert_eq!(state.past[0].outcome, "no payload was counted, broken off");
    }

    #[test]
    fn the_same_remark_is_counted_and_controls_no_terminal() {
        let state = state();
        let [remark] = state.remarks.iter().collect::<Vec<_>>()[..] else { panic!("one") };
        assert_eq!((remark.times, &*remark.text), (2, "goodput: refused:  [2Jtoo long"));
    }

    #[test]
    fn lines_say_what_began_and_what_came_of_it() {
        let mut state = ServerState::default();
        let (peer, plan) = (peer(1), Box::new(Plan::standard()));
        let began = What::Began { peer, protocol: "iperf3", plan, connections: Vec::new() };
        let line = state.enter(&measurement(0, began));
        assert_eq!(line.as_deref(), Some("192.0.2.1:4711  from here, TCP, 1 flow, iperf3"));
        assert_eq!(state.enter(&measurement(0, sample(1.0, 1_000_000))), None);
        let line = state.enter(&measurement(0, What::BrokenOff)).unwrap();
        assert!(
            line.contains(": received 8 Mbit/s in 1") && line.ends_with("s, broken off"),
            "{line}"
        );
        assert_eq!(state.enter(&measurement(0, What::BrokenOff)), None);
    }
}
