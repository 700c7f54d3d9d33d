//! The cost of each arm's runs, if files are sent.

use goodput_model::transfers::{EndCost, Method, Transfers};
use goodput_model::{
    BitRate, Comparison, End, EndName, FlowSample, Known, Length, Missing, Plan, Record, Role,
    Source, Verdict,
};

use super::watch::Watched;

/// Usage of one run.
pub struct RunCost {
    bytes: f64,
    time_s: f64,
    goodput: f64,
    near: EndUsage,
    far: EndUsage,
    /// Whether the far end's usage counts: that of a server of files or of a mount, which nobody reports, does not.
    has_far: bool,
    segments: Result<Segments, Missing>,
}

/// Usage of one end in one run.
struct EndUsage {
    user_us: Result<f64, Missing>,
    system_us: Result<f64, Missing>,
    calls: Result<f64, Missing>,
    peak_bytes: Result<f64, Missing>,
}

/// CPU seconds of both ends per 10^9 payload bytes of a measurement; of this end if the other end is a server of files or a
/// mount.
pub fn cpu_s_per_gb(record: &Record) -> Known<f64> {
    cpu_with(RunCost::of(record).as_ref(), &[])
}

/// The same of a run beside which these hosts were watched; see [`RunCost::cpu_s_per_gb`].
pub(super) fn cpu_with(run: Option<&RunCost>, hosts: &[Watched]) -> Known<f64> {
    let not_counted = || Known::missing("nothing counted what was received");
    run.map_or_else(not_counted, |run| run.cpu_s_per_gb(hosts))
}

impl RunCost {
    /// The cost of a run, if its payload was counted.
    pub fn of(record: &Record) -> Option<Self> {
        let direction = record.result.directions.first()?;
        let has_far = record.fetches.is_none();
        let of_all = record.result.directions.iter().map(|d| match d.received_bytes.value() {
            None if !has_far => d.sent_bytes.value().copied(),
            received => received.copied(),
        });
        let bytes = of_all.sum::<Option<u64>>()? as f64;
        let (near, far) = (record.ends.near.get(), record.ends.far.get());
        let sends = if direction.sender == EndName::Near { &near } else { &far };
        let lasts = [&near, &far].into_iter().filter_map(|end| end.as_ref().ok());
        let time_s = lasts.filter_map(|end| Some(end.samples.last()?.at_s)).fold(0.0, f64::max);
        Some(Self {
            bytes,
            time_s,
            goodput: direction.goodput_bits_per_s.0,
            segments: sends.as_ref().map_err(Clone::clone).and_then(|end| Segments::of(end)),
            near: EndUsage::of(&near),
            far: EndUsage::of(&far),
            has_far,
        })
    }

    /// CPU seconds of both ends per 10^9 payload bytes. Of an end for which one of these `hosts` stands, what this whole host
    /// took: its kernel does work that no process there is charged for, and goodput may not run on it at all.
    pub fn cpu_s_per_gb(&self, hosts: &[Watched]) -> Known<f64> {
        let of = |name: EndName, usage: &EndUsage, counts: bool| match hosts
            .iter()
            .find(|host| host.end == name)
        {
            Some(host) => host.counted.cpu_s.get().copied(),
            None if counts => usage.cpu_s(),
            None => Ok(0.0),
        };
        let near = of(EndName::Near, &self.near, true);
        let both = near.and_then(|near| Ok(near + of(EndName::Far, &self.far, self.has_far)?));
        both.and_then(|cpu_s| per(cpu_s * 1e9, self.bytes)).into()
    }
}

impl EndUsage {
    /// CPU seconds of goodput there.
    fn cpu_s(&self) -> Result<f64, Missing> {
        let [user_us, system_us] = [self.user_us.clone()?, self.system_us.clone()?];
        Ok((user_us + system_us) / 1e6)
    }

    fn of(end: &Result<&End, Missing>) -> Self {
        let grown = |name: &str| {
            let end = end.as_ref().map_err(Clone::clone)?;
            end.before.grown(&end.after, name).map(|count| count as f64)
        };
        Self {
            user_us: grown("process.user_us"),
            system_us: grown("process.system_us"),
            calls: end.as_ref().map_err(Clone::clone).and_then(|end| {
                flows(end)?.iter().map(|flow| flow.calls.get().map(|c| *c as f64)).sum()
            }),
            peak_bytes: end
                .as_ref()
                .map_err(Clone::clone)
                .and_then(|end| end.after.number("process.max_rss_bytes")),
        }
    }
}

