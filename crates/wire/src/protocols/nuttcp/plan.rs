//! Converts parameters to a plan and back.

use goodput_model::traffic_class::{ECN_MASK, traffic_class};
use goodput_model::{BitRate, Bytes, Direction, Length, Pin, Plan, SocketOptions, Transport};

use super::parameters::{NO_LIMIT, NO_RATE, Parameters, format};
use super::version::Version;
use super::{MAX_STREAMS, OURS};
use crate::check;
use crate::direct::names_far_receiver;
use crate::session::Limits;

/// A client's request, and its plan.
pub struct ClientRequest {
    /// The parameters as sent.
    pub parameters: Parameters,
    /// The plan that they mean.
    pub plan: Plan,
}

/// Lowest data port (line 4430): lower ports belong to the system.
const MIN_PORT: u64 = 1024;

/// Shortest datagram, bytes: a datagram of four bytes is a marker (nuttcp-6.1.2.c, line 2222).
const MIN_DATAGRAM_BYTES: u64 = 5;

/// Greatest type of service: one byte.
const TOS_MAX: u64 = 0xff;

/// Shortest time between two interval lines, seconds: how often this end samples.
const MIN_INTERVAL_S: f64 = 0.1;

/// The plan of a client's parameters, or why it is not served. `control` is the port of the control
/// connection here.
pub fn plan_of(asked: &Parameters, limits: &Limits, control: u16) -> Result<Plan, String> {
    serves(asked)?;
    holds_ports(asked, control)?;
    let plan = translated(asked, limits)?;
    check::sense_with(&plan, MIN_DATAGRAM_BYTES)?;
    check::within(&plan, limits)?;
    Ok(plan)
}

/// Refuses requests that this end can't serve, rather than do something else.
fn serves(asked: &Parameters) -> Result<(), String> {
    let server_sends = !asked.client_sends;
    refuse(&[
        (server_sends && asked.maxburst > 1, "bursts of more than one packet are not sent here"),
        (server_sends && asked.iratesss, "a smoothed slow start is not sent here"),
        (asked.connects() && asked.srcport > 0, "a source port can't be chosen here"),
        (
            asked.udp && server_sends && asked.nstream > 1 && asked.interval_s > 0.0,
            "datagrams of several streams are not counted together here; leave out -i or -N",
        ),
        (asked.reverse && asked.udp, "flip option not supported for UDP"),
        (asked.buflen == 0, "invalid buflen"),
    ])?;
    makes_sense(asked)
}

/// Refuses requests that this end can't serve in any role.
pub fn makes_sense(asked: &Parameters) -> Result<(), String> {
    refuse(&[
        (asked.traceroute, "doesn't run traceroute for a client"),
        (asked.multicast > 0, "multicast is not served here"),
        (
            asked.multilink || asked.stride > 0,
            "streams to other addresses than the client's own \
            are not served here",
        ),
        (asked.do_jitter > 0, "jitter as nuttcp measures it is not served here"),
        (asked.do_owd > 0, "one-way delay as nuttcp measures it is not served here"),
        (
            asked.tos & u64::from(ECN_MASK) != 0,
            "invalid tos: its two lowest bits are the network's (ECN)",
        ),
        (asked.tos > TOS_MAX, "invalid tos"),
        (asked.nbuf == 0, "invalid nbuf"),
        (asked.nstream == 0 || asked.nstream > u64::from(MAX_STREAMS), "invalid nstream"),
        (
            asked.interval_s > 0.0 && asked.interval_s < MIN_INTERVAL_S,
            "invalid interval: this \
            server looks every 0.1 s",
        ),
    ])
}

/// The first reason that applies.
pub fn refuse(refusals: &[(bool, &str)]) -> Result<(), String> {
    match refusals.iter().find(|(is_so, _)| *is_so) {
        Some((_, why)) => Err((*why).into()),
        None => Ok(()),
    }
}

