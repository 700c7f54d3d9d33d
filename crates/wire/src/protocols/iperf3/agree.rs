//! Turns a client's parameters into a plan, or into iperf3's error number.

use goodput_model::traffic_class::dscp;
use goodput_model::{BitRate, Bytes, Direction, Length, Pin, Pins, Plan, SocketOptions, Transport};

use super::errors::number;
use super::params::Params;
use crate::check;
use crate::session::Limits;

/// iperf3's own limits (3.12, `iperf.h` and `iperf_api.h`).
const MAX_TIME_S: u64 = 86_400;
const MAX_OMIT_S: u64 = 600;
const MAX_STREAMS: u64 = 128;
const MAX_BLOCK: u64 = 1024 * 1024;
const MAX_BUFFER: u64 = 512 * 1024 * 1024;
const MAX_MSS: u64 = 9 * 1024;
/// CPUs in the C library's CPU set (sched_setaffinity(2)).
const MAX_CPUS: u16 = 1024;
/// Bytes of a datagram.
pub const UDP_BLOCK: std::ops::RangeInclusive<u64> = 16..=65_507;

/// What iperf3's server assumes if the client sends no value (`iperf_defaults`).
const TIME_S: u64 = 10;
const TCP_BLOCK: u64 = 128 * 1024;
const UDP_BLOCK_DEFAULT: u64 = 1460;

/// The client's request, in goodput's terms.
#[derive(Debug, Clone, PartialEq)]
pub struct Agreed {
    /// The plan, seen from the client, which is the near end.
    pub plan: Plan,
    /// Whether the numbers of datagrams have 64 bits.
    pub wide: bool,
    /// Seconds of warm-up, which the results leave out.
    pub omit_s: f64,
    /// Seconds that payload may move according to the client, warm-up included. `None` if another condition ends the
    /// test.
    pub lasts_s: Option<f64>,
    /// Whether the client wants the server's output.
    pub wants_output: bool,
    /// The client's version, as reported by the client.
    pub client_version: Option<String>,
}

/// Why not: iperf3's error number, which is all that the client gets, and words for this end.
pub type Refusal = (u32, String);

/// The plan of these parameters, within the limits of iperf3 and this server.
pub fn agree(params: &Params, limits: &Limits) -> Result<Agreed, Refusal> {
    numbers_are_amounts(params)?;
    transport_is_ours(params)?;
    let lasts_s = lasts_s(params)?;
    let plan = Plan {
        transport: if params.udp { Transport::Udp } else { Transport::Tcp },
        direction: direction(params)?,
        flows: streams(params)?,
        length: length(params, lasts_s, limits),
        omit_s: if lasts_s.is_some() { params.omit as f64 } else { 0.0 },
        interval_s: 1.0,
        mover: if sends_files(params) { "sendfile".into() } else { "copy".into() },
        receive_mover: discards(params).then(|| "discard".into()),
        chunk_bytes: Bytes(block(params)?),
        rate_bits_per_s: None,
        pin: pins(params)?,
        socket: socket(params)?,
        ..Plan::standard()
    };
    let rate = params.bandwidth.map(|rate| BitRate(rate as f64 * f64::from(plan.flows)));
    let plan = Plan { rate_bits_per_s: rate, ..plan };
    within(&plan, limits)?;
    check::sense_with(&plan, *UDP_BLOCK.start()).map_err(|why| (number::RECEIVE_PARAMS, why))?;
    check::within(&plan, limits).map_err(|why| (number::RECEIVE_PARAMS, why))?;
    Ok(Agreed {
        plan,
        wide: params.udp_counters_64bit,
        omit_s: params.omit as f64,
        lasts_s,
        wants_output: params.get_server_output,
        client_version: params.client_version.clone(),
    })
}

/// Gives the same error numbers as 3.22; versions before 3.17 or so accept most of these values.
fn numbers_are_amounts(params: &Params) -> Result<(), Refusal> {
    let Some(key) = params.absurd else { return Ok(()) };
    let number = match key {
        "parallel" => number::STREAMS,
        "time" => number::DURATION,
        "len" if params.udp => number::UDP_BLOCK_SIZE,
        "len" => number::BLOCK_SIZE,
        "omit" => number::OMIT,
        "MSS" => number::MSS,
        "window" => number::BUFFER_SIZE,
        "TOS" => number::TOS,
        "server_affinity" => number::AFFINITY,
        _ => number::RECEIVE_PARAMS,
    };
    Err((number, format!("its {key} is negative or far too large")))
}

