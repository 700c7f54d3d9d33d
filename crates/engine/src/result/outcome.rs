//! The numbers of a measurement: what was received, what it cost, what went wrong on the path.

use std::sync::Arc;

use goodput_diagnose::ceiling::PathCeiling;
use goodput_diagnose::{View, path_steps};
use goodput_model::{
    BitRate, DatagramCounts, DirectionResult, End, EndName, EndResult, FlowSample, FlowTotals,
    Known, Measured, Missing, Outcome, Role, Snapshot, TcpInfo, Transport, median,
};

use crate::result::far_totals::{FarCounts, seen_or_reported};
use crate::result::measurement::Measurement;
use crate::result::storage;

/// Why nothing is known about the flows of an end that did report.
const UNREPORTED: &str = "this end did not report its flows";

/// Why the sums of a far end without a report are unknown.
const UNFINISHED: &str = "its last count did not come";

/// Computes the outcome of a measurement. `ceiling` is the most that the path could carry; `reverse`, the most in the
/// other direction, if both were measured.
pub fn outcome(
    measurement: &Measurement,
    ceiling: PathCeiling,
    reverse: Option<&PathCeiling>,
) -> Outcome {
    let senders = measurement.senders();
    let counted: Vec<_> =
        senders.iter().filter_map(|s| Some((*s, measurement.counted(*s)?))).collect();
    let carries = |sender| match reverse {
        Some(reverse) if senders.get(1) == Some(sender) => Some(reverse.rate.clone()),
        Some(_) => Some(ceiling.rate.clone()),
        None => None,
    };
    let directions = counted.iter().map(|(sender, (by, measured))| DirectionResult {
        ceiling_bits_per_s: carries(sender),
        ..direction(measurement, *sender, *by, measured)
    });
    let directions = directions.collect();
    let measured: Vec<_> = counted.into_iter().map(|(s, (_, measured))| (s, measured)).collect();
    let total = measured.iter().map(|(_, m)| m.goodput.0).sum();
    let longest = measured.iter().map(|(_, m)| m.to_s - m.from_s).fold(0.0, f64::max);
    Outcome {
        goodput_bits_per_s: BitRate(total),
        duration_s: longest,
        precision_percent: worst_precision(&measured),
        ceiling_bits_per_s: ceiling.rate,
        ceiling_inputs: ceiling.inputs,
        directions,
        near: end_result(Ok(&measurement.near)),
        far: far_result(measurement),
    }
}

fn worst_precision(measured: &[(EndName, Measured)]) -> Known<f64> {
    let all: Result<Vec<f64>, Missing> =
        measured.iter().map(|(_, one)| one.precision_percent.get().copied()).collect();
    all.map(|each| each.into_iter().fold(0.0, f64::max)).into()
}

fn direction(
    measurement: &Measurement,
    sender: EndName,
    counted_by: EndName,
    measured: &Measured,
) -> DirectionResult {
    let sending = Flows::of(measurement, sender, Role::Sender);
    let receiving = Flows::of(measurement, sender.other(), Role::Receiver);
    let sent_bytes = seen_or_reported(sending.sum(|f| Ok(f.bytes)), sending.reported(|f| &f.bytes));
    DirectionResult {
        sender,
        goodput_bits_per_s: measured.goodput,
        precision_percent: Some(measured.precision_percent.clone()),
        ceiling_bits_per_s: None,
        counted_by: Some(counted_by),
        window_bytes: Some(measured.bytes()),
        window_s: Some(measured.to_s - measured.from_s),
        received_bytes: seen_or_reported(
            receiving.sum(|f| Ok(f.bytes)),
            receiving.reported(|f| &f.bytes),
        ),
        retransmitted_bytes: sending.sum(|f| f.tcp.get()?.retrans_bytes()),
        retransmits: seen_or_reported(
            sending.sum(|f| f.tcp.get()?.total_retrans_segments()),
            sending.reported(|f| &f.retransmits),
        ),
        rtt_us: median_rtt(measurement, sender),
        min_rtt_us: sending.smallest_rtt(),
        lost_percent: receiving.lost_percent(&sent_bytes),
        jitter_us: receiving.jitter_us(),
        reordered: seen_or_reported(
            receiving.numbered(|counts| counts.reordered),
            receiving.reported(|flow| &flow.reordered),
        ),
        duplicated: receiving.numbered(|counts| counts.duplicated),
        joined_percent: receiving.share(|counts| (counts.joined, counts.received)),
        even_gaps_percent: receiving.share(|counts| (counts.even_gaps, counts.gaps)),
        spun_us: sending.sum(|f| Ok(datagrams(f)?.spun_us)),
        stalled_us: sending.sum(|f| Ok(datagrams(f)?.stalled_us)),
        sent_bytes,
        storage: storage::of(measurement, sender),
        path_steps: measurement
            .evidence(sender)
            .map(|e| path_steps(&View::new(&e)))
            .unwrap_or_default(),
    }
}