fn holds_ports(asked: &Parameters, control: u16) -> Result<(), String> {
    let last = asked.port.saturating_add(asked.nstream - 1);
    if asked.port < MIN_PORT || last > u64::from(u16::MAX) {
        return Err("invalid port/nstream".into());
    }
    if (asked.port..=last).contains(&u64::from(control)) {
        return Err("ctlport overlaps port/nstream".into());
    }
    Ok(())
}

fn translated(asked: &Parameters, limits: &Limits) -> Result<Plan, String> {
    let unpaced = matches!(asked.rate, 0 | NO_RATE..);
    Ok(Plan {
        transport: if asked.udp { Transport::Udp } else { Transport::Tcp },
        direction: if asked.client_sends { Direction::Send } else { Direction::Reverse },
        flows: u16::try_from(asked.nstream).map_err(|_| "invalid nstream")?,
        length: length(asked, limits),
        interval_s: if asked.interval_s > 0.0 { asked.interval_s } else { 1.0 },
        chunk_bytes: Bytes(asked.buflen),
        rate_bits_per_s: (!unpaced).then_some(BitRate(asked.rate as f64 * 1000.0)),
        socket: socket(asked)?,
        ..Plan::standard()
    })
}

/// A sending client ends on its own; its length is only compared with the limits.
fn length(asked: &Parameters, limits: &Limits) -> Length {
    let bytes = asked.nbuf.checked_mul(asked.buflen).filter(|_| asked.nbuf != NO_LIMIT);
    match bytes {
        Some(bytes) if !asked.client_sends || asked.timeout_s == 0.0 => Length::Bytes(Bytes(bytes)),
        _ if asked.timeout_s > 0.0 => Length::Seconds(asked.timeout_s),
        _ => Length::Seconds(limits.duration_s),
    }
}

/// A server sets the options of its own side of the streams (lines 5345 to 5420).
fn socket(asked: &Parameters) -> Result<SocketOptions, String> {
    let sends = !asked.client_sends;
    let window = |is_set: bool| (is_set && asked.win > 0).then_some(Bytes(asked.win));
    let mss = (sends && asked.datamss > 0).then_some(asked.datamss);
    let mss = mss.map(u32::try_from).transpose().map_err(|_| "invalid datamss")?;
    Ok(SocketOptions {
        sndbuf_bytes: window(sends || asked.braindead),
        rcvbuf_bytes: window(!sends || asked.braindead),
        mss_bytes: mss.filter(|_| !asked.udp),
        nodelay: sends && asked.nodelay,
        dscp: asked.dscp()?,
        ..SocketOptions::default()
    })
}

/// The options of a sender that nuttcp has too.
const CARRIED: [&str; 2] = ["--sndbuf", "--nodelay"];

/// What of a plan the protocol can't express, if anything.
pub fn unspoken(plan: &Plan) -> Option<String> {
    let far_sends = plan.direction == Direction::Reverse;
    let odd_rate = plan.rate_bits_per_s.is_some_and(|rate| rate.0 < 1000.0);
    let last = |port: u16| u32::from(port) + u32::from(plan.flows.saturating_sub(1));
    let bad_port = |port: u16| u64::from(port) < MIN_PORT || last(port) > u16::MAX.into();
    if let [first, ..] = check::not_carried(plan, &CARRIED)[..] {
        return Some(format!("a nuttcp server can't be given {first}; leave it out"));
    }
    let refusals = [
        (plan.direction == Direction::Both, "both directions at once (--both)"),
        (plan.omit_s > 0.0, "a warm-up that is left out (--omit)"),
        (plan.peer_output, "what the far end would print (--peer-output)"),
        (plan.data_port.is_some_and(bad_port), "ports below 1024 or above 65535 (--data-port)"),
        (plan.pin.far != Pin::None, "the CPUs of the far end (--pin far:)"),
        (plan.flows > MAX_STREAMS, "more than 128 flows (--flows)"),
        (far_sends && odd_rate, "a rate below 1 kbit/s (--rate)"),
        (plan.chunk_bytes.0 > NO_LIMIT, "a chunk of more than 2 GiB (--chunk)"),
        (names_far_receiver(plan), "how the far end receives (--receive-mover)"),
    ];
    let what = refusals.iter().find(|(is_so, _)| *is_so).map(|(_, what)| what)?;
    Some(format!("the nuttcp protocol can't express {what}"))
}

