//! Whether a shaper delivers its rate: a train of datagrams shows what it does, then TCP shows what its users have.

use std::time::Duration;

use goodput_ceiling::Packet;
use goodput_model::{
    BitRate, Bytes, Direction, ETHERNET_HEADER_BYTES, EndName, Estimate, Kind, Length,
    MAX_ARRIVALS, Missing, Plan, Record, Shaping, SocketOptions, Transport,
};
use goodput_shaping::{Sizes, TcpRate, Told, Train, judge};

use crate::control::credentials::Credentials;
use crate::control::target::Target;
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::near::client::Client;
use crate::result::conclude::conclude;
use crate::result::dropped::dropped_share;
use crate::result::measurement::Measurement;

/// A train is sent at this multiple of the configured rate: fast enough to empty a bucket soon, and not a whole number,
/// so that its datagrams don't beat with the tokens.
const OFFERED_TIMES: f64 = 4.3;
/// All traffic together, seconds.
const TRAFFIC_S: f64 = 5.0;
/// Longest train, seconds.
const MAX_TRAIN_S: f64 = 2.5;
/// Datagrams that must arrive from a train, if there is time: ten parts of them show how the rate spreads.
const WANTED_ARRIVALS: f64 = 10_000.0;
/// Pause before a train: the bucket fills.
const PAUSE: Duration = Duration::from_secs(1);
/// Largest share of the datagrams that the receiving socket may drop: more would look like a policer.
const MAX_DROPPED_SHARE: f64 = 0.005;
/// Rate from which datagrams are joined for the way through the kernel, bits per second: a program that sends them one
/// by one gets little further.
const JOINED_FROM_BITS_PER_S: f64 = 1e9;
/// Header of a datagram, bytes (RFC 768).
const UDP_HEADER_BYTES: u64 = 8;

/// What to test.
#[derive(Clone)]
pub struct ShapingRequest {
    /// Who is at the other end.
    pub target: Target,
    /// Credentials that the far end may ask for.
    pub credentials: Credentials,
    /// The plan of the TCP measurement, in one direction and of any length; the train takes the same way, with the same marks.
    pub plan: Plan,
    /// Payload of the train's datagrams.
    pub datagram: Bytes,
    /// The shaper's configuration.
    pub told: Told,
    /// When it began, RFC 3339, UTC.
    pub started: String,
}