fn flows(end: &End) -> Result<&[FlowSample], Missing> {
    let last = end.samples.iter().rev().find(|sample| !sample.flows.is_empty());
    last.map(|sample| &sample.flows[..])
        .ok_or_else(|| Missing::because("this end did not report its flows"))
}

/// What the sending flows' TCP counted.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Segments {
    /// Segments with payload, including those retransmitted or dropped by a queue of this host.
    count: f64,
    /// Payload bytes in them.
    bytes: f64,
}

impl Segments {
    /// The segments of all flows, without what a flow sent before its payload, such as its cookie.
    fn of(end: &End) -> Result<Self, Missing> {
        let counted = |flow: &FlowSample| -> Result<(u64, u64), Missing> {
            let tcp = flow.tcp.get()?;
            Ok((tcp.data_segs_out()?, tcp.sent_bytes()?))
        };
        let before = |number: u16| {
            let first = end.samples.first()?.flows.iter().find(|flow| flow.flow == number)?;
            (first.bytes == 0).then(|| counted(first).ok())?
        };
        let mut all = Self { count: 0.0, bytes: 0.0 };
        for flow in flows(end)?.iter().filter(|flow| flow.role == Role::Sender) {
            let ((count, bytes), before) = (counted(flow)?, before(flow.flow).unwrap_or((0, 0)));
            all.count += count.saturating_sub(before.0) as f64;
            all.bytes += bytes.saturating_sub(before.1) as f64;
        }
        Ok(all)
    }

    fn payload_bytes(self) -> Result<f64, Missing> {
        per(self.bytes, self.count)
    }
}

fn per(what: f64, by: f64) -> Result<f64, Missing> {
    if by > 0.0 { Ok(what / by) } else { Err(Missing::because("nothing was received")) }
}

/// The table of one size and number of clients. `runs` are the runs that count, with their arms.
pub fn table(plan: &Plan, comparison: &Comparison, runs: &[(usize, RunCost)]) -> Transfers {
    let arms = comparison.arms.iter().enumerate();
    let methods = arms.map(|(arm, result)| {
        let own: Vec<_> = runs.iter().filter(|(of, _)| *of == arm).map(|(_, run)| run).collect();
        method(result.values.clone(), &own)
    });
    let counted = comparison.trials.iter().filter(|trial| trial.discarded.is_none());
    Transfers {
        size_bytes: size(plan, runs),
        clients: plan.flows,
        methods: methods.collect(),
        limit: most_frequent(counted.map(|trial| trial.limit.clone()).collect()),
        comparison: comparison.clone(),
    }
}

/// Bytes for each client: as planned, or as received.
fn size(plan: &Plan, runs: &[(usize, RunCost)]) -> Option<u64> {
    match (plan.length, &plan.storage.source) {
        (Length::Bytes(bytes), _) => Some(bytes.0 / u64::from(plan.flows)),
        (Length::Source, Some(Source::Memory(bytes))) => Some(bytes.0),
        (Length::Source, _) => {
            let all = runs.first().map(|(_, run)| run.bytes as u64 / u64::from(plan.flows))?;
            all.checked_sub(u64::from(plan.storage.header_bytes))
        }
        _ => None,
    }
}

fn most_frequent(mut limits: Vec<String>) -> String {
    limits.sort();
    let runs = limits.chunk_by(|a, b| a == b).max_by_key(|same| same.len());
    runs.and_then(|same| same.first().cloned()).unwrap_or_else(|| Verdict::NO_LIMIT.into())
}

fn method(values: Vec<String>, runs: &[&RunCost]) -> Method {
    Method {
        values,
        n: runs.len(),
        time_s: median(runs, |run| Ok(run.time_s)),
        goodput_bits_per_s: median(runs, |run| Ok(run.goodput)).map(BitRate),
        near: end_cost(runs, |run| &run.near),
        far: end_cost(runs, |run| &run.far),
        segments: median(runs, |run| Ok(run.segments.clone()?.count)),
        payload_per_segment_bytes: median(runs, |run| run.segments.clone()?.payload_bytes()),
    }
}

