//! The measurements made here, for anything that shows them. In this end's view, it is the near end.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use goodput_model::{
    Clocks, Connection, Direction, End, EndName, FlowTotals, Known, Plan, Sample, Snapshot, Totals,
};

use crate::result::measurement::Measurement;
use crate::serve::address::plain;
use crate::serve::shown_memory::kept_samples;

/// Receives what clients do. Called from the threads that serve, so it must not block for long.
#[derive(Clone)]
pub struct Watcher(Arc<dyn Fn(Served) + Send + Sync>);

impl Watcher {
    /// Reports to `watch`.
    pub fn new(watch: impl Fn(Served) + Send + Sync + 'static) -> Self {
        Self(Arc::new(watch))
    }

    /// Something has happened.
    pub fn tell(&self, served: Served) {
        (self.0)(served);
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}

/// One thing that happened at the server.
pub enum Served {
    /// A client has begun to talk.
    Arrived {
        /// Its address.
        peer: SocketAddr,
    },
    /// A client that had begun to talk is gone.
    Left {
        /// Its address.
        peer: SocketAddr,
    },
    /// A client did not get what it asked for, or got it in another way.
    Remark {
        /// Its address.
        peer: SocketAddr,
        /// Id of its protocol, if it is known.
        protocol: Option<&'static str>,
        /// What happened and why, in words.
        text: String,
    },
    /// Something happened in a measurement.
    Measurement {
        /// Distinguishes measurements that run at the same time.
        number: u64,
        /// What happened.
        what: What,
    },
}

/// What happened in a measurement.
pub enum What {
    /// Its flows are open.
    Began {
        /// Address of the conversation's peer.
        peer: SocketAddr,
        /// Id of its protocol.
        protocol: &'static str,
        /// What is measured, seen from here: this end receives what the client sends.
        plan: Box<Plan>,
        /// The addresses of its flows.
        connections: Vec<Connection>,
    },
    /// What this end has counted.
    Sampled(Box<Sample>),
    /// It is over.
    Ended(Box<Measurement>),
    /// It was broken off.
    BrokenOff,
}

/// A measurement that is shown. Reports its end when dropped.
pub struct Shown {
    watcher: Watcher,
    measurement: u64,
    direction: Direction,
    flows: u16,
    plan: Plan,
    connections: Vec<Connection>,
    samples: Vec<Sample>,
    room: usize,
    ended: bool,
    facts: (Snapshot, Snapshot),
    far_totals: Option<Totals>,
}

impl Shown {
    /// The measurement begins, with the plan as the client sees it.
    pub fn begin(
        watcher: Watcher,
        measurement: u64,
        (peer, protocol): (SocketAddr, &'static str),
        plan: &Plan,
        connections: Vec<Connection>,
    ) -> Self {
        let mut shown = Self {
            watcher,
            measurement,
            direction: plan.direction,
            flows: plan.flows,
            plan: turned(plan),
            connections,
            samples: Vec::new(),
            room: kept_samples(plan),
            ended: false,
            facts: Default::default(),
            far_totals: None,
        };
        let mut connections = std::mem::take(&mut shown.connections);
        for connection in &mut connections {
            connection.flow = shown.flow(connection.flow);
            connection.local = plain(connection.local);
            connection.remote = plain(connection.remote);
        }
        connections.sort_by_key(|c| c.flow);
        shown.connections.clone_from(&connections);
        shown.emit(What::Began { peer, protocol, plan: Box::new(shown.plan.clone()), connections });
        shown
    }

    /// This end has counted.
    pub fn sampled(&mut self, sample: &Sample) {
        if sample.flows.is_empty() {
            return;
        }
        let mut sample = sample.clone();
        sample.flows.iter_mut().for_each(|flow| flow.flow = self.flow(flow.flow));
        self.emit(What::Sampled(Box::new(sample.clone())));
        // Everything is counted from the counts at the end of a warm-up.
        let omit_s = self.plan.omit_s;
        let last_s = self.samples.last().map_or(0.0, |last| last.at_s);
        let is_warm = last_s < omit_s && sample.at_s >= omit_s;
        if let Some(room) = self.room.checked_sub(sample.flows.len()) {
            self.room = room;
        } else if !is_warm && self.samples.len() > 2 {
            self.samples.pop();
        }
        self.samples.push(sample);
    }

    /// All flows have ended in good order, with this last sample.
    pub fn ended(&mut self, last: &Sample) {
        self.sampled(last);
        self.ended = true;
    }

    /// This host's facts before and after.
    pub fn observed(&mut self, before: Snapshot, after: Snapshot) {
        self.facts = (before, after);
    }

    /// What the client reported about itself.
    pub fn reported(&mut self, mut totals: Totals) {
        totals.flows.iter_mut().for_each(|flow: &mut FlowTotals| flow.flow = self.flow(flow.flow));
        self.far_totals = Some(totals);
    }

    fn emit(&self, what: What) {
        self.watcher.tell(Served::Measurement { number: self.measurement, what });
    }

    /// The number of a flow seen from here: flows of the near end come first, and this end is the near end.
    fn flow(&self, id: u16) -> u16 {
        match self.direction {
            Direction::Both if id < self.flows => id + self.flows,
            Direction::Both => id - self.flows,
            Direction::Send | Direction::Reverse => id,
        }
    }

    fn measurement(&mut self) -> Measurement {
        let (before, after) = std::mem::take(&mut self.facts);
        let samples = std::mem::take(&mut self.samples);
        Measurement {
            plan: self.plan.clone(),
            near: End { before, after, samples, ..End::unobserved(goodput_kernel::host()) }.into(),
            far: Known::missing("a client does not report"),
            far_settings: None,
            connections: std::mem::take(&mut self.connections),
            far_totals: self.far_totals.take(),
            intervals: Vec::new(),
            thinned: None,
            steady_samples: None,
            latency: None,
            far_capture: None,
            fetches: None,
            clocks: Clocks::missing("a client does not report its clock"),
            incomplete: None,
            doubts: Vec::new(),
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let what = match self.ended {
            true => What::Ended(Box::new(self.measurement())),
            false => What::BrokenOff,
        };
        self.emit(what);
    }
}

/// A plan seen from the other end.
pub fn turned(plan: &Plan) -> Plan {
    let direction = match plan.direction.senders() {
        [EndName::Near] => Direction::Reverse,
        [EndName::Far] => Direction::Send,
        _ => Direction::Both,
    };
    Plan { direction, ..plan.clone() }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use goodput_model::{Bytes, FlowSample, Length, Role};

    use super::*;
    use crate::serve::shown_memory::{UNREAD_BYTES, kept_bytes};

    fn kept_of(plan: &Plan, seconds: u32) -> usize {
        let ended: Arc<Mutex<Option<Box<Measurement>>>> = Arc::default();
        let into = Arc::clone(&ended);
        let watcher = Watcher::new(move |served| {
            if let Served::Measurement { what: What::Ended(measurement), .. } = served {
                *into.lock().unwrap() = Some(measurement);
            }
        });
        let peer = SocketAddr::from(([192, 0, 2, 1], 1));
        let mut shown = Shown::begin(watcher, 0, (peer, "goodput"), plan, Vec::new());
        let sample = |tick: u32| {
            let flow = |flow| FlowSample::unreported(flow, Role::Receiver, 1, "not looked at");
            let flows = (0..plan.flows).map(flow).collect();
            let at_s = f64::from(tick) / 10.0;
            Sample { at_s, sent_bytes: 0, received_bytes: u64::from(tick), flows }
        };
        (0..seconds * 10).for_each(|tick| shown.sampled(&sample(tick)));
        shown.ended(&sample(seconds * 10));
        drop(shown);
        let measurement = ended.lock().unwrap().take().unwrap();
        measurement.near.samples.iter().map(|sample| sample.flows.len()).sum()
    }

    #[test]
    fn no_more_is_kept_than_a_client_is_charged_with_and_all_of_a_test_in_time() {
        let each = (size_of::<FlowSample>() + 2 * size_of::<Sample>()) as u64;
        for length in [Length::Seconds(10.0), Length::Bytes(Bytes(1 << 40))] {
            for flows in [1, 8] {
                let plan = Plan { flows, length, ..Plan::standard() };
                for seconds in [10, 3000] {
                    let kept = kept_of(&plan, seconds);
                    assert!(kept as u64 * each <= kept_bytes(&plan), "{plan:?}: {kept}");
                }
                assert_eq!(kept_of(&plan, 10), 101 * usize::from(flows));
            }
        }
        let short = Plan { length: Length::Seconds(10.0), ..Plan::standard() };
        assert!(kept_bytes(&short) < UNREAD_BYTES / 100, "a short test takes little");
    }
}