fn far_result(measurement: &Measurement) -> EndResult {
    let reported = measurement.far_totals.as_ref().map(|totals| totals.cpu_percent.clone());
    let seen = end_result(measurement.far.get().map(Arc::as_ref));
    let unreported = || Known::missing("it reported nothing");
    EndResult {
        cpu_percent: seen_or_reported(seen.cpu_percent, reported.unwrap_or_else(unreported)),
        ..seen
    }
}

/// The last detailed view of an end's flows in one role, and what else it reported about them.
struct Flows<'a> {
    seen: Result<Vec<&'a FlowSample>, Missing>,
    reported: Option<FarCounts<'a>>,
    transport: Transport,
}

impl<'a> Flows<'a> {
    fn of(measurement: &'a Measurement, end: EndName, role: Role) -> Self {
        let seen = match (measurement.end(end), &measurement.far) {
            (Some(_), _) if end == EndName::Far && measurement.incomplete.is_some() => {
                Err(Missing::because(UNFINISHED))
            }
            (Some(seen), _) => last_of(seen, role),
            (None, Known::Missing(why)) => Err(why.clone()),
            (None, Known::Value(_)) => Err(Missing::because(UNREPORTED)),
        };
        let reported = (end == EndName::Far).then(|| measurement.far_counts(role));
        Self { seen, reported, transport: measurement.plan.transport }
    }

    fn reported(&self, count: impl Fn(&FlowTotals) -> &Known<u64>) -> Known<u64> {
        self.reported.as_ref().map_or(Known::missing(UNREPORTED), |counts| counts.sum(count))
    }

    fn sum(&self, count: impl Fn(&FlowSample) -> Result<u64, Missing>) -> Known<u64> {
        let sum = |counts: Vec<u64>| counts.into_iter().try_fold(0, u64::checked_add);
        let beyond = || Missing::because("the flows' counters add up to more than a counter holds");
        self.each(count).and_then(|counts| sum(counts).ok_or_else(beyond)).into()
    }

    fn smallest_rtt(&self) -> Known<f64> {
        let smallest = self.each(|f| f.tcp.get()?.min_rtt_us());
        smallest
            .and_then(|all| {
                all.into_iter().min().ok_or_else(|| Missing::because("no flow in this direction"))
            })
            .map(|us| us as f64)
            .into()
    }

    fn lost_percent(&self, sent_bytes: &Known<u64>) -> Known<f64> {
        let reported = self.reported.as_ref().filter(|_| self.transport == Transport::Udp);
        let reported = reported.map(|counts| counts.lost_percent(sent_bytes));
        seen_or_reported(self.seen_lost_percent(), reported.unwrap_or(Known::missing(UNREPORTED)))
    }

    fn seen_lost_percent(&self) -> Known<f64> {
        let counts = self.each(|f| {
            let counts = datagrams(f)?;
            Ok((counts.lost()?, counts.received))
        });
        let share = counts.and_then(|all| {
            let lost: u128 = all.iter().map(|(lost, _)| u128::from(*lost)).sum();
            let total = lost + all.iter().map(|(_, received)| u128::from(*received)).sum::<u128>();
            if total == 0 {
                Err(Missing::because("no datagram arrived"))
            } else {
                Ok((lost, total))
            }
        });
        share.map(|(lost, total)| lost as f64 / total as f64 * 100.0).into()
    }

    /// A count that needs sequence numbers, summed over all flows.
    fn numbered(&self, count: impl Fn(&DatagramCounts) -> u64) -> Known<u64> {
        self.sum(|f| {
            let counts = datagrams(f)?;
            counts.lost().map(|_| count(counts))
        })
    }