fn transport_is_ours(params: &Params) -> Result<(), Refusal> {
    if params.sctp {
        return Err((number::NO_SCTP, "it requests SCTP".into()));
    }
    Ok(())
}

fn sends_to_client(params: &Params) -> bool {
    params.reverse || params.bidirectional
}

/// Over UDP iperf3 ignores the option (`iperf_udp.c` has no sendfile).
fn sends_files(params: &Params) -> bool {
    params.zerocopy && !params.udp && sends_to_client(params)
}

fn discards(params: &Params) -> bool {
    let receives = params.bidirectional || !params.reverse;
    params.skip_rx_copy && !params.udp && receives
}

fn direction(params: &Params) -> Result<Direction, Refusal> {
    match (params.reverse, params.bidirectional) {
        (true, true) => Err((number::REVERSE_BIDIR, "both reverse and bidirectional".into())),
        (true, false) => Ok(Direction::Reverse),
        (false, true) => Ok(Direction::Both),
        (false, false) => Ok(Direction::Send),
    }
}

fn streams(params: &Params) -> Result<u16, Refusal> {
    let asked = params.parallel.unwrap_or(1);
    let streams = u16::try_from(asked).ok().filter(|_| (1..=MAX_STREAMS).contains(&asked));
    streams.ok_or_else(|| (number::STREAMS, format!("it requests {asked} streams")))
}

/// Seconds until the client ends the test, warm-up included, if it ends by time.
fn lasts_s(params: &Params) -> Result<Option<f64>, Refusal> {
    let counted = params.num > 0 || params.blockcount > 0;
    let time = params.time.unwrap_or(if counted { 0 } else { TIME_S });
    if time > MAX_TIME_S {
        return Err((number::DURATION, format!("it requests {time} s")));
    }
    if params.omit > MAX_OMIT_S {
        return Err((number::OMIT, format!("it requests a warm-up of {} s", params.omit)));
    }
    Ok((time > 0 && !counted).then_some((time + params.omit) as f64))
}

/// How long this end must go on. The client ends every test. If a sender stopped after the requested bytes, the client
/// would wait for the lost ones.
fn length(params: &Params, lasts_s: Option<f64>, limits: &Limits) -> Length {
    let block = params.len.unwrap_or(TCP_BLOCK);
    let bytes = params.num.max(params.blockcount.saturating_mul(block));
    match lasts_s {
        Some(seconds) => Length::Seconds(seconds - params.omit as f64),
        None if bytes > 0 && !sends_to_client(params) => Length::Bytes(Bytes(bytes)),
        None => Length::Seconds(limits.duration_s),
    }
}

fn block(params: &Params) -> Result<u64, Refusal> {
    let (default, range, number) = if params.udp {
        (UDP_BLOCK_DEFAULT, UDP_BLOCK, number::UDP_BLOCK_SIZE)
    } else {
        (TCP_BLOCK, 1..=MAX_BLOCK, number::BLOCK_SIZE)
    };
    let asked = params.len.unwrap_or(default);
    if range.contains(&asked) {
        return Ok(asked);
    }
    Err((number, format!("it requests blocks of {asked} bytes")))
}

/// The client doesn't report its own affinity.
fn pins(params: &Params) -> Result<Pins, Refusal> {
    let Some(cpu) = params.server_affinity else { return Ok(Pins::default()) };
    let known = u16::try_from(cpu).ok().filter(|cpu| *cpu < MAX_CPUS);
    let cpu = known.ok_or_else(|| (number::AFFINITY, format!("it requests CPU {cpu}")))?;
    Ok(Pins { near: Pin::None, far: Pin::Cpus(vec![cpu]) })
}

