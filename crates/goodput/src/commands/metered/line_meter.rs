//! What a test costs the line while it runs, by its own counts and by those of its device.

use goodput_engine::Event;
use goodput_kernel::Carried;
use goodput_model::{Bytes, EndName, Plan};
use goodput_watch::Meter;

/// Hears what happens in a test.
pub struct LineMeter {
    meter: Meter,
    /// Of the device of the flows, once they are open, if the kernel tells.
    carried: Option<Carried>,
}

impl LineMeter {
    /// For a test of `plan`.
    pub fn new(plan: &Plan) -> Self {
        Self { meter: Meter::new(plan), carried: None }
    }

    /// Takes what happened.
    pub fn hear(&mut self, event: &Event) {
        match event {
            Event::Opened { connections } => {
                self.meter.open(connections);
                let first = connections.first();
                self.carried = first.and_then(|flow| Carried::of(flow.local, flow.remote).ok());
            }
            Event::Sampled { end: EndName::Near, sample } => {
                self.meter.see(sample);
                let carried = self.carried.as_mut().and_then(|carried| carried.bytes().ok());
                self.meter.see_carried(carried);
            }
            Event::Sampled { end: EndName::Far, sample } => self.meter.see_far(sample),
            _ => {}
        }
    }

    /// What the test has cost so far.
    pub fn bytes(&self) -> Bytes {
        self.meter.bytes()
    }

    /// Whether it would cost more than `limit` by the time it ends ([`Meter::will_exceed`]).
    pub fn will_exceed(&self, limit: Bytes) -> bool {
        self.meter.will_exceed(limit)
    }
}
