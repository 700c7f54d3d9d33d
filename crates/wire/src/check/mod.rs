//! Whether a plan makes sense, and whether it lies within the limits of a server.

mod options;
mod pace;
mod storage;

use goodput_model::{BitRate, Direction, EndName, Length, Pin, Plan, Transport};

use crate::protocols::goodput::times::MAX_PLAN_S;
use crate::session::Limits;

pub(crate) use options::{PLAIN_MOVER, far_options, not_carried};
pub use pace::{few, too_slow};

/// Bytes of the header in front of every UDP payload datagram of goodput's own protocol.
const DATAGRAM_HEADER_BYTES: u64 = 32;

/// Largest UDP payload over IPv4: 65535 less 20 bytes of IP and 8 of UDP header (RFC 791, 768).
const MAX_DATAGRAM_BYTES: u64 = 65_507;

/// Shortest interval, seconds.
const MIN_INTERVAL_S: f64 = 0.1;

/// Longest busy poll that a client may ask for, microseconds. 50 to 100 are enough for its purpose
/// (Documentation/networking/napi.rst), and each wait may cost a CPU this long.
const MAX_BUSY_POLL_US: u32 = 1000;

/// The highest socket priority that a client may ask for: what the kernel allows anyone (`sk_set_prio_allowed`,
/// net/core/sock.c).
const MAX_PRIORITY: u32 = 6;

/// Longest name of a congestion control (`TCP_CA_NAME_MAX`, include/net/tcp.h), its NUL not
/// counted; movers' ids are held to twice that.
const MAX_CONGESTION_NAME_BYTES: usize = 15;

/// Longest warm-up that a result leaves out, seconds, the same as in iperf3 (3.12, `MAX_OMIT_TIME` in `iperf.h`).
const MAX_OMIT_S: f64 = 600.0;

/// Most CPUs that a kernel has (`NR_CPUS` with `MAXSMP`, arch/x86/Kconfig).
const MAX_CPUS: u16 = 8192;

/// Why a plan can't be measured: one phrase for each reason.
type Problems = Vec<String>;

/// Whether a plan makes sense on any host.
pub fn sense(plan: &Plan) -> Result<(), String> {
    sense_with(plan, DATAGRAM_HEADER_BYTES)
}

/// The same for a protocol whose shortest datagram has `header` bytes.
pub fn sense_with(plan: &Plan, header: u64) -> Result<(), String> {
    let mut problems = Problems::new();
    check_length(plan.length, &mut problems);
    check_numbers(plan, &mut problems);
    check_chunk(plan, header, &mut problems);
    options::check(plan, &mut problems);
    if plan.arrivals && plan.transport != Transport::Udp {
        problems.push("only datagrams have times of arrival that can be kept".into());
    }
    check_ports(plan, &mut problems);
    storage::check(plan, &mut problems);
    check_pin(&plan.pin.near, &mut problems);
    check_pin(&plan.pin.far, &mut problems);
    for mover in [Some(&plan.mover), plan.receive_mover.as_ref()].into_iter().flatten() {
        if !is_name(mover, 2 * MAX_CONGESTION_NAME_BYTES) {
            problems.push(format!("{:?} can't be the name of a mover", short(mover)));
        }
    }
    verdict(problems)
}

/// Whether a plan that makes sense is within `limits`.
pub fn within(plan: &Plan, limits: &Limits) -> Result<(), String> {
    let mut problems = Problems::new();
    hold_everywhere(plan, "this server allows", &mut problems);
    let (count, seconds) = (|n: f64| n.to_string(), |s: f64| format!("{s} s"));
    let (rate, bytes) = (|r: f64| BitRate(r).to_string(), |b: f64| format!("{b} bytes"));
    let mut hold = |what: &str, asked: f64, limit: f64, shown: fn(f64) -> String| {
        if asked > limit {
            let (asked, limit) = (shown(asked), shown(limit));
            problems.push(format!("{what} of {asked} is too much; this server allows {limit}"));
        }
    };
    hold("a duration", duration_s(plan).unwrap_or(0.0), limits.duration_s, seconds);
    hold("a number of flows", f64::from(flows(plan)), f64::from(limits.flows), count);
    if let (Some(asked), Some(limit)) = (plan.rate_bits_per_s, limits.rate_bits_per_s) {
        hold("a rate", asked.0, limit, rate);
    }
    let options = &plan.socket;
    // If the value were lowered, the near end would measure another class than the far end, and neither as asked.
    hold("a DSCP", options.dscp.map_or(0.0, f64::from), f64::from(limits.dscp), count);
    hold("a chunk", plan.chunk_bytes.0 as f64, limits.chunk_bytes as f64, bytes);
    let buffer = limits.socket_buffer_bytes as f64;
    hold("a send buffer", options.sndbuf_bytes.map_or(0.0, |b| b.0 as f64), buffer, bytes);
    hold("a receive buffer", options.rcvbuf_bytes.map_or(0.0, |b| b.0 as f64), buffer, bytes);
    verdict(problems)
}

