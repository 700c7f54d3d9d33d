//! Whether a rate can be held, and whether enough packets leave at this rate for a result.

use goodput_model::{BitRate, Plan, Transport};

use super::{Problems, duration_s};
use crate::protocols::goodput::times::MAX_PLAN_S;

/// Resolution of the clocks here, seconds (`struct timespec`, clock_gettime(2)).
const CLOCK_RESOLUTION_S: f64 = 1e-9;

/// Bytes of a stream that leave at once at a low rate: about one segment on Ethernet.
const SEGMENT_BYTES: u64 = 1448;

/// Packets that must leave for a rate with two correct digits.
const MIN_PACKETS: f64 = 100.0;

/// Whether the clocks here and the datagrams can keep the rate and the bursts of `plan`.
pub(super) fn check(plan: &Plan, problems: &mut Problems) {
    let (chunk, burst) = (plan.chunk_bytes, plan.burst_bytes);
    match plan.rate_per_flow() {
        Some(rate) if !(rate.0 > 0.0 && rate.0.is_finite()) => {
            problems.push(format!("a rate of {} bit/s moves nothing", rate.0));
        }
        Some(rate) if chunk.0 as f64 * 8.0 / rate.0 < CLOCK_RESOLUTION_S => problems.push(format!(
            "a rate of {rate} per flow leaves less than 1 ns for {} bytes, finer than any clock here; without a rate \
             goodput sends as fast as it can",
            chunk.0
        )),
        Some(_) => {}
        None if burst.is_some() => problems.push("a burst needs a rate".into()),
        None => {}
    }
    match burst {
        Some(_) if plan.transport == Transport::Tcp => {
            problems.push("bursts can be chosen for UDP only".into());
        }
        Some(burst) if burst < chunk => problems.push(format!(
            "a burst of {} bytes is shorter than a datagram of {}",
            burst.0, chunk.0
        )),
        _ => {}
    }
}

/// Why only the first packet of a flow would leave before `plan` is over, if this is so. A server doesn't refuse such
/// a plan: other programs let their users wait.
pub fn too_slow(plan: &Plan) -> Option<String> {
    let (rate, bytes) = (plan.rate_per_flow()?, packet(plan));
    let each_s = bytes as f64 * 8.0 / rate.0;
    let Some(over_s) = duration_s(plan) else { return takes_for_ever(plan, rate) };
    (each_s > over_s).then(|| {
        let least = BitRate(two_digits(bytes as f64 * 8.0 / over_s) * f64::from(plan.flows));
        format!(
            "a rate of {rate} per flow sends {bytes} bytes every {each_s:.0} s, but the test ends after {over_s} s: choose a --rate of {least} or more, a smaller --chunk, or a longer time (-t)"
        )
    })
}

/// The same for a plan of bytes, which ends only when all bytes are sent.
fn takes_for_ever(plan: &Plan, rate: BitRate) -> Option<String> {
    let goodput_model::Length::Bytes(bytes) = plan.length else { return None };
    let days = bytes.0 as f64 * 8.0 / (rate.0 * f64::from(plan.flows)) / 86_400.0;
    (days * 86_400.0 > MAX_PLAN_S).then(|| {
        format!("{bytes} take {days:.0} days at this rate: choose a higher rate or fewer bytes")
    })
}

/// How many packets of a flow leave at this rate while `plan` runs, if there are so few that one more or less shows in
/// the result.
pub fn few(plan: &Plan) -> Option<f64> {
    let packets = plan.rate_per_flow()?.bytes_in(duration_s(plan)?) / packet(plan) as f64;
    Some(packets).filter(|packets| *packets < MIN_PACKETS)
}

/// Bytes that leave at once at a low rate.
fn packet(plan: &Plan) -> u64 {
    match plan.transport {
        Transport::Tcp => plan.chunk_bytes.0.min(SEGMENT_BYTES),
        Transport::Udp => plan.chunk_bytes.0,
    }
}

/// The next number with two significant digits.
fn two_digits(value: f64) -> f64 {
    let unit = 10_f64.powf(value.log10().floor() - 1.0);
    (value / unit).ceil() * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::sense;
    use goodput_model::{Bytes, Length};

    fn refused(change: impl FnOnce(&mut Plan)) -> String {
        let mut plan = Plan::standard();
        change(&mut plan);
        sense(&plan).unwrap_err()
    }

    #[test]
    fn a_pace_that_nothing_can_hold_is_refused() {
        let udp = |rate, burst| {
            refused(|p| {
                (p.transport, p.chunk_bytes) = (Transport::Udp, Bytes(1000));
                (p.rate_bits_per_s, p.burst_bytes) = (rate, burst);
            })
        };
        assert!(udp(Some(BitRate(9e12)), None).contains("less than 1 ns for 1000 bytes"));
        assert_eq!(udp(None, Some(Bytes(5000))), "a burst needs a rate");
        let short = "a burst of 999 bytes is shorter than a datagram of 1000";
        assert_eq!(udp(Some(BitRate(1e6)), Some(Bytes(999))), short);
        assert!(udp(Some(BitRate(1e6)), Some(Bytes(0))).contains("a burst of 0 bytes"));
        refused(|p| {
            (p.rate_bits_per_s, p.burst_bytes) = (Some(BitRate(1e6)), Some(Bytes(1 << 20)))
        });
    }

    fn udp(rate: f64, flows: u16, length: Length) -> Plan {
        Plan {
            transport: Transport::Udp,
            chunk_bytes: Bytes(1472),
            rate_bits_per_s: Some(BitRate(rate)),
            flows,
            length,
            ..Plan::standard()
        }
    }

    #[test]
    fn a_rate_at_which_nothing_more_than_one_packet_leaves_is_reported_with_what_would_do() {
        let ten = Length::Seconds(10.0);
        let why = too_slow(&udp(1.0, 1, ten)).unwrap();
        assert!(why.contains("1472 bytes every 11776 s"), "{why}");
        assert!(why.contains("after 10 s") && why.contains("1.20 kbit/s or more"), "{why}");
        assert_eq!(too_slow(&udp(1200.0, 1, ten)), None, "what is proposed is taken");
        let why = too_slow(&udp(1200.0, 8, ten)).unwrap();
        assert!(why.contains("9.60 kbit/s or more"), "{why}");
        assert_eq!(too_slow(&udp(9600.0, 8, ten)), None);
        assert_eq!(sense(&udp(1.0, 1, ten)), Ok(()), "a server takes it");
        let stream = Plan { transport: Transport::Tcp, ..udp(8.0, 1, ten) };
        assert!(too_slow(&stream).unwrap().contains("1448 bytes"));
        assert_eq!(too_slow(&Plan { chunk_bytes: Bytes(10), ..stream }), None);
    }

    #[test]
    fn bytes_that_take_longer_than_any_test_are_reported() {
        let why = too_slow(&udp(1.0, 1, Length::Bytes(Bytes(1_000_000)))).unwrap();
        assert!(why.starts_with("1 MB take 93 days"), "{why}");
        assert_eq!(too_slow(&udp(1.0, 1, Length::Bytes(Bytes(1000)))), None);
    }

    #[test]
    fn few_packets_are_counted() {
        let ten = Length::Seconds(10.0);
        assert_eq!(few(&udp(11_776.0, 1, ten)), Some(10.0));
        assert_eq!(few(&udp(1_177_600.0, 1, ten)), None);
        assert_eq!(few(&Plan { rate_bits_per_s: None, ..udp(1.0, 1, ten) }), None);
    }
}
