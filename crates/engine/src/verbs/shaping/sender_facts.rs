//! What is known of the end that sends: its queueing discipline, its timers, its TCP.

use std::time::Duration;

use goodput_ceiling::Packet;
use goodput_ceiling::bucket::SUPER_PACKET_BYTES;
use goodput_diagnose::rules;
use goodput_model::{
    BitRate, Direction, DirectionResult, EndName, Estimate, Finding, Known, Measured, Missing,
    PacketCapture, Place, Record, Snapshot, Verdict,
};
use goodput_mover::run_promptly;
use goodput_shaping::{Sender, TcpLimit, TcpRate, Timers, Watched};

use super::ShapingRequest;
use super::router::RouterFacts;
use crate::result::settled::{carried, settled};
use crate::threads::blocking;

/// How long timers of each length are watched: at 1 Gbit/s, some hundreds that run as long as a super-packet takes.
const TIMER_WATCH_TIME: Duration = Duration::from_millis(500);

/// How late timers of this host are that run as long as the shaper's, if it is the one that sends.
pub(super) async fn timers(request: &ShapingRequest) -> Result<Timers, Missing> {
    if request.plan.direction == Direction::Reverse {
        return Err(Missing::because(
            "the far host sends, and only this host's timers are watched",
        ));
    }
    let takes = |bytes: f64| timer(bytes, request.configured.rate);
    let (frame, super_packet) = (takes(request.datagram.0 as f64), takes(SUPER_PACKET_BYTES));
    let watched = move || {
        let watch = move || watch_both(frame, super_packet);
        let thread = std::thread::Builder::new().name("timers".into()).spawn(watch);
        thread.map_or_else(|why| Ok(Err(why)), std::thread::JoinHandle::join)
    };
    match blocking(watched).await {
        Ok(Ok(Ok(timers))) => Ok(timers),
        Ok(Ok(Err(why))) => Err(Missing::because(format!("timers can't be watched: {why}"))),
        Ok(Err(_)) => Err(Missing::because("the thread that watches timers panicked")),
        Err(why) => Err(Missing::because(why.to_string())),
    }
}

/// How long a shaper sleeps before it sends this many bytes: as long as they take at its rate. A timer that is longer than
/// the watch itself is watched as far as that goes.
fn timer(bytes: f64, rate: BitRate) -> Duration {
    Duration::from_secs_f64((bytes * 8.0 / rate.0).min(TIMER_WATCH_TIME.as_secs_f64()))
}

/// A queueing discipline's timers don't wait for other threads; so this one waits as little as it may.
fn watch_both(frame: Duration, super_packet: Duration) -> std::io::Result<Timers> {
    if let Err(cause) = run_promptly() {
        tracing::debug!("can't get a higher priority than other threads: {cause}");
    }
    Ok(Timers { frame: watch(frame)?, super_packet: watch(super_packet)? })
}

fn watch(timer: Duration) -> std::io::Result<Watched> {
    let late = goodput_kernel::timer_latenesses(timer, TIMER_WATCH_TIME)?;
    let latenesses_s = late.iter().map(Duration::as_secs_f64).collect();
    Ok(Watched { timer_s: timer.as_secs_f64(), latenesses_s })
}

/// The end that sent, with its own facts, or with those of the router if one was named.
///
/// # Errors
/// If the one whose facts count does not report them.
pub(super) fn sender<'a>(
    record: &'a Record,
    timers: Result<Timers, Missing>,
    router: Option<&'a Result<RouterFacts, Missing>>,
) -> Result<Sender<'a>, Missing> {
    let (end, own) = match record.plan.direction {
        Direction::Reverse => (EndName::Far, &record.ends.far),
        _ => (EndName::Near, &record.ends.near),
    };
    let facts = router.map(|facts| facts.as_ref().map_err(Clone::clone)).transpose()?;
    let (before, after) = match facts {
        Some(facts) => (&facts.before, &facts.after),
        None => own.get().map(|own| (&own.before, &own.after))?,
    };
    let elsewhere = "only this host's timers are watched, and the router shapes";
    let inputs = record.result.ceiling_inputs.as_ref();
    let inputs = inputs.ok_or_else(|| Missing::because("the size of its segments is unknown"));
    let direction = record.result.directions.first();
    let direction = direction.ok_or_else(|| Missing::because("nothing was sent"));
    Ok(Sender {
        end,
        router: facts.map(|facts| facts.name.as_str()),
        before,
        after,
        timers: if facts.is_some() { Err(Missing::because(elsewhere)) } else { timers },
        segment: inputs.and_then(Packet::of).map(|packet| (packet.payload, packet.ip)),
        arrived_bytes: direction.clone().and_then(|one| one.received_bytes.get().copied()),
        written_bytes: written_bytes(record, direction.as_ref().ok().copied()),
        resent_segments: resent_segments(
            direction.as_ref().ok().and_then(|one| one.retransmits.value().copied()),
            own.value().map(|own| (&own.before, &own.after)),
        ),
        around_train: None,
        around_tcp: None,
        behind: None,
        min_rtt_s: direction.and_then(|one| one.min_rtt_us.get().map(|us| us / 1e6)),
        capture: capture_of(record, end),
        tcp_limit: limit(record),
    })
}

