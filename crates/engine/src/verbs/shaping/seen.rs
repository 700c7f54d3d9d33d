//! What is known of the end that sends: its queueing discipline, its timers, its TCP.

use std::time::Duration;

use goodput_ceiling::Packet;
use goodput_model::{Direction, EndName, Estimate, Finding, Known, Missing, Plan, Record, Verdict};
use goodput_mover::run_promptly;
use goodput_shaping::{Sender, TcpRate};

use crate::threads::blocking;

/// How long timers are watched: a few thousand of them.
const WATCHED: Duration = Duration::from_millis(500);

/// How late timers of this host are, seconds, if it is the one that sends.
pub(super) async fn timers(plan: &Plan) -> Result<Vec<f64>, Missing> {
    if plan.direction == Direction::Reverse {
        return Err(Missing::because(
            "the far host sends, and only this host's timers are watched",
        ));
    }
    let watched = || {
        let thread = std::thread::Builder::new().name("timers".into()).spawn(watch);
        thread.map_or_else(|why| Ok(Err(why)), std::thread::JoinHandle::join)
    };
    match blocking(watched).await {
        Ok(Ok(Ok(late))) => Ok(late.iter().map(Duration::as_secs_f64).collect()),
        Ok(Ok(Err(why))) => Err(Missing::because(format!("timers can't be watched: {why}"))),
        Ok(Err(_)) => Err(Missing::because("the thread that watches timers panicked")),
        Err(why) => Err(Missing::because(why.to_string())),
    }
}

/// A queueing discipline's timers don't wait for other threads; so this one waits as little as it may.
fn watch() -> std::io::Result<Vec<Duration>> {
    if let Err(cause) = run_promptly() {
        tracing::debug!("can't get a higher priority than other threads: {cause}");
    }
    goodput_kernel::timer_latenesses(WATCHED)
}

/// The end that sent, if it reports.
pub(super) fn sender(
    record: &Record,
    latenesses_s: Result<Vec<f64>, Missing>,
) -> Result<Sender<'_>, Missing> {
    let reverse = record.plan.direction == Direction::Reverse;
    let (end, seen) = match reverse {
        true => (EndName::Far, &record.ends.far),
        false => (EndName::Near, &record.ends.near),
    };
    let seen = seen.get()?;
    let inputs = record.result.ceiling_inputs.as_ref();
    let inputs = inputs.ok_or_else(|| Missing::because("the size of its segments is unknown"));
    let direction = record.result.directions.first().map(|direction| &direction.min_rtt_us);
    Ok(Sender {
        end,
        before: &seen.before,
        after: &seen.after,
        latenesses_s,
        timer_s: goodput_kernel::WATCHED_TIMER.as_secs_f64(),
        segment: inputs.and_then(Packet::of).map(|packet| (packet.payload, packet.ip)),
        min_rtt_s: match direction {
            Some(Known::Value(us)) => Ok(us / 1e6),
            Some(Known::Missing(why)) => Err(why.clone()),
            None => Err(Missing::because("nothing was sent")),
        },
        tcp_limit: limit(record),
    })
}

/// What limits TCP, in words.
fn limit(record: &Record) -> Option<String> {
    let Verdict { limit, summary, .. } = &record.verdict;
    let found = |finding: &Finding| finding.rule == *limit;
    record.findings.iter().any(found).then(|| summary.clone())
}

/// The rate that TCP got, and the size of its segments.
pub(super) fn tcp_rate(record: &Record) -> Result<TcpRate, Missing> {
    let inputs = record.result.ceiling_inputs.as_ref();
    let inputs = inputs.ok_or_else(|| Missing::because("the size of its segments is unknown"))?;
    let packet = Packet::of(inputs)?;
    let value = record.result.goodput_bits_per_s.0;
    // A rate of which nobody knows how exact it is decides nothing.
    let inexact =
        |why: Missing| Missing::because(format!("how exact its goodput is, is unknown: {why}"));
    let off = record.result.precision_percent.get().map_err(inexact)? / 100.0 * value;
    Ok(TcpRate {
        goodput: Estimate { value, low: value - off, high: value + off },
        payload: packet.payload,
        packet: packet.ip,
    })
}