/// Tests a shaper. An interrupt ends it early with what was measured.
///
/// # Errors
/// If the target can't be reached, or TCP can't be measured. Without the train the record says why.
pub async fn shaping(
    request: &ShapingRequest,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Record, EngineError> {
    let ShapingRequest { target, credentials, plan, .. } = request;
    if target.file.is_some() || target.mounted.is_some() {
        return Err(EngineError::Flow(format!(
            "{}: a shaper is tested towards a server that measures: name HOST or SCHEME://HOST",
            target.text
        )));
    }
    let mut client =
        Client::connect(target, &plan.socket, credentials, interrupt, listener).await?;
    let train = match send_train(request, &mut client, interrupt, listener).await {
        Ok(train) => train,
        Err(EngineError::Interrupted) => return Err(EngineError::Interrupted),
        Err(why) => Err(Missing::because(why.to_string())),
    };
    listener(Event::Note { text: "measures TCP, which is what users have".into() });
    let length = Length::Seconds(TRAFFIC_S - train_length_s(request));
    let plan = Plan { length, ..plan.clone() };
    let measured = client.measure(&plan, interrupt, listener).await;
    client.leave().await;
    let record = conclude(measured?, &target.text, &request.started)?.record;
    let tcp = tcp_rate(&record);
    let test = judge(request.told, train, tcp);
    Ok(Record { kind: Kind::Shaping, shaping: Some(Box::new(test)), ..record })
}

/// What a train shows, or why none was sent.
async fn send_train(
    request: &ShapingRequest,
    client: &mut Client,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Result<Shaping, Missing>, EngineError> {
    if !client.far_end().reports || !client.far_end().takes_any_plan {
        return Ok(Err(Missing::because(
            "only goodput reports when datagrams come, and another program answers there",
        )));
    }
    let plan = train_plan(request);
    listener(Event::Note {
        text: format!(
            "waits {} s for the bucket to fill, then sends datagrams at {}",
            PAUSE.as_secs(),
            plan.rate_bits_per_s.unwrap_or(request.told.rate)
        ),
    });
    tokio::select! {
        () = tokio::time::sleep(PAUSE) => {}
        () = interrupt.raised() => return Err(EngineError::Interrupted),
    }
    let measurement = client.measure_whole(&plan, interrupt, &mut |_| {}).await?;
    if interrupt.is_raised() {
        return Err(EngineError::Interrupted);
    }
    Ok(train(&measurement).and_then(|train| goodput_shaping::shaping(&train)))
}

/// Length of a train, seconds: enough for a rate, but no longer than the receiver keeps the times of its datagrams.
fn train_length_s(request: &ShapingRequest) -> f64 {
    let bits = request.datagram.0 as f64 * 8.0;
    let kept_s = MAX_ARRIVALS as f64 * bits / (request.told.rate.0 * OFFERED_TIMES);
    (WANTED_ARRIVALS * bits / request.told.rate.0).max(1.0).min(kept_s).min(MAX_TRAIN_S)
}

/// The plan of a train: of the sockets, only what says which way it takes.
fn train_plan(request: &ShapingRequest) -> Plan {
    let payload = request.datagram;
    let rate = request.told.rate.0 * OFFERED_TIMES;
    let base = &request.plan;
    let SocketOptions { bind, device, family, dscp, .. } = base.socket.clone();
    Plan {
        transport: Transport::Udp,
        direction: base.direction,
        length: Length::Seconds(train_length_s(request)),
        chunk_bytes: payload,
        rate_bits_per_s: Some(BitRate(rate)),
        mover: if rate < JOINED_FROM_BITS_PER_S { "copy" } else { "auto" }.into(),
        arrivals: true,
        socket: SocketOptions { bind, device, family, dscp, ..SocketOptions::default() },
        pin: base.pin.clone(),
        ..Plan::standard()
    }
}

/// The datagrams that came, as the receiving end reports them.
fn train(measurement: &Measurement) -> Result<Train, Missing> {
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
    let sent =
        measurement.end(sender).and_then(|end| end.last_sample()).map(|last| last.sent_bytes);
    let sent = sent.ok_or_else(|| Missing::because("the sender reports no counts"))?;
    let over_v6 = measurement.connections.first().is_some_and(|flow| flow.remote.is_ipv6());
    let packet = plan.chunk_bytes.0 + UDP_HEADER_BYTES + if over_v6 { 40 } else { 20 };
    let frame = packet + u64::from(ETHERNET_HEADER_BYTES);
    Ok(Train {
        arrivals: arrivals.datagrams.clone(),
        sent: sent / plan.chunk_bytes.0,
        sizes: Sizes { payload: plan.chunk_bytes.0, packet, frame },
    })
}

/// The rate that TCP got, and the size of its segments.
fn tcp_rate(record: &Record) -> Result<TcpRate, Missing> {
    let inputs = record.result.ceiling_inputs.as_ref();
    let inputs = inputs.ok_or_else(|| Missing::because("the size of its segments is not known"))?;
    let packet = Packet::of(inputs)?;
    let value = record.result.goodput_bits_per_s.0;
    // Without an interval, the value counts as exact.
    let off = record.result.precision_percent.value().copied().unwrap_or(0.0) / 100.0 * value;
    Ok(TcpRate {
        goodput: Estimate { value, low: value - off, high: value + off },
        payload: packet.payload,
        packet: packet.ip,
    })
}