/// The parameters of a plan that the protocol can express, for a server of version `theirs`.
///
/// If the far end sends over TCP, this end still connects, to pass NAT and firewalls here: every
/// version since 3.4.1 can be reversed this way.
pub fn parameters_of(plan: &Plan, theirs: Version, port: u16) -> Parameters {
    let client_sends = plan.direction == Direction::Send;
    let udp = plan.transport == Transport::Udp;
    let far_window = if client_sends { plan.socket.rcvbuf_bytes } else { plan.socket.sndbuf_bytes };
    let (nbuf, timeout_s) = match plan.length {
        Length::Seconds(seconds) => (NO_LIMIT, seconds),
        Length::Auto { max_s, .. } => (NO_LIMIT, max_s),
        Length::Source => (NO_LIMIT, 0.0),
        Length::Bytes(bytes) => (bytes.0.div_ceil(plan.chunk_bytes.0.max(1)), 0.0),
    };
    Parameters {
        buflen: plan.chunk_bytes.0,
        nbuf,
        win: far_window.map_or(0, |window| window.0),
        nstream: u64::from(plan.flows),
        rate: plan
            .rate_bits_per_s
            .map_or(NO_RATE, |rate| ((rate.0 / 1000.0).round() as u64).max(1)),
        port: u64::from(port),
        client_sends,
        timeout_s,
        udp,
        version: theirs.min(OURS),
        // With interval lines a sender puts its counts into the datagrams, and prints no lines.
        interval_s: if udp && !client_sends && plan.flows == 1 { plan.interval_s } else { 0.0 },
        reverse: !udp && !client_sends,
        format: u64::from(format::PARSE | format::WANT_RTT),
        irate: plan.rate_bits_per_s.is_some(),
        datamss: plan.socket.mss_bytes.map_or(0, u64::from),
        tos: plan.socket.dscp.map_or(0, |dscp| traffic_class(dscp).into()),
        nodelay: plan.socket.nodelay,
        ..Parameters::standard(theirs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::limits;

    fn asked(change: impl FnOnce(&mut Parameters)) -> Result<Plan, String> {
        let mut asked = Parameters { port: 5101, timeout_s: 10.0, ..Parameters::standard(OURS) };
        change(&mut asked);
        plan_of(&asked, &limits(), 5000)
    }

    #[test]
    fn the_usual_client_sends_for_ten_seconds() {
        let plan = asked(|_| {}).unwrap();
        let usual =
            Plan { length: Length::Seconds(10.0), chunk_bytes: Bytes(65_536), ..Plan::standard() };
        assert_eq!(plan, usual);
    }

    #[test]
    fn options_become_those_of_the_servers_own_side() {
        let plan = asked(|a| {
            (a.client_sends, a.win, a.datamss, a.tos, a.nodelay) = (false, 9000, 1400, 0xb8, true);
            (a.rate, a.nbuf, a.nstream) = (10_000, 100, 4);
        });
        let plan = plan.unwrap();
        assert_eq!(plan.direction, Direction::Reverse);
        assert_eq!(plan.length, Length::Bytes(Bytes(6_553_600)));
        assert_eq!((plan.flows, plan.rate_bits_per_s), (4, Some(BitRate(1e7))));
        let socket = plan.socket;
        assert_eq!((socket.sndbuf_bytes, socket.rcvbuf_bytes), (Some(Bytes(9000)), None));
        assert_eq!((socket.mss_bytes, socket.dscp, socket.nodelay), (Some(1400), Some(46), true));
    }

    #[test]
    fn what_is_out_of_bounds_or_not_done_here_is_refused_in_words() {
        type Change = fn(&mut Parameters);
        let cases: [(Change, &str); 13] = [
            (|a| a.traceroute = true, "traceroute"),
            (|a| a.multicast = 5, "multicast"),
            (|a| a.do_jitter = 2, "jitter"),
            (|a| a.port = 1023, "invalid port/nstream"),
            (|a| (a.port, a.nstream) = (65_535, 2), "invalid port/nstream"),
            (|a| (a.port, a.nstream) = (4999, 2), "ctlport overlaps"),
            (|a| a.nstream = 1_000_000_000, "invalid nstream"),
            (|a| a.buflen = 0, "invalid buflen"),
            (|a| a.buflen = u64::MAX, "a chunk of"),
            (|a| a.timeout_s = 1e9, "a duration of"),
            (|a| a.win = u64::MAX, "a receive buffer of"),
            (|a| (a.udp, a.buflen) = (true, 4), "a datagram of 4 bytes"),
            (|a| (a.client_sends, a.maxburst) = (false, 9), "bursts"),
        ];
        for (change, words) in cases {
            let why = asked(change).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn a_limit_that_the_client_does_not_name_is_the_servers() {
        let plan = asked(|a| a.timeout_s = 0.0).unwrap();
        assert_eq!(plan.length, Length::Seconds(limits().duration_s));
    }

    #[test]
    fn a_plan_comes_back_from_its_parameters() {
        let plan = Plan {
            transport: Transport::Udp,
            direction: Direction::Reverse,
            length: Length::Seconds(2.5),
            chunk_bytes: Bytes(1400),
            flows: 3,
            rate_bits_per_s: Some(BitRate(2e6)),
            socket: SocketOptions { dscp: Some(10), ..SocketOptions::default() },
            ..Plan::standard()
        };
        let there = parameters_of(&plan, OURS, 5101);
        assert_eq!(plan_of(&there, &limits(), 5000), Ok(plan));
    }

    #[test]
    fn this_end_connects_over_tcp_in_both_directions() {
        for direction in [Direction::Send, Direction::Reverse] {
            let plan = Plan { direction, ..Plan::standard() };
            assert!(!parameters_of(&plan, OURS, 5101).connects());
        }
        let udp =
            Plan { direction: Direction::Reverse, transport: Transport::Udp, ..Plan::standard() };
        assert!(parameters_of(&udp, OURS, 5101).connects());
    }

    #[test]
    fn the_version_is_the_lower_one_of_both_ends() {
        let version = |theirs| parameters_of(&Plan::standard(), theirs, 5101).version;
        assert_eq!(version(Version::new(6, 1, 2)), Version::new(6, 1, 2));
        assert_eq!(version(Version::new(9, 0, 0)), OURS);
    }

    #[test]
    fn what_has_no_words_is_named() {
        let both = Plan { direction: Direction::Both, ..Plan::standard() };
        assert!(unspoken(&both).unwrap().contains("--both"));
        assert_eq!(unspoken(&Plan::standard()), None);
        let far_sends = |change: fn(&mut Plan)| {
            let mut plan = Plan { direction: Direction::Reverse, ..Plan::standard() };
            change(&mut plan);
            unspoken(&plan)
        };
        assert!(far_sends(|plan| plan.socket.cork = true).unwrap().contains("--cork"));
        assert!(far_sends(|plan| plan.mover = "uring".into()).unwrap().contains("--mover"));
        assert!(far_sends(|plan| plan.socket.dont_fragment = true).is_some());
        assert_eq!(far_sends(|plan| plan.receive_mover = Some("discard".into())), None);
        let far_receives = Plan { receive_mover: Some("discard".into()), ..Plan::standard() };
        assert!(unspoken(&far_receives).unwrap().contains("--receive-mover"));
    }
}