/// The capture at the end that sent, or else at the other one.
fn capture_of(record: &Record, sender: EndName) -> Option<&PacketCapture> {
    let near = record.capture.as_deref();
    let far = record.far_capture.as_ref().and_then(Known::value).map(AsRef::as_ref);
    match sender {
        EndName::Near => near.or(far),
        EndName::Far => far.or(near),
    }
}

/// What the sender's application wrote, if the receiver reports nothing.
fn written_bytes(record: &Record, direction: Option<&DirectionResult>) -> Option<u64> {
    let receiver = match record.plan.direction {
        Direction::Reverse => &record.ends.near,
        _ => &record.ends.far,
    };
    let is_foreign = receiver.value().is_none();
    direction.filter(|_| is_foreign)?.sent_bytes.value().copied()
}

/// Segments that were sent again. The connections are read until they are stopped, and send again what is lost after that, while
/// the sender's buffer drains; the host's own count, of all connections, goes on.
fn resent_segments(of_connections: Option<u64>, host: Option<(&Snapshot, &Snapshot)>) -> u64 {
    let of_host = host.and_then(|(before, after)| before.grown(after, "snmp.Tcp.RetransSegs").ok());
    of_connections.max(of_host).unwrap_or_default()
}

/// What limits TCP.
fn limit(record: &Record) -> Option<TcpLimit> {
    let Verdict { limit, summary, .. } = &record.verdict;
    let Finding { rule, end, .. } = record.findings.iter().find(|one| one.rule == *limit)?;
    let is_of_discipline = rules::find(rule).is_some_and(|rule| rule.is_of_discipline);
    let is_of_host = *end != Place::Path && !is_of_discipline;
    Some(TcpLimit { rule: rule.clone(), words: summary.clone(), is_of_host })
}

/// The rate that TCP got, and the size of its segments.
pub(super) fn tcp_rate(record: &Record) -> Result<TcpRate, Missing> {
    if let Some(starved) = starved(record) {
        return Ok(starved);
    }
    let in_order = match settled(record) {
        Some(measured) => of_window(record, &measured),
        None => {
            let result = &record.result;
            tcp_rate_of(record, result.goodput_bits_per_s, &result.precision_percent)
        }
    };
    let error = in_order.as_ref().map_or(f64::INFINITY, error_share);
    if error <= PRECISE_SHARE {
        return in_order;
    }
    match carried_rate(record) {
        Some(carried) if error_share(&carried) < error => Ok(carried),
        _ => in_order,
    }
}

/// Half-width of the interval at which a rate is known well enough, as a share.
const PRECISE_SHARE: f64 = 0.01;

/// Half-width of a rate's interval, as a share of the rate.
fn error_share(rate: &TcpRate) -> f64 {
    let Estimate { value, low, high } = rate.goodput;
    match value > 0.0 {
        true => (high - low) / 2.0 / value,
        false => f64::INFINITY,
    }
}

fn of_window(record: &Record, measured: &Measured) -> Result<TcpRate, Missing> {
    let window_s = Some(measured.to_s - measured.from_s);
    let rate = tcp_rate_of(record, measured.goodput, &measured.precision_percent);
    rate.map(|rate| TcpRate { window_s, ..rate })
}

/// The rate at which TCP's segments came, whatever their order.
fn carried_rate(record: &Record) -> Option<TcpRate> {
    let packet = Packet::of(record.result.ceiling_inputs.as_ref()?).ok()?;
    of_window(record, &carried(record, packet.payload)?).ok()
}

/// Segments that may still have been on the way when a test ended: an initial window (RFC 6928).
const INITIAL_WINDOW_SEGMENTS: f64 = 10.0;
/// Shortest time without payload that shows a rate, seconds: TCP's first five attempts take less.
const STARVED_S: f64 = 2.0;

