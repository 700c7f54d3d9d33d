//! What the measurements of a server cost the line, for a program that started it and has a budget: clients that count wrong, or
//! not at all, can't spend more than it has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use goodput_engine::serve::{Counts, Served, Watcher, What};
use goodput_model::{Bytes, Plan, Transport};
use goodput_watch::{Meter, cost_of};
use tokio::time::sleep;

use crate::screen;

/// Begins a line with what the measurements have cost so far, bytes.
pub const COST: &str = "cost ";

/// How often it is looked at: as often as a measurement has samples.
const LOOK: Duration = Duration::from_millis(100);

/// What measurements have cost. All clones share it.
#[derive(Clone, Default)]
pub struct ServedCost(Arc<Mutex<Costs>>);

#[derive(Default)]
struct Costs {
    /// Of those whose bytes the kernel counts.
    running: HashMap<u64, Meter>,
    /// What such measurements have cost that are over.
    over: u64,
    /// Whether there was one of whose bytes nothing is known but the payload.
    has_uncounted: bool,
    /// What was printed last, bytes.
    said: u64,
}

impl ServedCost {
    /// A watcher that sees what happens, and passes it on.
    pub fn watching(&self, next: Option<Watcher>) -> Watcher {
        let cost = self.clone();
        Watcher::new(move |served| {
            if let Served::Measurement { number, what } = &served {
                cost.costs().see(*number, what);
            }
            if let Some(next) = &next {
                next.tell(served);
            }
        })
    }

    /// Prints what the measurements cost, until it is more than `most`.
    pub async fn used_up(&self, most: Bytes, counts: &Counts) {
        while self.tell(counts) <= most {
            sleep(LOOK).await;
        }
    }

    /// Prints what the measurements have cost, if it is more than before.
    pub fn tell(&self, counts: &Counts) -> Bytes {
        let counted = counts.read();
        let payload = counted.received_bytes.saturating_add(counted.sent_bytes);
        let mut costs = self.costs();
        let cost = costs.bytes(Bytes(payload));
        if cost.0 > costs.said {
            costs.said = cost.0;
            screen::later(&format!("{COST}{}\n", cost.0));
        }
        cost
    }

    fn costs(&self) -> MutexGuard<'_, Costs> {
        // A panic in between leaves sums that are too small by one sample.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Costs {
    fn see(&mut self, number: u64, what: &What) {
        match what {
            What::Began { plan, connections, .. } => {
                if !is_counted(plan) {
                    self.has_uncounted = true;
                    return;
                }
                let mut meter = Meter::new(plan);
                meter.open(connections);
                self.running.insert(number, meter);
            }
            What::Sampled(sample) => {
                if let Some(meter) = self.running.get_mut(&number) {
                    meter.see(sample);
                }
            }
            What::Ended(_) | What::BrokenOff => {
                let ended = self.running.remove(&number);
                let cost = ended.and_then(|meter| meter.on_the_line()).unwrap_or(Bytes(0));
                self.over = self.over.saturating_add(cost.0);
            }
        }
    }

    /// What all have cost, which have moved this payload. What was written waits in the socket first, so the payload alone would
    /// be too much.
    fn bytes(&self, payload: Bytes) -> Bytes {
        let running = self.running.values().filter_map(Meter::on_the_line).map(|bytes| bytes.0);
        let counted = running.fold(self.over, u64::saturating_add);
        Bytes(if self.has_uncounted { counted.max(cost_of(payload).0) } else { counted })
    }
}

/// Whether the kernel says what a measurement of this plan has cost so far.
fn is_counted(plan: &Plan) -> bool {
    plan.observe && plan.transport == Transport::Tcp
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Known, Sample};

    /// A sample of which the kernel counted this payload, in so many segments of 1000 bytes.
    fn detailed(segments: u64) -> Sample {
        let json = include_str!("../../../store/tests/golden/v1/test.json");
        let record = goodput_store::read_record(json).unwrap();
        let samples = &record.ends.near.value().unwrap().samples;
        let mut sample = samples.iter().rfind(|sample| !sample.flows.is_empty()).unwrap().clone();
        let Known::Value(tcp) = &mut sample.flows[0].tcp else { panic!("it has TCP's counts") };
        (tcp.sent_bytes, tcp.received_bytes) = (Some(1000 * segments), Some(0));
        (tcp.retrans_bytes, tcp.segs_in, tcp.segs_out) = (Some(0), Some(0), Some(segments));
        sample.flows.truncate(1);
        sample
    }

    fn began(plan: Plan) -> What {
        let peer = "127.0.0.1:7".parse().unwrap();
        What::Began { peer, protocol: "goodput", plan: plan.into(), connections: Vec::new() }
    }

    #[test]
    fn what_the_kernel_counts_is_the_cost_also_of_what_is_over() {
        let mut costs = Costs::default();
        costs.see(1, &began(Plan { observe: true, ..Plan::standard() }));
        assert_eq!(costs.bytes(Bytes(1 << 30)), Bytes(0), "nothing has left the socket");
        costs.see(1, &What::Sampled(Box::new(detailed(9))));
        assert_eq!(costs.bytes(Bytes(1 << 30)), Bytes(9 * (1000 + 20 + 32)), "with headers");
        costs.see(1, &What::BrokenOff);
        costs.see(2, &began(Plan { observe: true, ..Plan::standard() }));
        costs.see(2, &What::Sampled(Box::new(detailed(1))));
        assert_eq!(costs.bytes(Bytes(1 << 30)), Bytes(10 * (1000 + 20 + 32)));
    }

    #[test]
    fn a_client_that_has_nothing_counted_pays_for_its_payload_with_headers() {
        for plan in [
            Plan { observe: false, ..Plan::standard() },
            Plan { transport: Transport::Udp, ..Plan::standard() },
        ] {
            let mut costs = Costs::default();
            costs.see(1, &began(plan));
            let nothing =
                Sample { at_s: 0.1, sent_bytes: 0, received_bytes: 9000, flows: Vec::new() };
            costs.see(1, &What::Sampled(Box::new(nothing)));
            assert_eq!(costs.bytes(Bytes(9000)), Bytes(10_000));
        }
    }
}