fn end_cost(runs: &[&RunCost], of: fn(&RunCost) -> &EndUsage) -> EndCost {
    // The clocks are coarse compared to a short run, but not to all runs together.
    let sum = |read: fn(&EndUsage) -> &Result<f64, Missing>, scale: f64| -> Known<f64> {
        let each: Result<Vec<f64>, Missing> =
            runs.iter().map(|run| read(of(run)).clone()).collect();
        let bytes: f64 = runs.iter().map(|run| run.bytes).sum();
        each.and_then(|each| per(each.iter().sum::<f64>() * scale, bytes)).into()
    };
    EndCost {
        user_s_per_gb: sum(|spent| &spent.user_us, 1e3),
        system_s_per_gb: sum(|spent| &spent.system_us, 1e3),
        calls_per_mb: sum(|spent| &spent.calls, 1e6),
        peak_memory_bytes: median(runs, |run| of(run).peak_bytes.clone()),
    }
}

fn median(runs: &[&RunCost], read: impl Fn(&RunCost) -> Result<f64, Missing>) -> Known<f64> {
    let all: Result<Vec<f64>, Missing> = runs.iter().map(|run| read(run)).collect();
    let none = || Missing::because("no run of this arm counts");
    all.and_then(|all| goodput_model::median(all).ok_or_else(none)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(bytes: f64, time_s: f64, system_us: f64) -> RunCost {
        let spent = |system_us| EndUsage {
            user_us: Ok(0.0),
            system_us: Ok(system_us),
            calls: Ok(20.0),
            peak_bytes: Ok(1e6),
        };
        let (near, far) = (spent(system_us), spent(0.0));
        // A tenth of them was sent again.
        let segments = Ok(Segments { count: 11.0, bytes: 1.1 * bytes });
        let goodput = bytes * 8.0 / time_s;
        RunCost { bytes, time_s, goodput, near, far, has_far: true, segments }
    }

    #[test]
    fn cpu_is_that_of_the_ends_that_are_goodput() {
        let unseen = || Err(Missing::because("it is a server of files"));
        let mut run = run(1e9, 1.0, 500_000.0);
        (run.far.user_us, run.far.system_us) = (unseen(), unseen());
        assert!(run.cpu_s_per_gb(&[]).value().is_none(), "it may have taken anything");
        run.has_far = false;
        assert_eq!(run.cpu_s_per_gb(&[]), Known::Value(0.5));
    }

    #[test]
    fn of_a_host_that_is_watched_all_cpu_time_counts_in_place_of_goodputs() {
        let mut run = run(2e9, 1.0, 500_000.0);
        let host = |end, cpu_s| Watched::made_up(end, cpu_s);
        let far = host(EndName::Far, Known::Value(1.5));
        assert_eq!(run.cpu_s_per_gb(&[far]), Known::Value(1.0), "0.5 s here and 1.5 s there");
        let both = [EndName::Near, EndName::Far].map(|end| host(end, Known::Value(1.0)));
        assert_eq!(run.cpu_s_per_gb(&both), Known::Value(1.0), "goodput is on neither of them");
        run.far.user_us = Err(Missing::because("iperf3 reports nothing"));
        assert!(run.cpu_s_per_gb(&[]).value().is_none());
        let far = host(EndName::Far, Known::Value(1.5));
        assert_eq!(run.cpu_s_per_gb(&[far]), Known::Value(1.0));
        let unread = host(EndName::Far, Known::missing("no kern.cp_time"));
        assert_eq!(run.cpu_s_per_gb(&[unread]), Known::missing("no kern.cp_time"));
    }

    #[test]
    fn times_are_medians_and_cpu_is_that_of_all_runs_by_all_bytes() {
        let runs = [run(1e7, 1.0, 0.0), run(1e7, 3.0, 10_000.0), run(1e7, 2.0, 5_000.0)];
        let method = method(vec!["copy".into()], &runs.iter().collect::<Vec<_>>());
        assert_eq!((method.n, method.time_s), (3, Known::Value(2.0)));
        // 15 ms for 30 MB.
        assert_eq!(method.near.cpu_s_per_gb(), Known::Value(0.5));
        assert_eq!(method.near.calls_per_mb, Known::Value(2.0));
        assert_eq!(method.payload_per_segment_bytes, Known::Value(1e6));
    }

    #[test]
    fn what_no_run_counted_is_missing() {
        let none = method(Vec::new(), &[]);
        assert!(none.time_s.value().is_none() && none.near.user_s_per_gb.value().is_none());
        assert_eq!(most_frequent(Vec::new()), "none");
        assert_eq!(most_frequent(vec!["b".into(), "a".into(), "b".into()]), "b");
    }
}
