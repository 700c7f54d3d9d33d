//! The train: datagrams faster than the rate, and when they came.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use goodput_model::{
    BitRate, Direction, ETHERNET_HEADER_BYTES, EndName, FlowSample, Known, Length, MAX_ARRIVALS,
    Missing, Plan, Shaping, Snapshot, SocketOptions, Transport,
};
use goodput_shaping::{Sizes, Train};

use super::ShapingRequest;
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::near::captures::CapturedRun;
use crate::near::client::Client;
use crate::near::measure::measure_whole;
use crate::result::dropped::dropped_share;
use crate::result::measurement::Measurement;

/// A train is sent at this multiple of the configured rate: fast enough to empty a bucket soon, and not a whole number,
/// so that its datagrams don't beat with the tokens.
const OFFERED_TIMES: f64 = 4.3;
/// Longest train, seconds.
const MAX_TRAIN_S: f64 = 2.5;
/// Datagrams that must arrive from a train, if there is time: ten parts of them show how the rate spreads.
const WANTED_ARRIVALS: f64 = 10_000.0;
/// Pause before a train: the bucket fills.
const BUCKET_FILL_TIME: Duration = Duration::from_secs(1);
/// Largest share of the datagrams that the receiving socket may drop: more would look like a policer.
const MAX_DROPPED_SHARE: f64 = 0.005;
/// Rate from which datagrams are joined for the way through the kernel, bits per second: a program that sends them one
/// by one gets little further.
const JOINED_FROM_BITS_PER_S: f64 = 1e9;
/// Header of a datagram, bytes (RFC 768).
const UDP_HEADER_BYTES: u64 = 8;

/// A train that was sent, or was to be.
pub(super) struct Sent {
    /// What it shows, or why none was sent.
    pub(super) shaping: Result<Shaping, Missing>,
    /// What its captures have, if it was sent.
    pub(super) captured: Vec<CapturedRun>,
    /// How long its traffic takes, seconds.
    pub(super) seconds: f64,
    /// Number of calls that sent it, if that was counted.
    pub(super) calls: Option<f64>,
    /// Whether the far end is a program that can report on none.
    pub(super) is_foreign: bool,
}

impl Sent {
    /// No train, of which something may have been sent.
    pub(super) fn none(request: &ShapingRequest, why: impl Into<Cow<'static, str>>) -> Self {
        let seconds = train_length_s(request);
        let shaping = Err(Missing::because(why));
        Self { shaping, captured: Vec::new(), seconds, calls: None, is_foreign: false }
    }
}

impl Sent {
    /// The same with the waits for its rate that a router's queueing discipline counted meanwhile, if one was asked before and
    /// after.
    pub(super) fn counted_at(mut self, router: Option<(&Snapshot, &Snapshot)>) -> Self {
        if let (Ok(train), Some(calls), Some((before, after))) =
            (&mut self.shaping, self.calls, router)
            && let Ok(waits) = before.grown(after, "qdisc.overlimits")
        {
            train.rate_waits_per_call = Known::Value(waits as f64 / calls);
        }
        self
    }
}