fn socket(params: &Params) -> Result<SocketOptions, Refusal> {
    if let Some(window) = params.window.filter(|window| *window > MAX_BUFFER) {
        return Err((number::BUFFER_SIZE, format!("it requests buffers of {window} bytes")));
    }
    let tos = params.tos.unwrap_or(0);
    let Ok(class) = u8::try_from(tos) else {
        return Err((number::TOS, format!("it requests a type of service of {tos}")));
    };
    if let Some(mss) = params.mss.filter(|mss| *mss > MAX_MSS) {
        return Err((number::MSS, format!("it requests an MSS of {mss} bytes")));
    }
    Ok(SocketOptions {
        mss_bytes: params.mss.map(|mss| mss as u32),
        sndbuf_bytes: params.window.map(Bytes),
        rcvbuf_bytes: params.window.map(Bytes),
        congestion: params.congestion.clone(),
        nodelay: params.nodelay,
        max_pacing_bits_per_s: params.fqrate.map(|rate| BitRate(rate as f64)),
        // The kernel sets congestion marks (RFC 3168), so the lower bits are left out.
        dscp: (class > 0).then(|| dscp(class)),
        // iperf3 ignores the option over TCP.
        dont_fragment: params.dont_fragment && params.udp,
        ..SocketOptions::default()
    })
}

