//! What was counted around the train and around TCP, at the place whose shaper counts.

use std::sync::Arc;

use goodput_model::{Direction, End, Known, Missing, Record, Snapshot};
use goodput_shaping::{Around, Behind, Counted, Sender};

use super::router::RouterFacts;
use crate::result::measurement::Measurement;

/// What was counted around a train.
pub(super) struct TrainFacts {
    near: Arc<End>,
    far: Known<Arc<End>>,
    /// At the router, if one was asked before and after.
    router: Option<(Snapshot, Snapshot)>,
    /// Time between both looks, seconds.
    seconds: f64,
    /// What is behind the sender's own shaper.
    behind: Option<Behind>,
}

impl TrainFacts {
    /// The facts of both ends.
    pub(super) fn of(measurement: &Measurement, seconds: f64, behind: Option<Behind>) -> Self {
        let (near, far) = (Arc::clone(&measurement.near), measurement.far.clone());
        Self { near, far, router: None, seconds, behind }
    }

    /// The same with the looks at a router, and the time between these, seconds.
    pub(super) fn with_router(self, looks: (Snapshot, Snapshot), seconds: f64) -> Self {
        Self { router: Some(looks), seconds, ..self }
    }

    fn around(&self, direction: Direction) -> Option<Around<'_>> {
        let (near, far) = (Some(&*self.near), self.far.value().map(|far| &**far));
        let router = self.router.as_ref().map(|(before, after)| Counted { before, after });
        around(direction, near, far, router, self.seconds)
    }
}

fn around<'a>(
    direction: Direction,
    near: Option<&'a End>,
    far: Option<&'a End>,
    router: Option<Counted<'a>>,
    seconds: f64,
) -> Option<Around<'a>> {
    let of = |end: &'a End| Counted { before: &end.before, after: &end.after };
    let (sender, receiver) = match direction {
        Direction::Reverse => (far, near),
        _ => (near, far),
    };
    Some(Around { sender: router.or(sender.map(of))?, receiver: receiver.map(of), seconds })
}

/// The sender, with what was counted around the train and, for `tcp_s` seconds, around TCP.
pub(super) fn with_counts<'a>(
    sender: Sender<'a>,
    record: &'a Record,
    train: Option<&'a TrainFacts>,
    router: Option<&'a RouterFacts>,
    tcp_s: f64,
) -> Sender<'a> {
    let direction = record.plan.direction;
    let (near, far) = (record.ends.near.value(), record.ends.far.value());
    let router = router.map(|facts| Counted { before: &facts.before, after: &facts.after });
    Sender {
        around_train: train.and_then(|train| train.around(direction)),
        around_tcp: around(direction, near, far, router, tcp_s),
        behind: train.and_then(|train| train.behind),
        ..sender
    }
}

/// A sender of which no TCP was seen.
pub(super) fn without_tcp<'a>(sender: Sender<'a>, why: &Missing) -> Sender<'a> {
    let segment = Err(why.clone());
    let (arrived_bytes, min_rtt_s) = (Err(why.clone()), Err(why.clone()));
    Sender { segment, arrived_bytes, min_rtt_s, tcp_limit: None, around_tcp: None, ..sender }
}
