//! Expresses a plan in iperf3's parameters, or says which option it can't express.

use goodput_model::traffic_class::traffic_class;
use goodput_model::{Direction, Length, Pin, Plan, Transport};

use super::agree::UDP_BLOCK;
use super::params::Params;
use crate::check::{self, PLAIN_MOVER};

/// iperf3's longest duration, seconds. The client ends a test itself, so a longer test only needs a server that
/// permits it.
const MAX_TIME_S: f64 = 86_400.0;

/// The options of a sender that iperf3 has too; [`far_sends_by_sendfile`] says which movers.
const CARRIED: [&str; 6] =
    ["--sndbuf", "--congestion", "--nodelay", "--max-pacing", "--dont-fragment", "--mover"];

/// Most streams of each direction (3.12, `MAX_STREAMS` in `iperf.h`).
const MAX_STREAMS: u16 = 128;

/// The parameters of a plan, or the parts that iperf3 can't express.
pub fn express(plan: &Plan) -> Result<Params, String> {
    let (time, num) = end(plan.length)?;
    let socket = &plan.socket;
    if plan.flows > MAX_STREAMS {
        return Err(format!("iperf3 has at most {MAX_STREAMS} streams; use fewer --flows"));
    }
    if plan.data_port.is_some() {
        return Err("iperf3 uses one port for all connections; leave out --data-port".into());
    }
    if let [first, ..] = check::not_carried(plan, &CARRIED)[..] {
        return Err(format!("an iperf3 server can't be given {first}; leave it out"));
    }
    let bandwidth = plan.rate_per_flow().map(|rate| rate.0.round() as u64);
    if bandwidth == Some(0) {
        return Err("iperf3 reads 0 bit/s as unlimited; use a higher --rate".into());
    }
    Ok(Params {
        tcp: plan.transport == Transport::Tcp,
        udp: plan.transport == Transport::Udp,
        omit: omit(plan)?,
        time: Some(time),
        num,
        server_affinity: far_cpu(&plan.pin.far)?,
        mss: socket.mss_bytes.map(u64::from),
        nodelay: socket.nodelay,
        parallel: Some(u64::from(plan.flows)),
        reverse: plan.direction == Direction::Reverse,
        bidirectional: plan.direction == Direction::Both,
        window: window(plan)?,
        len: Some(plan.chunk_bytes.0),
        bandwidth,
        fqrate: socket.max_pacing_bits_per_s.map(|rate| rate.0 as u64),
        tos: socket.dscp.map(|dscp| traffic_class(dscp).into()),
        congestion: socket.congestion.clone(),
        get_server_output: plan.peer_output,
        // A 32-bit number would wrap around after 5 minutes at 10 Gbit/s of small datagrams.
        udp_counters_64bit: plan.transport == Transport::Udp,
        dont_fragment: socket.dont_fragment,
        zerocopy: far_sends_by_sendfile(plan)?,
        skip_rx_copy: far_discards(plan)?,
        client_version: Some(format!("goodput {}", env!("CARGO_PKG_VERSION"))),
        ..Params::default()
    })
}

/// The one CPU that iperf3 binds its whole process to.
fn far_cpu(pin: &Pin) -> Result<Option<u64>, String> {
    match pin {
        Pin::None => Ok(None),
        Pin::Cpus(cpus) if cpus.len() == 1 => Ok(cpus.first().copied().map(u64::from)),
        Pin::Auto | Pin::Cpus(_) => {
            Err("an iperf3 server accepts only one CPU to run on (--pin far:N)".into())
        }
    }
}

/// Seconds and bytes. The client ends the test: a server only needs the longest duration, so seconds are rounded up.
fn end(length: Length) -> Result<(u64, u64), String> {
    match length {
        Length::Bytes(bytes) => Ok((0, bytes.0)),
        Length::Source => Err("iperf3 needs an amount (-n) or a time (-t)".into()),
        Length::Seconds(seconds) | Length::Auto { max_s: seconds, .. } => {
            if seconds > MAX_TIME_S {
                return Err(format!("iperf3 measures for at most {MAX_TIME_S} s (--time)"));
            }
            Ok((seconds.ceil().max(1.0) as u64, 0))
        }
    }
}

/// Whole seconds of warm-up. With a number of bytes, this end would have to count from the end of the warm-up, but the
/// sender doesn't know when this is.
fn omit(plan: &Plan) -> Result<u64, String> {
    match plan.length {
        _ if plan.omit_s == 0.0 => Ok(0),
        Length::Bytes(_) | Length::Source => {
            Err("a warm-up (--omit) needs a length in seconds (--time)".into())
        }
        _ if plan.omit_s.fract() != 0.0 => {
            Err("iperf3 omits whole seconds; give --omit a whole number".into())
        }
        _ => Ok(plan.omit_s as u64),
    }
}

/// iperf3 has one size for both buffers of every socket.
fn window(plan: &Plan) -> Result<Option<u64>, String> {
    match (plan.socket.sndbuf_bytes, plan.socket.rcvbuf_bytes) {
        (None, None) => Ok(None),
        (Some(send), Some(receive)) if send == receive => Ok(Some(send.0)),
        _ => {
            Err("iperf3 has one size for both buffers; give --sndbuf and --rcvbuf the same".into())
        }
    }
}