/// Whether the plan is within this server's limits, each with iperf3's error number.
fn within(plan: &Plan, limits: &Limits) -> Result<(), Refusal> {
    let hold = |asked: f64, limit: f64, number: u32, what: &str| {
        if asked <= limit {
            return Ok(());
        }
        Err((number, format!("it requests {asked}{what}; this server allows {limit}{what}")))
    };
    let buffer = plan.socket.rcvbuf_bytes.map_or(0.0, |bytes| bytes.0 as f64);
    let flows = plan.flow_plans().len() as f64;
    let rate = plan.rate_bits_per_s.map_or(0.0, |rate| rate.0);
    let most = limits.rate_bits_per_s.unwrap_or(f64::INFINITY);
    let lasts = check::duration_s(plan).unwrap_or(0.0);
    hold(lasts, limits.duration_s, number::MAX_DURATION, " s")?;
    hold(flows, f64::from(limits.flows), number::STREAMS, " streams")?;
    hold(rate, most, number::TOTAL_RATE, " bit/s")?;
    hold(plan.chunk_bytes.0 as f64, limits.chunk_bytes as f64, number::BLOCK_SIZE, " bytes")?;
    let dscp = plan.socket.dscp.map_or(0.0, f64::from);
    hold(dscp, f64::from(limits.dscp), number::TOS, " as its DSCP")?;
    hold(buffer, limits.socket_buffer_bytes as f64, number::BUFFER_SIZE, " bytes of buffer")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::limits;

    fn agreed(json: &str) -> Result<Agreed, Refusal> {
        agree(&Params::read(&serde_json::from_str(json).unwrap()), &limits())
    }

    fn number_of(json: &str) -> u32 {
        agreed(json).unwrap_err().0
    }

    #[test]
    fn nothing_at_all_is_ten_seconds_of_tcp() {
        let plan = agreed("{}").unwrap().plan;
        let wanted = Plan { length: Length::Seconds(10.0), ..Plan::standard() };
        assert_eq!(plan, wanted);
    }

    #[test]
    fn every_option_arrives_in_the_plan() {
        let agreed = agreed(
            r#"{"udp":true,"omit":2,"time":5,"parallel":3,"bidirectional":true,"len":1000,
            "bandwidth":1000000,"window":65536,"MSS":1400,"server_affinity":1,"TOS":184,"nodelay":true,"fqrate":8000000,
            "congestion":"reno","udp_counters_64bit":1,"get_server_output":1}"#,
        )
        .unwrap();
        assert!(agreed.wide && agreed.wants_output);
        assert_eq!((agreed.omit_s, agreed.lasts_s), (2.0, Some(7.0)));
        let plan = &agreed.plan;
        assert_eq!((plan.transport, plan.direction), (Transport::Udp, Direction::Both));
        assert_eq!((plan.flows, plan.length), (3, Length::Seconds(5.0)));
        assert_eq!(plan.rate_bits_per_s, Some(BitRate(3e6)), "of all streams together");
        assert_eq!((plan.socket.dscp, plan.socket.mss_bytes), (Some(46), Some(1400)));
        assert_eq!(plan.socket.sndbuf_bytes, plan.socket.rcvbuf_bytes);
        assert_eq!(plan.pin, Pins { near: Pin::None, far: Pin::Cpus(vec![1]) });
        assert_eq!(plan.socket.max_pacing_bits_per_s, Some(BitRate(8e6)));
    }

    #[test]
    fn a_sender_goes_on_until_the_client_has_what_it_wants() {
        let sends = agreed(r#"{"time":0,"blockcount":3,"len":1000}"#).unwrap();
        assert_eq!(sends.plan.length, Length::Bytes(Bytes(3000)));
        assert_eq!(sends.lasts_s, None);
        let receives = agreed(r#"{"time":0,"num":3000,"reverse":true}"#).unwrap();
        assert_eq!(receives.plan.length, Length::Seconds(limits().duration_s));
        let endless = agreed(r#"{"time":0}"#).unwrap();
        assert_eq!(endless.plan.length, Length::Seconds(limits().duration_s));
    }

    #[test]
    fn datagrams_alone_are_kept_whole() {
        let whole = |json| agreed(json).unwrap().plan.socket.dont_fragment;
        assert!(whole(r#"{"udp":true,"reverse":true,"dont_fragment":1}"#));
        assert!(!whole(r#"{"tcp":true,"dont_fragment":1}"#));
    }

    #[test]
    fn movers_follow_the_way_the_payload_goes() {
        let movers = |json| agreed(json).map(|a| (a.plan.mover, a.plan.receive_mover)).unwrap();
        assert_eq!(movers(r#"{"zerocopy":1}"#), ("copy".into(), None));
        assert_eq!(movers(r#"{"zerocopy":1,"reverse":true}"#), ("sendfile".into(), None));
        assert_eq!(movers(r#"{"skip_rx_copy":1}"#), ("copy".into(), Some("discard".into())));
    }

    #[test]
    fn what_cannot_be_measured_has_iperf3s_number() {
        for (json, wanted) in [
            (r#"{"time":90000}"#, number::DURATION),
            (r#"{"time":61}"#, number::MAX_DURATION),
            (r#"{"time":1,"omit":700}"#, number::OMIT),
            (r#"{"parallel":500}"#, number::STREAMS),
            (r#"{"parallel":0}"#, number::STREAMS),
            (r#"{"parallel":65,"bidirectional":true}"#, number::STREAMS),
            (r#"{"len":2000000}"#, number::BLOCK_SIZE),
            (r#"{"udp":true,"len":15}"#, number::UDP_BLOCK_SIZE),
            (r#"{"window":1000000000}"#, number::BUFFER_SIZE),
            (r#"{"TOS":256}"#, number::TOS),
            (r#"{"sctp":true}"#, number::NO_SCTP),
            (r#"{"server_affinity":99999}"#, number::AFFINITY),
            (r#"{"server_affinity":-1}"#, number::AFFINITY),
            (r#"{"parallel":-1}"#, number::STREAMS),
            (r#"{"time":-1}"#, number::DURATION),
            (r#"{"len":-1}"#, number::BLOCK_SIZE),
            (r#"{"udp":true,"len":-1}"#, number::UDP_BLOCK_SIZE),
            (r#"{"omit":-1}"#, number::OMIT),
            (r#"{"MSS":-1}"#, number::MSS),
            (r#"{"MSS":100000}"#, number::MSS),
            (r#"{"window":-1}"#, number::BUFFER_SIZE),
            (r#"{"TOS":-1}"#, number::TOS),
            (r#"{"num":-1}"#, number::RECEIVE_PARAMS),
            (r#"{"bandwidth":1e300}"#, number::RECEIVE_PARAMS),
            (r#"{"reverse":true,"bidirectional":true}"#, number::REVERSE_BIDIR),
            (r#"{"congestion":"../x"}"#, number::RECEIVE_PARAMS),
        ] {
            assert_eq!(number_of(json), wanted, "{json}");
        }
    }
}