/// Whether a server of goodput may take a plan, whatever limits its operator has chosen.
pub fn within_any_server(plan: &Plan) -> Result<(), String> {
    let mut problems = Problems::new();
    hold_everywhere(plan, "servers of goodput allow", &mut problems);
    verdict(problems)
}

/// The limits that every server has.
fn hold_everywhere(plan: &Plan, allows: &str, problems: &mut Problems) {
    let options = &plan.socket;
    if let Some(us) = options.busy_poll_us.filter(|us| *us > MAX_BUSY_POLL_US) {
        let most = MAX_BUSY_POLL_US;
        problems.push(format!("a busy poll of {us} us is too much; {allows} {most} us"));
    }
    if let Some(priority) = options.priority.filter(|priority| *priority > MAX_PRIORITY) {
        let most = MAX_PRIORITY;
        problems.push(format!("a socket priority of {priority} is too much; {allows} {most}"));
    }
}

/// The longest time that a plan takes, including the warm-up that its result leaves out; `None` if its length is in
/// bytes.
pub fn duration_s(plan: &Plan) -> Option<f64> {
    match plan.length {
        Length::Seconds(seconds) => Some(seconds + plan.omit_s),
        Length::Auto { max_s, .. } => Some(max_s + plan.omit_s),
        Length::Bytes(_) | Length::Source => None,
    }
}

/// What a client should know of a limit that its plan respects, but may run into.
pub fn note(plan: &Plan, limits: &Limits) -> Option<String> {
    let limit = BitRate(limits.rate_bits_per_s?);
    let paces = plan.rate_bits_per_s.is_none();
    let paces =
        paces.then(|| format!("the server sends and receives at most {limit} for one client"));
    let receives = plan.direction.senders().contains(&EndName::Near);
    let asked = plan.socket.rcvbuf_bytes.filter(|_| receives && plan.transport == Transport::Udp);
    // Bytes that wait in a socket count beyond the rate.
    let cuts = asked.map(|asked| {
        format!(
            "to keep to {limit}, the server may receive with a smaller buffer than --rcvbuf {} bytes",
            asked.0
        )
    });
    let notes: Vec<_> = paces.into_iter().chain(cuts).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// Flows of both directions together; the sum may exceed a flow number's range.
fn flows(plan: &Plan) -> u32 {
    let directions = if plan.direction == Direction::Both { 2 } else { 1 };
    directions * u32::from(plan.flows)
}

fn check_length(length: Length, problems: &mut Problems) {
    let duration = |seconds: f64| seconds > 0.0 && seconds <= MAX_PLAN_S;
    match length {
        Length::Seconds(s) if !duration(s) => {
            problems.push(format!("a duration of {s} s is not between 0 and 30 days"));
        }
        Length::Bytes(bytes) if bytes.0 == 0 => problems.push("0 bytes measure nothing".into()),
        Length::Auto { precision_percent, min_s, max_s } => {
            if !(precision_percent > 0.0 && precision_percent < 100.0) {
                problems.push(format!("a precision of {precision_percent} % makes no sense"));
            }
            if !(duration(max_s) && min_s >= 0.0 && min_s <= max_s) {
                problems
                    .push(format!("at least {min_s} s and at most {max_s} s exclude each other"));
            }
        }
        Length::Seconds(_) | Length::Bytes(_) | Length::Source => {}
    }
}

fn check_numbers(plan: &Plan, problems: &mut Problems) {
    if flows(plan) == 0 || flows(plan) > u32::from(u16::MAX) {
        problems.push(format!("{} flows are not possible", flows(plan)));
    }
    if !(plan.interval_s >= MIN_INTERVAL_S && plan.interval_s <= MAX_PLAN_S) {
        let interval = plan.interval_s;
        problems.push(format!(
            "an interval of {interval} s is not between {MIN_INTERVAL_S} and {MAX_PLAN_S} s"
        ));
    }
    if !(0.0..=MAX_OMIT_S).contains(&plan.omit_s) {
        let omit = plan.omit_s;
        problems.push(format!("a warm-up of {omit} s is not between 0 and {MAX_OMIT_S} s"));
    }
    pace::check(plan, problems);
}

fn check_ports(plan: &Plan, problems: &mut Problems) {
    if let Some(first) = plan.socket.source_port {
        let last = u32::from(first) + flows(plan).saturating_sub(1);
        if first == 0 || last > u32::from(u16::MAX) {
            problems
                .push(format!("source ports {first} to {last} are not all between 1 and 65535"));
        }
    }
    if plan.socket.mptcp && plan.transport != Transport::Tcp {
        problems.push("MPTCP carries no datagrams: leave out either --mptcp or --udp".into());
    }
}

fn check_pin(pin: &Pin, problems: &mut Problems) {
    let Pin::Cpus(cpus) = pin else { return };
    if cpus.is_empty() || cpus.len() > usize::from(MAX_CPUS) {
        problems
            .push(format!("{} CPUs to pin flows to are not between 1 and {MAX_CPUS}", cpus.len()));
    }
    if let Some(cpu) = cpus.iter().find(|cpu| **cpu >= MAX_CPUS) {
        problems.push(format!(
            "no host has a CPU {cpu} to pin flows to; the highest is {}",
            MAX_CPUS - 1
        ));
    }
}

fn check_chunk(plan: &Plan, header: u64, problems: &mut Problems) {
    let chunk = plan.chunk_bytes.0;
    match plan.transport {
        Transport::Tcp if chunk == 0 => problems.push("a chunk of 0 bytes moves nothing".into()),
        Transport::Udp if !(header..=MAX_DATAGRAM_BYTES).contains(&chunk) => {
            problems.push(format!(
                "a datagram of {chunk} bytes is not between {header} and {MAX_DATAGRAM_BYTES}"
            ));
        }
        Transport::Tcp | Transport::Udp => {}
    }
}

fn is_name(text: &str, longest: usize) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !text.is_empty() && text.len() <= longest && text.chars().all(plain)
}