fn far_sends_by_sendfile(plan: &Plan) -> Result<bool, String> {
    match (plan.transport, plan.mover.as_str()) {
        _ if plan.direction == Direction::Send => Ok(false),
        (_, PLAIN_MOVER) => Ok(false),
        (Transport::Tcp, "sendfile") => Ok(true),
        (Transport::Tcp, other) => {
            Err(format!("iperf3 sends with copy or sendfile, not with --mover {other}"))
        }
        (Transport::Udp, other) => Err(one_way_only("sends", "--mover", other)),
    }
}

fn far_discards(plan: &Plan) -> Result<bool, String> {
    match (plan.transport, plan.receive_mover.as_deref()) {
        _ if plan.direction == Direction::Reverse => Ok(false),
        (_, None | Some(PLAIN_MOVER)) => Ok(false),
        (Transport::Tcp, Some("discard")) => Ok(true),
        (Transport::Tcp, Some(other)) => {
            Err(format!("iperf3 receives with copy or discard, not with --receive-mover {other}"))
        }
        (Transport::Udp, Some(other)) => Err(one_way_only("receives", "--receive-mover", other)),
    }
}

fn one_way_only(does: &str, option: &str, mover: &str) -> String {
    format!("iperf3 {does} datagrams in one way only; leave out {option} {mover}")
}

/// Whether a plan makes sense, and its parameters in iperf3's terms.
pub fn checked(plan: &Plan) -> Result<Params, String> {
    check::sense_with(plan, *UDP_BLOCK.start())
        .map_err(|why| format!("this plan can't be measured: {why}"))?;
    express(plan)
}

#[cfg(test)]
mod tests {
    use super::super::agree::agree;
    use super::*;
    use crate::pair::limits;
    use goodput_model::{BitRate, Bytes, SocketOptions};

    fn all_options() -> Plan {
        Plan {
            transport: Transport::Tcp,
            direction: Direction::Both,
            flows: 4,
            length: Length::Seconds(3.0),
            mover: "sendfile".into(),
            receive_mover: Some("discard".into()),
            chunk_bytes: Bytes(4096),
            rate_bits_per_s: Some(BitRate(4e6)),
            socket: SocketOptions {
                mss_bytes: Some(1000),
                sndbuf_bytes: Some(Bytes(65_536)),
                rcvbuf_bytes: Some(Bytes(65_536)),
                congestion: Some("cubic".into()),
                nodelay: true,
                max_pacing_bits_per_s: Some(BitRate(1e6)),
                dscp: Some(46),
                ..SocketOptions::default()
            },
            ..Plan::standard()
        }
    }

    #[test]
    fn a_plan_arrives_at_a_server_as_it_is() {
        let plan = all_options();
        let json = serde_json::to_value(checked(&plan).unwrap()).unwrap();
        assert_eq!(agree(&Params::read(&json), &limits()).unwrap().plan, plan);
    }

    #[test]
    fn parts_of_a_second_and_an_open_end_are_rounded_up() {
        let time = |length| express(&Plan { length, ..Plan::standard() }).unwrap().time;
        assert_eq!(time(Length::Seconds(0.3)), Some(1));
        assert_eq!(time(Length::Seconds(2.5)), Some(3));
        assert_eq!(time(Plan::standard().length), Some(10));
        assert_eq!(time(Length::Bytes(Bytes(7))), Some(0));
    }

    #[test]
    fn what_iperf3_cannot_say_is_named() {
        let refused = |change: fn(&mut Plan)| {
            let mut plan = all_options();
            change(&mut plan);
            checked(&plan).unwrap_err()
        };
        assert!(refused(|p| p.socket.sndbuf_bytes = None).contains("--rcvbuf"));
        assert!(refused(|p| p.mover = "uring".into()).contains("--mover uring"));
        assert!(refused(|p| p.receive_mover = Some("splice".into())).contains("--receive-mover"));
        assert!(refused(|p| p.length = Length::Seconds(1e5)).contains("--time"));
        assert!(refused(|p| p.rate_bits_per_s = Some(BitRate(1.0))).contains("--rate"));
        assert!(refused(|p| p.flows = 129).contains("--flows"));
        let far_bursts = |p: &mut Plan| {
            (p.transport, p.direction) = (Transport::Udp, Direction::Reverse);
            (p.chunk_bytes, p.burst_bytes) = (Bytes(1000), Some(Bytes(4000)));
        };
        assert!(refused(far_bursts).contains("--burst"));
        assert!(refused(|p| p.socket.cork = true).contains("--cork"));
        let far_moves = |mover: &'static str, receive: Option<&'static str>| {
            let (transport, chunk_bytes) = (Transport::Udp, Bytes(1000));
            let (mover, receive_mover) = (mover.into(), receive.map(Into::into));
            let plan = Plan { transport, chunk_bytes, mover, receive_mover, ..all_options() };
            checked(&plan).unwrap_err()
        };
        assert!(far_moves("gso", None).contains("--mover gso"));
        assert!(far_moves("copy", Some("gro")).contains("--receive-mover gro"));
        assert!(refused(|p| p.flows = 0).contains("can't be measured"));
    }
}