    /// One count as a percentage of another, each summed over all flows.
    fn share(&self, counts: impl Fn(&DatagramCounts) -> (u64, u64)) -> Known<f64> {
        let sum = self.each(|f| Ok(counts(datagrams(f)?))).map(|all| {
            all.iter()
                .fold((0, 0), |sum, one| (sum.0 + u128::from(one.0), sum.1 + u128::from(one.1)))
        });
        sum.and_then(|(part, whole)| match whole {
            0 => Err(Missing::because("there were none to look at")),
            _ => Ok(percent(part as f64, whole as f64)),
        })
        .into()
    }

    fn jitter_us(&self) -> Known<f64> {
        let jitter = self.each(|f| datagrams(f)?.jitter_us());
        let seen = jitter.map(|all| all.into_iter().fold(0.0, f64::max)).into();
        let reported = self.reported.as_ref().filter(|_| self.transport == Transport::Udp);
        seen_or_reported(seen, reported.map_or(Known::missing(UNREPORTED), FarCounts::jitter_us))
    }

    fn each<T>(&self, read: impl Fn(&FlowSample) -> Result<T, Missing>) -> Result<Vec<T>, Missing> {
        self.seen.as_ref().map_err(Clone::clone)?.iter().map(|flow| read(flow)).collect()
    }
}

/// The datagram counts of a flow.
fn datagrams(flow: &FlowSample) -> Result<&DatagramCounts, Missing> {
    flow.datagrams.as_ref().ok_or_else(|| Missing::because("only for UDP"))
}

fn last_of(end: &End, role: Role) -> Result<Vec<&FlowSample>, Missing> {
    let last = end.samples.iter().rev().find(|sample| !sample.flows.is_empty());
    let flows = last.map(|sample| sample.flows.iter().filter(|f| f.role == role).collect());
    flows.ok_or_else(|| Missing::because(UNREPORTED))
}

fn median_rtt(measurement: &Measurement, sender: EndName) -> Known<f64> {
    let rtt = |flow: &FlowSample| flow.tcp.value().and_then(|tcp: &TcpInfo| tcp.rtt_us().ok());
    let flows = measurement.steady(sender).iter().flat_map(|s| &s.flows);
    let all = flows.filter(|f| f.role == Role::Sender).filter_map(rtt).map(|us| us as f64);
    match median(all) {
        Some(us) => Known::Value(us),
        None => Known::missing("no round-trip time was sampled at the sender"),
    }
}

fn end_result(end: Result<&End, Missing>) -> EndResult {
    let read = |f: fn(&Snapshot, &Snapshot) -> Result<f64, Missing>| -> Known<f64> {
        end.clone().and_then(|e| f(&e.before, &e.after)).into()
    };
    EndResult {
        cpu_percent: read(|a, b| {
            let user = a.grown(b, "process.user_us")? as f64;
            let system = a.grown(b, "process.system_us")? as f64;
            Ok(percent(user + system, elapsed_us(a, b)?))
        }),
        host_cpu_percent: read(|a, b| {
            let idle = a.grown(b, "cpu.idle_us")? as f64 + a.grown(b, "cpu.iowait_us")? as f64;
            let all = elapsed_us(a, b)? * b.number("cpu.count")?;
            Ok(percent(all - idle, all))
        }),
        softirq_percent: read(|a, b| {
            Ok(percent(a.grown(b, "cpu.softirq_us")? as f64, elapsed_us(a, b)?))
        }),
        steal_percent: read(|a, b| {
            Ok(percent(a.grown(b, "cpu.steal_us")? as f64, elapsed_us(a, b)?))
        }),
    }
}

/// Wall time between two snapshots by the CPU accounting: the sum of all kinds of time, divided by the
/// CPUs. `cpu.idle` and its siblings are then divided by the same clock.
fn elapsed_us(before: &Snapshot, after: &Snapshot) -> Result<f64, Missing> {
    const KINDS: [&str; 8] =
        ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
    let mut sum = 0.0;
    for kind in KINDS {
        sum += before.grown(after, &format!("cpu.{kind}_us"))? as f64;
    }
    match sum / after.number("cpu.count")? {
        elapsed if elapsed > 0.0 => Ok(elapsed),
        _ => Err(Missing::because("no time passed between the snapshots")),
    }
}

fn percent(part: f64, whole: f64) -> f64 {
    part / whole * 100.0
}