/// Sends a train, if the far end can report on it.
pub(super) async fn send_train(
    request: &ShapingRequest,
    client: &mut Client,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Sent, EngineError> {
    if !client.far_end().reports || !client.far_end().takes_any_plan {
        let why = "only goodput reports when datagrams come, and another program answers there";
        return Ok(Sent { seconds: 0.0, is_foreign: true, ..Sent::none(request, why) });
    }
    // Refused before the time is spent.
    let file = request.times.as_deref().map(begin_times).transpose()?;
    let plan = train_plan(request);
    listener(Event::Note {
        text: format!(
            "waits {} s for the bucket to fill, then sends datagrams at {}",
            BUCKET_FILL_TIME.as_secs(),
            plan.rate_bits_per_s.unwrap_or(request.configured.rate)
        ),
    });
    let_fill(interrupt).await?;
    let mut measurement = measure_whole(client, &plan, interrupt, &mut |_| {}).await?;
    if interrupt.is_raised() {
        return Err(EngineError::Interrupted);
    }
    let train = train(&measurement);
    if let (Ok(train), Some(mut file)) = (&train, file)
        && let Err(why) = keep(train, &mut file)
    {
        let text = format!("the times of datagrams were not written to the end: {why}");
        listener(Event::Note { text });
    }
    let calls = train.as_ref().ok().map(|train| train.sent as f64 / train.batch);
    let shaping = train.and_then(|train| goodput_shaping::shaping(&train));
    let captured = vec![CapturedRun::of(&mut measurement)];
    let seconds = train_length_s(request);
    Ok(Sent { shaping, captured, seconds, calls, is_foreign: false })
}

/// The file for the times of datagrams.
fn begin_times(file: &Path) -> Result<File, EngineError> {
    let operation = || format!("write the times of datagrams to {}", file.display());
    File::create(file).map_err(|cause| EngineError::Io { operation: operation(), cause })
}

/// Writes when each datagram was sent and came.
fn keep(train: &Train, file: &mut File) -> io::Result<()> {
    let json = serde_json::to_vec(train).map_err(io::Error::from);
    json.and_then(|json| file.write_all(&json))
}

/// Waits until a bucket is full.
pub(super) async fn let_fill(interrupt: &Interrupt) -> Result<(), EngineError> {
    tokio::select! {
        () = tokio::time::sleep(BUCKET_FILL_TIME) => Ok(()),
        () = interrupt.raised() => Err(EngineError::Interrupted),
    }
}

/// Length of a train, seconds: enough for a rate, but no longer than the receiver keeps the times of its datagrams.
pub(super) fn train_length_s(request: &ShapingRequest) -> f64 {
    let bits = request.datagram.0 as f64 * 8.0;
    let kept_s = MAX_ARRIVALS as f64 * bits / (request.configured.rate.0 * OFFERED_TIMES);
    (WANTED_ARRIVALS * bits / request.configured.rate.0).max(1.0).min(kept_s).min(MAX_TRAIN_S)
}

/// The plan of a train: of the sockets, only what says which way it takes.
pub(super) fn train_plan(request: &ShapingRequest) -> Plan {
    let payload = request.datagram;
    let rate = request.configured.rate.0 * OFFERED_TIMES;
    let base = &request.plan;
    let SocketOptions { bind, device, family, source_port, dscp, .. } = base.socket.clone();
    Plan {
        transport: Transport::Udp,
        direction: base.direction,
        length: Length::Seconds(train_length_s(request)),
        chunk_bytes: payload,
        rate_bits_per_s: Some(BitRate(rate)),
        // `auto` sends datagrams that have a rate one by one.
        mover: if rate < JOINED_FROM_BITS_PER_S { "copy" } else { "gso" }.into(),
        arrivals: true,
        far_capture: base.far_capture,
        socket: SocketOptions {
            bind,
            device,
            family,
            source_port,
            dscp,
            ..SocketOptions::default()
        },
        pin: base.pin.clone(),
        ..Plan::standard()
    }
}

/// The datagrams that came, as the receiving end reports them.
pub(super) fn train(measurement: &Measurement) -> Result<Train, Missing> {
    let plan = &measurement.plan;
    let sender = if plan.direction == Direction::Reverse { EndName::Far } else { EndName::Near };
    let receiver = measurement.end(sender.other());
    let dropped = receiver.map_or(Ok(0.0), dropped_share)?;
    if dropped > MAX_DROPPED_SHARE {
        let percent = dropped * 100.0;
        return Err(Missing::because(format!(
            "the receiving socket dropped {percent:.1} % of the datagrams: that host is too busy, or its buffers are too small"
        )));
    }
    let arrivals = receiver.and_then(|end| end.arrivals.first());
    let arrivals = arrivals.ok_or_else(|| Missing::because("the receiver kept no arrivals"))?;
    let last = measurement.end(sender).and_then(|end| end.last_sample());
    let last = last.ok_or_else(|| Missing::because("the sender reports no counts"))?;
    let sent = last.sent_bytes / plan.chunk_bytes.0;
    let flow = last.flows.first().ok_or_else(|| Missing::because("the sender reports no flow"))?;
    // A sender that does not count its calls is taken for one that joins nothing.
    let calls = flow.calls.value().map_or(sent as f64, |calls| (*calls as f64).max(1.0));
    let over_v6 = measurement.connections.first().is_some_and(|flow| flow.remote.is_ipv6());
    let packet = plan.chunk_bytes.0 + UDP_HEADER_BYTES + if over_v6 { 40 } else { 20 };
    let frame = packet + u64::from(ETHERNET_HEADER_BYTES);
    Ok(Train {
        arrivals: arrivals.datagrams.clone(),
        sent,
        sizes: Sizes { payload: plan.chunk_bytes.0, packet, frame },
        held_percent: held_percent(flow, last.at_s).into(),
        rate_waits_per_call: rate_waits(measurement, sender).map(|waits| waits / calls).into(),
        batch: sent as f64 / calls,
    })
}

/// How often the sender's queueing discipline waited for its rate.
fn rate_waits(measurement: &Measurement, sender: EndName) -> Result<f64, Missing> {
    let none = || Missing::because("the sender reports nothing");
    let end = measurement.end(sender).ok_or_else(none)?;
    Ok(end.before.grown(&end.after, "qdisc.overlimits")? as f64)
}

/// How long the sender waited for its own queue, percent of the time until its last sample.
fn held_percent(flow: &FlowSample, at_s: f64) -> Result<f64, Missing> {
    let blocked_s = *flow.blocked_us.get()? as f64 / 1e6;
    match at_s > 0.0 {
        true => Ok(blocked_s / at_s * 100.0),
        false => Err(Missing::because("its only sample is from the beginning")),
    }
}