/// The rate of a TCP to whose receiver nothing came, or no more than an initial window. The spread of such a rate is unknown,
/// but not that it is so low.
fn starved(record: &Record) -> Option<TcpRate> {
    let packet = Packet::of(record.result.ceiling_inputs.as_ref()?).ok()?;
    let seconds = record.result.duration_s;
    let came = *record.result.directions.first()?.received_bytes.value()? as f64;
    let few = INITIAL_WINDOW_SEGMENTS * packet.payload;
    (record.incomplete.is_none() && seconds >= STARVED_S && came <= few).then(|| TcpRate {
        goodput: Estimate {
            value: came * 8.0 / seconds,
            low: 0.0,
            high: (came + few) * 8.0 / seconds,
        },
        payload: packet.payload,
        packet: packet.ip,
        window_s: Some(seconds),
    })
}

/// The same for a goodput of another part of the time, known to ± `precision_percent`.
pub(super) fn tcp_rate_of(
    record: &Record,
    BitRate(value): BitRate,
    precision_percent: &Known<f64>,
) -> Result<TcpRate, Missing> {
    let inputs = record.result.ceiling_inputs.as_ref();
    let inputs = inputs.ok_or_else(|| Missing::because("the size of its segments is unknown"))?;
    let packet = Packet::of(inputs)?;
    // A rate of which nobody knows how exact it is decides nothing.
    let inexact =
        |why: Missing| Missing::because(format!("the precision of its goodput is unknown: {why}"));
    let off = precision_percent.get().map_err(inexact)? / 100.0 * value;
    Ok(TcpRate {
        goodput: Estimate { value, low: (value - off).max(0.0), high: value + off },
        payload: packet.payload,
        packet: packet.ip,
        window_s: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Confidence;

    #[test]
    fn a_limit_of_a_host_is_one_unless_it_is_of_a_queueing_discipline() {
        let json = include_str!("../../../../store/tests/golden/v1/test.json");
        let limit_of = |rule: &str, end| {
            let mut record = Record::from_json(json).unwrap();
            record.findings = vec![Finding::new(rule, end, Confidence::Likely, "a limit")];
            record.verdict.limit = rule.into();
            limit(&record).unwrap().is_of_host
        };
        for rule in rules::ALL {
            assert_eq!(limit_of(rule.id, Place::Near), !rule.is_of_discipline, "{}", rule.id);
            assert!(!limit_of(rule.id, Place::Path), "{}", rule.id);
        }
        assert!(limit_of("receive-window", Place::Far) && !limit_of("shaper-burst", Place::Near));
    }

    /// As behind a bucket that no frame fits in: the spread of nothing is unknown, the rate is not.
    #[test]
    fn tcp_to_whose_receiver_nothing_comes_has_a_rate() {
        let json = include_str!("../../../../store/tests/golden/v1/test.json");
        let mut record = Record::from_json(json).unwrap();
        let inputs = serde_json::json!({
            "transport": "tcp", "family": "v4", "mss_bytes": 1448, "tcp_option_bytes": 12,
        });
        record.result.ceiling_inputs = Some(serde_json::from_value(inputs).unwrap());
        let payload = Packet::of(record.result.ceiling_inputs.as_ref().unwrap()).unwrap().payload;
        record.result.duration_s = 2.6;
        record.incomplete = None;
        let rate = |record: &mut Record, received: u64| {
            record.result.directions[0].received_bytes = Known::Value(received);
            starved(record).map(|rate| rate.goodput)
        };
        let none = rate(&mut record, 0).unwrap();
        let window = INITIAL_WINDOW_SEGMENTS * payload * 8.0 / 2.6;
        assert_eq!(none, Estimate { value: 0.0, low: 0.0, high: window });
        assert!(rate(&mut record, payload as u64).unwrap().value > 0.0);
        assert_eq!(rate(&mut record, 20 * payload as u64), None, "a slow path");
        record.incomplete = Some("cut short".into());
        assert_eq!(rate(&mut record, 0), None, "nobody waited for more");
    }

    #[test]
    fn what_is_sent_again_after_the_last_sample_counts() {
        let counted = |segments: u64| {
            let mut facts = Snapshot::default();
            facts.put("snmp.Tcp.RetransSegs", segments);
            facts
        };
        let (before, after) = (counted(1000), counted(1900));
        let host = Some((&before, &after));
        assert_eq!(resent_segments(Some(500), host), 900);
        assert_eq!(resent_segments(None, host), 900);
        // Facts that lack it.
        let none = Snapshot::default();
        assert_eq!(resent_segments(Some(500), Some((&none, &none))), 500);
        assert_eq!(resent_segments(None, None), 0);
    }
}
