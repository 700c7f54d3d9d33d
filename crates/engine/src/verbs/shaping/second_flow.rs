//! A second, sparse flow beside a train: whether it waits in the train's queue.
//!
//! It has a train of its own, after the one that shows rate and bucket: whatever else crosses a shaper changes those.

use std::time::Duration;

use goodput_model::{
    BitRate, Bytes, FlowSharing, Known, Length, Missing, Plan, Shaping, ShapingKind,
};
use goodput_shaping::{has_queue_to_share, sharing};

use super::ShapingRequest;
use super::arrivals::train;
use super::together::run_together;
use super::train::{Sent, train_length_s, train_plan};
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;

/// Length of the train with a flow beside it, seconds: its queue builds up within a small part of that.
const BESIDE_S: f64 = 0.3;
/// Payload of a datagram of the sparse flow.
const SPARSE_PAYLOAD: Bytes = Bytes(100);
/// Rate of the sparse flow as a share of the shaper's: far less than half, which is its turn in a fair queue.
const SPARSE_SHARE: f64 = 0.15;
/// Most datagrams of the sparse flow in a second. More would show nothing else.
const MAX_SPARSE_PER_S: f64 = 1000.0;
/// How long both flows may take, from the conversations to the reports: a long queue holds each message up. Meanwhile the
/// conversation of the test is silent, and the server lets it be for 15 s.
const TOGETHER_TIMEOUT: Duration = Duration::from_secs(10);

/// What was sent, with what a second flow beside another train shows of the queue. Whatever fails, or an interrupt, is the
/// reason why it is unknown whether the queue is fair.
pub(super) async fn with_second_flow(
    request: &ShapingRequest,
    mut sent: Sent,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Sent {
    let rate = sent.shaping.as_ref().ok().and_then(rate_of_queue);
    let found = match (rate, request.plan.socket.source_port) {
        _ if interrupt.is_raised() => Err(Missing::because(interrupt.in_words())),
        (None, _) => Err(Missing::because("too little waits to show it")),
        (_, Some(_)) => Err(Missing::because(
            "a second flow needs another source port, which may be of another class",
        )),
        (Some(rate), None) => {
            listener(Event::Note { text: "sends datagrams of two flows at the same time".into() });
            sent.seconds += length_s(request);
            beside(request, rate, interrupt).await
        }
    };
    if let Ok(Shaping { queue: Known::Value(queue), .. }) = &mut sent.shaping {
        queue.between_flows = found.into();
    }
    sent
}

/// The rate of a shaper whose queue is long enough for the question, bits per second of frames.
fn rate_of_queue(shaping: &Shaping) -> Option<f64> {
    let (queue, rate) = (shaping.queue.value()?, shaping.rate_bits_per_s.value()?.value);
    let frame = shaping.frame_bytes.0 as f64;
    let is_long = has_queue_to_share(queue, rate, frame);
    (shaping.kind == ShapingKind::Shaper && is_long).then_some(rate)
}

async fn beside(
    request: &ShapingRequest,
    rate: f64,
    interrupt: &Interrupt,
) -> Result<FlowSharing, Missing> {
    let [first, sparse] = plans(request, rate);
    let pairs = [(request, &first), (request, &sparse)];
    let measured = tokio::time::timeout(TOGETHER_TIMEOUT, run_together(&pairs, interrupt)).await;
    let late = |_| Missing::because("two flows took too long");
    let measured = measured.map_err(late)?.into_iter().collect::<Result<Vec<_>, _>>()?;
    match &measured[..] {
        [first, sparse] => sharing(&train(first)?, &train(sparse)?, rate),
        _ => Err(Missing::because("two flows were not measured")),
    }
}

/// The train, and the sparse flow beside it.
fn plans(request: &ShapingRequest, rate: f64) -> [Plan; 2] {
    let length = Length::Seconds(length_s(request));
    // A capture is to show the train and TCP.
    let first = Plan { length, far_capture: false, ..train_plan(request) };
    let bits = SPARSE_PAYLOAD.0 as f64 * 8.0;
    let sparse = Plan {
        chunk_bytes: SPARSE_PAYLOAD,
        rate_bits_per_s: Some(BitRate((rate * SPARSE_SHARE).min(MAX_SPARSE_PER_S * bits))),
        mover: "copy".into(),
        ..first.clone()
    };
    [first, sparse]
}

fn length_s(request: &ShapingRequest) -> f64 {
    BESIDE_S.min(train_length_s(request))
}
