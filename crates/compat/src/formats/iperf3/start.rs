//! `start`: what is known before payload moves. The `cookie` belongs to a conversation in iperf3's own
//! protocol. A stream of JSON lines begins without it, because it comes with the results.

use std::net::SocketAddr;

use goodput_engine::Target;
use goodput_model::{
    Connection, Direction, FlowSample, Host, Length, Plan, Record, Sample, SocketMemory, Transport,
};
use jiff::Timestamp;
use serde::Serialize;

use super::socket;
use crate::formats::Context;

/// `start`.
#[derive(Debug, Default, Serialize)]
pub struct Start {
    connected: Vec<Connected>,
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_info: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connecting_to: Option<ConnectingTo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_connection: Option<ConnectingTo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cookie: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_mss: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_mss_default: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_bitrate: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fq_rate: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sock_bufsize: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sndbuf_actual: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rcvbuf_actual: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test_start: Option<TestStart>,
}

#[derive(Debug, Serialize)]
struct Connected {
    socket: u32,
    local_host: String,
    local_port: u16,
    remote_host: String,
    remote_port: u16,
}

#[derive(Debug, Serialize)]
struct Time {
    time: String,
    timesecs: i64,
    /// The same second: fractions are not stored.
    timemillisecs: i64,
}

#[derive(Debug, Serialize)]
struct ConnectingTo {
    host: String,
    port: u16,
}

#[derive(Debug, Serialize)]
struct TestStart {
    protocol: &'static str,
    num_streams: u16,
    blksize: u64,
    omit: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<f64>,
    bytes: u64,
    blocks: u64,
    reverse: u8,
    tos: u8,
    target_bitrate: u64,
    bidir: u8,
    fqrate: u64,
    interval: f64,
    gso: u8,
    gro: u8,
}

/// The data for a start.
pub struct Known<'a> {
    /// What is measured, with which far end and when.
    pub context: &'a Context,
    /// The addresses of the flows.
    pub connections: &'a [Connection],
    /// The first sample with flows in it.
    pub first: Option<&'a Sample>,
    /// This host.
    pub host: Option<&'a Host>,
    /// The id of the measurement in iperf3's protocol.
    pub cookie: Option<&'a str>,
}

const VERSION: &str = concat!("goodput ", env!("CARGO_PKG_VERSION"));

impl Start {
    /// The start of a measurement that did not take place.
    pub fn of_none() -> Self {
        Self { version: VERSION.into(), ..Self::default() }
    }
}

/// The start of a finished record.
pub fn of_record(record: &Record, served: Option<SocketAddr>) -> Start {
    let near = record.ends.near.value();
    let context = Context {
        plan: record.plan.clone(),
        target: record.target.clone(),
        started: record.started.clone(),
        served,
        served_flows: 0,
        style: Default::default(),
    };
    start(&Known {
        context: &context,
        connections: &record.connections,
        first: near.and_then(|end| end.samples.iter().find(|s| !s.flows.is_empty())),
        host: near.map(|end| &end.host),
        cookie: record.far_totals.as_ref().and_then(|totals| totals.cookie.as_deref()),
    })
}

/// The start of a measurement.
pub fn start(known: &Known<'_>) -> Start {
    let Known { context: Context { plan, target, started, served, .. }, .. } = known;
    let flow = known.first.and_then(|sample| sample.flows.first());
    let memory = |read: fn(&SocketMemory) -> u64| flow?.memory.value().map(read);
    let mss = flow.and_then(|flow: &FlowSample| flow.tcp.value()?.snd_mss_bytes);
    let asked = plan.socket.mss_bytes.map(u64::from);
    Start {
        connected: known.connections.iter().map(connected).collect(),
        version: VERSION.into(),
        system_info: known.host.map(system),
        timestamp: started.parse().ok().map(time),
        accepted_connection: served
            .map(|peer| ConnectingTo { host: peer.ip().to_string(), port: peer.port() }),
        connecting_to: target
            .parse()
            .ok()
            .filter(|_| served.is_none())
            .map(|to: Target| ConnectingTo { host: to.host, port: to.port }),
        cookie: known.cookie.map(Into::into),
        tcp_mss: asked,
        tcp_mss_default: mss.filter(|_| asked.is_none()),
        target_bitrate: Some(stream_rate(plan)),
        fq_rate: Some(fq_rate(plan)),
        sock_bufsize: Some(window(plan)),
        sndbuf_actual: memory(|m| m.sndbuf_bytes),
        rcvbuf_actual: memory(|m| m.rcvbuf_bytes),
        test_start: Some(test_start(plan, served.is_some())),
    }
}

fn connected(connection: &Connection) -> Connected {
    Connected {
        socket: socket(connection.flow),
        local_host: connection.local.ip().to_string(),
        local_port: connection.local.port(),
        remote_host: connection.remote.ip().to_string(),
        remote_port: connection.remote.port(),
    }
}

/// `Linux NAME RELEASE`, the beginning of uname(1).
fn system(host: &Host) -> String {
    match host.kernel.split_once(' ') {
        Some((system, release)) => format!("{system} {} {release}", host.name),
        None => format!("{} {}", host.kernel, host.name),
    }
}

fn time(at: Timestamp) -> Time {
    let time = at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    Time { time, timesecs: at.as_second(), timemillisecs: at.as_millisecond() }
}

/// iperf3's rates are for one stream; 0 is none.
fn stream_rate(plan: &Plan) -> u64 {
    plan.rate_per_flow().map_or(0, |rate| rate.0 as u64)
}

fn fq_rate(plan: &Plan) -> u64 {
    plan.socket.max_pacing_bits_per_s.map_or(0, |rate| rate.0 as u64)
}

/// iperf3 has one size for both buffers; 0 is the system's default.
fn window(plan: &Plan) -> u64 {
    plan.socket.sndbuf_bytes.or(plan.socket.rcvbuf_bytes).map_or(0, |bytes| bytes.0)
}

/// A server's object says what its client requested.
fn test_start(plan: &Plan, serves: bool) -> TestStart {
    let reverse = if serves { Direction::Send } else { Direction::Reverse };
    // 0 if the other length ends the test, as in iperf3; a precision is unknown to iperf3.
    let (duration, bytes) = match plan.length {
        Length::Seconds(seconds) => (Some(seconds), 0),
        Length::Bytes(bytes) => (Some(0.0), bytes.0),
        Length::Auto { .. } | Length::Source => (None, 0),
    };
    TestStart {
        protocol: match plan.transport {
            Transport::Tcp => "TCP",
            Transport::Udp => "UDP",
        },
        num_streams: plan.flows,
        blksize: plan.chunk_bytes.0,
        omit: plan.omit_s as u32,
        duration,
        bytes,
        blocks: 0,
        reverse: (plan.direction == reverse).into(),
        tos: plan.socket.dscp.unwrap_or(0) << 2,
        target_bitrate: stream_rate(plan),
        bidir: (plan.direction == Direction::Both).into(),
        fqrate: fq_rate(plan),
        interval: plan.interval_s,
        // Whether `--gsro` was given (3.21); goodput's own movers decide about offload.
        gso: 0,
        gro: 0,
    }
}