/// Shortens an untrusted text to the length that an answer needs.
fn short(text: &str) -> String {
    text.chars().take(2 * MAX_CONGESTION_NAME_BYTES).collect()
}

fn verdict(problems: Problems) -> Result<(), String> {
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::limits;
    use goodput_model::Bytes;

    fn changed(change: impl FnOnce(&mut Plan)) -> Plan {
        let mut plan = Plan::standard();
        change(&mut plan);
        plan
    }

    fn refused(change: impl FnOnce(&mut Plan)) -> String {
        let plan = changed(change);
        sense(&plan).and_then(|()| within(&plan, &limits())).unwrap_err()
    }

    #[test]
    fn the_standard_plan_is_fine() {
        assert_eq!(sense(&Plan::standard()), Ok(()));
        assert_eq!(within(&Plan::standard(), &limits()), Ok(()));
        assert_eq!(note(&Plan::standard(), &limits()), None);
    }

    #[test]
    fn every_limit_is_named_with_the_servers_value() {
        let why = refused(|p| p.length = Length::Seconds(61.0));
        assert!(why.contains("61 s") && why.contains("60 s"), "{why}");
        let why = refused(|p| {
            p.length = Length::Auto { precision_percent: 2.0, min_s: 1.0, max_s: 90.0 }
        });
        assert!(why.contains("90 s") && why.contains("60 s"), "{why}");
        let why = refused(|p| (p.direction, p.flows) = (Direction::Both, 65));
        assert!(why.contains("130") && why.contains("128"), "{why}");
        let why = refused(|p| p.chunk_bytes = Bytes(1 << 30));
        assert!(why.contains("a chunk of 1073741824 bytes"), "{why}");
        let why = refused(|p| p.socket.rcvbuf_bytes = Some(Bytes(1 << 40)));
        assert!(why.contains("a receive buffer"), "{why}");
        let why = refused(|p| p.socket.busy_poll_us = Some(2000));
        assert!(why.contains("2000 us") && why.contains("1000 us"), "{why}");
        assert!(refused(|p| p.socket.priority = Some(7)).contains("a socket priority of 7"));
        // Classes that networks keep for their own control (CS6, RFC 4594 section 3.1).
        let why = refused(|p| p.socket.dscp = Some(48));
        assert!(why.contains("DSCP of 48") && why.contains("47"), "{why}");
        let capped = Limits { rate_bits_per_s: Some(1e9), ..limits() };
        let fast = changed(|p| p.rate_bits_per_s = Some(BitRate(2e9)));
        let why = within(&fast, &capped).unwrap_err();
        assert!(why.contains("2 Gbit/s") && why.contains("1 Gbit/s"), "{why}");
    }

    #[test]
    fn a_plan_without_a_rate_gets_a_note_of_the_servers() {
        let capped = Limits { rate_bits_per_s: Some(1e9), ..limits() };
        assert_eq!(within(&Plan::standard(), &capped), Ok(()));
        assert!(note(&Plan::standard(), &capped).unwrap().contains("1 Gbit/s"));
    }

    #[test]
    fn a_plan_with_a_receive_buffer_gets_a_note_that_a_limit_may_cut_it() {
        let capped = Limits { rate_bits_per_s: Some(1e9), ..limits() };
        let plan = |transport, direction| {
            changed(|p| {
                (p.transport, p.direction) = (transport, direction);
                p.rate_bits_per_s = Some(BitRate(1e8));
                p.socket.rcvbuf_bytes = Some(Bytes(1 << 20));
            })
        };
        let sends = plan(Transport::Udp, Direction::Send);
        let said = note(&sends, &capped).unwrap();
        assert!(said.contains("1 Gbit/s") && said.contains("--rcvbuf 1048576 bytes"), "{said}");
        assert_eq!(note(&sends, &limits()), None);
        assert_eq!(note(&plan(Transport::Udp, Direction::Reverse), &capped), None);
        assert_eq!(note(&plan(Transport::Tcp, Direction::Send), &capped), None);
        let both = Plan { rate_bits_per_s: None, ..sends };
        assert!(note(&both, &capped).unwrap().contains("for one client; to keep to"));
    }

    #[test]
    fn numbers_that_are_none_are_refused() {
        for bad in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
            refused(|p| p.length = Length::Seconds(bad));
            refused(|p| p.length = Length::Auto { precision_percent: bad, min_s: 1.0, max_s: 2.0 });
            refused(|p| p.length = Length::Auto { precision_percent: 2.0, min_s: 1.0, max_s: bad });
            refused(|p| p.rate_bits_per_s = Some(BitRate(bad)));
            refused(|p| p.interval_s = bad);
        }
        refused(|p| {
            p.length = Length::Auto { precision_percent: 2.0, min_s: f64::NAN, max_s: 2.0 }
        });
        refused(|p| p.length = Length::Bytes(Bytes(0)));
    }

    #[test]
    fn nonsense_is_refused() {
        refused(|p| p.flows = 0);
        assert!(sense(&changed(|p| (p.direction, p.flows) = (Direction::Both, 40_000))).is_err());
        refused(|p| p.chunk_bytes = Bytes(0));
        refused(|p| p.socket.dscp = Some(64));
        refused(|p| p.socket.mss_bytes = Some(20));
        refused(|p| p.socket.congestion = Some("../../etc".into()));
        refused(|p| p.mover = "x".repeat(100_000));
        refused(|p| p.receive_mover = Some("a b".into()));
        refused(|p| p.pin.far = Pin::Cpus(Vec::new()));
        refused(|p| p.socket.source_port = Some(0));
        refused(|p| (p.socket.source_port, p.flows) = (Some(65_535), 2));
        refused(|p| {
            (p.transport, p.socket.mptcp) = (Transport::Udp, true);
            p.chunk_bytes = Transport::Udp.standard_chunk();
        });
        refused(|p| p.pin.near = Pin::Cpus(vec![0, MAX_CPUS]));
        refused(|p| p.pin.near = Pin::Cpus(vec![0; usize::from(MAX_CPUS) + 1]));
        for chunk in [31, 65_508] {
            refused(|p| (p.transport, p.chunk_bytes) = (Transport::Udp, Bytes(chunk)));
        }
    }

    #[test]
    fn all_reasons_are_given_at_once() {
        let why = refused(|p| (p.flows, p.interval_s) = (0, 0.0));
        assert_eq!(why.matches("; ").count(), 1, "{why}");
    }
}
