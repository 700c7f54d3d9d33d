//! # What it means
//! The first copy of the file took longer than the later ones. The server had to bring the file from its disk, or from
//! where it keeps the file, before it could send the file from memory.
//!
//! # Why it limits
//! It does not limit this measurement, which fetches the file again and again. It limits copies of
//! files that nobody has read lately. Such a copy is as slow as the first fetch, however fast the
//! network is.
//!
//! # How it is seen
//! The first fetch is compared with the others. It took at least 15 % longer than the longest of
//! them, and at least 1 ms longer than their average. It also took longer than 99 % of fetches that
//! vary as the others do (a prediction interval of the logarithms of their times). For a short
//! file, the others are up to 20 fetches before the measurement, each made in the same way as the
//! first. For a long file, they are the measurement's fetches, and the first connection's slow
//! start is subtracted.
//!
//! # What to try
//! A faster disk, larger read-ahead or more memory for the cache at the server. A faster network does little for cold copies.
//!
//! # When it is wrong
//! If threads of this host wait for a CPU, a server that is as busy, or on the same host, may have
//! waited as long. So the first fetch must then be at least 0.1 s slower, and by more than twice
//! the extra wait of its own thread. A busier server can't be seen, and looks like a slow disk. So
//! do a proxy that fetches the file from elsewhere and a server's program that opens the file for
//! the first time. If the file was already in the server's cache, the first fetch is as fast as the
//! others and shows nothing about the disk.
//!
//! # Source
//! Hahn, Meeker: Statistical Intervals (1991), section 4.8 (prediction of one further observation); RFC 6928 (initial window).

use goodput_model::{Confidence, Fetch, FetchTimes, Fetches, Finding, Known, Missing};

use crate::cpu_bound::MIN_CPU_WAIT_SHARE;
use crate::finding::{Draft, percent, rate, time};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::{MIN_BUSY_SHARE_OF_ALL_CPUS, MIN_SPARE_RATE_RATIO};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "server-storage",
    title: "A cold copy waits for the server's disk",
    refines: &[parts::SENDING_PROGRAM],
    depth: Depth::Aside,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "first_fetch_percent_of_others",
    witness_words: ("first fetch as a share of the later ones", " %"),
    source: include_str!("server_storage.rs"),
};

/// Fewer fetches than this after the first show too little of how they vary.
const MIN_LATER_FETCHES: u64 = 3;
/// This many fetches like the first are worth more than those of the measurement.
const MIN_ALONE_FETCHES: u64 = 5;
/// What storage costs at least, seconds, to be distinguished from the first use of a connection, a program and its memory:
/// disks that turn need several milliseconds to find a place.
const MIN_STORAGE_TIME_S: f64 = 0.001;
/// The same on a host whose threads wait for a CPU, seconds: a wait is several time slices long (sched(7); base_slice_ns of
/// EEVDF is about 3 ms, and each program that is ready takes one), and the first fetch starts more threads than the others.
const MIN_STORAGE_TIME_ON_BUSY_HOST_S: f64 = 0.1;
/// Segments that a new connection may send in its first round trip (RFC 6928).
const INITIAL_WINDOW_SEGMENTS: f64 = 10.0;
/// Student's t, the quantile of 99 %, by degrees of freedom (NIST/SEMATECH e-Handbook, section 1.3.6.7.2). Between two rows
/// the upper one holds: it is the more careful.
const T_QUANTILES_99: [(u64, f64); 11] = [
    (2, 6.965),
    (3, 4.541),
    (4, 3.747),
    (5, 3.365),
    (6, 3.143),
    (8, 2.896),
    (10, 2.764),
    (15, 2.602),
    (20, 2.528),
    (30, 2.457),
    (60, 2.390),
];

/// How much of the wait for a CPU may be in the time of the first fetch: that of this end, and as much at the server.
const WAITING_ENDS: f64 = 2.0;
/// The first fetch against the others.
struct First {
    /// What it took, seconds for a whole file; slow start is subtracted, unless the others have it, too.
    took_s: f64,
    others: FetchTimes,
    /// Whether the others were made alone, too.
    alike: bool,
}

impl First {
    fn of(view: &View, fetches: &Fetches, first: &Fetch) -> Result<Self, Missing> {
        if let Known::Value(others) = &fetches.alone_times
            && others.n >= MIN_ALONE_FETCHES
        {
            return Ok(Self { took_s: first.took_s, others: others.clone(), alike: true });
        }
        let others = fetches.whole_times.get()?.clone();
        let part = match first.whole {
            true => 1.0,
            false => first.bytes as f64 / *fetches.file_bytes.get()? as f64,
        };
        // The wait for the first byte and slow start come once, however much of the file follows.
        let first_byte_s = first.first_byte_us.get()? / 1e6;
        let payload_s = first.took_s - first_byte_s - slow_start_s(view, first.bytes as f64)?;
        // What follows in calls is asked for ahead: its time has no round trip in it.
        let ahead_s = if fetches.rpcs.is_some() { view.receiver.min_rtt_s()? } else { 0.0 };
        let took_s = first_byte_s + payload_s / part - ahead_s;
        Ok(Self { took_s, others, alike: false })
    }

    /// How many times as long as the others it took.
    fn ratio(&self) -> f64 {
        self.took_s / self.others.geometric_mean_s
    }

    /// Whether it took so little longer that it need not be storage.
    fn is_close(&self) -> bool {
        self.ratio() < MIN_SPARE_RATE_RATIO || self.longer_s() < MIN_STORAGE_TIME_S
    }

    /// How much longer than the others it took, seconds.
    fn longer_s(&self) -> f64 {
        self.took_s - self.others.geometric_mean_s
    }

    /// Whether chance explains it: one of the others took nearly as long, or may have.
    fn may_be_chance(&self) -> bool {
        let longest_s = self.others.longest_s.value().copied().unwrap_or(0.0);
        self.took_s < longest_s * MIN_SPARE_RATE_RATIO || self.ratio() <= self.bound()
    }

    /// The same that 99 of 100 fetches like the others do not exceed.
    fn bound(&self) -> f64 {
        let freedom = self.others.n.saturating_sub(1);
        let t = T_QUANTILES_99
            .iter()
            .rev()
            .find(|(from, _)| *from <= freedom)
            .map_or(f64::INFINITY, |r| r.1);
        let spread = (1.0 + 1.0 / self.others.n as f64).sqrt();
        (t * self.others.geometric_deviation.ln() * spread).exp()
    }
}

/// Time that slow start may take from a new connection, seconds: a round trip for each doubling of its window, up to what
/// the path holds or the file has. Later fetches may find a connection that is past it.
fn slow_start_s(view: &View, file_bytes: f64) -> Result<f64, Missing> {
    let (rtt_s, segment) = (view.receiver.min_rtt_s()?, view.receiver.arriving_segment_bytes()?);
    let flight = (view.goodput()? / 8.0 * rtt_s).min(file_bytes);
    let doublings = (1.0 + flight / (INITIAL_WINDOW_SEGMENTS * segment)).log2();
    Ok(doublings.ceil() * rtt_s)
}

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.receiver.elapsed_s()?;
    let Some(fetches) = view.fetches() else { return Ok(None) };
    // An upload has no first fetch.
    let Known::Value(fetch) = &fetches.first else { return Ok(None) };
    let first = First::of(view, fetches, fetch)?;
    let ratio = first.ratio();
    if first.is_close() {
        return not_slower(view, first.alike);
    }
    if first.others.n < MIN_LATER_FETCHES {
        return Err(Missing::because(format!(
            "the first fetch took {ratio:.1} times as long, but only {} whole fetches followed",
            first.others.n
        )));
    }
    if waits_for_cpu(view) && first.longer_s() < busy_time_s(view, fetch, &first)? {
        return Err(Missing::because(format!(
            "the first fetch took {ratio:.1} times as long, perhaps because it waited for a CPU of this busy host"
        )));
    }
    if first.may_be_chance() {
        return Err(Missing::because(format!(
            "the first fetch took {ratio:.1} times as long, which may be chance: the others vary by a factor of {:.2}",
            first.others.geometric_deviation
        )));
    }
    draft(view, fetches, fetch, &first).found()
}

/// How much longer than the others the wait for a CPU may make the first fetch on a busy host, seconds.
fn busy_time_s(view: &View, fetch: &Fetch, first: &First) -> Result<f64, Missing> {
    let others_s = view.receiver.cpu_wait_share().unwrap_or(0.0) * first.others.geometric_mean_s;
    let longer_s = (fetch.cpu_wait_us.get()? / 1e6 - others_s).max(0.0);
    Ok((longer_s * WAITING_ENDS).max(MIN_STORAGE_TIME_ON_BUSY_HOST_S))
}

/// Whether threads of this end waited for a CPU, or may have.
fn waits_for_cpu(view: &View) -> bool {
    let side = &view.receiver;
    let waits = side.cpu_wait_share().is_ok_and(|share| share >= MIN_CPU_WAIT_SHARE);
    waits || side.host_busy_share().is_ok_and(|busy| busy >= MIN_BUSY_SHARE_OF_ALL_CPUS)
}

/// The first fetch ran alone. Fetches beside each other take longer, so that they hide a slow first one.
fn not_slower(view: &View, alike: bool) -> Result<Option<Finding>, Missing> {
    match view.plan().flows {
        1 => Ok(None),
        _ if alike => Ok(None),
        flows => Err(Missing::because(format!(
            "the first fetch ran alone, and the others {flows} at once; one flow would show a slow first fetch"
        ))),
    }
}

fn draft(view: &View, fetches: &Fetches, fetch: &Fetch, first: &First) -> Draft {
    let (far, own) = (view.sender.place(), view.receiver.place());
    let others = &first.others;
    let cold = fetch.bytes as f64 * 8.0 / fetch.took_s;
    let text = format!(
        "the first fetch took {:.1} times as long as the {} others{}; chance explains {:.2} times",
        first.ratio(),
        others.n,
        if first.alike { ", which were made in the same way" } else { ", slow start subtracted" },
        first.bound()
    );
    let summary = format!(
        "a cold copy waits for the server's disk, not for the network: {} the first time, {} from its cache",
        rate(cold),
        rate(view.goodput_or_zero())
    );
    Draft::new(RULE.id, far, Confidence::Likely, summary)
        .saw(own, RULE.witness_name, first.ratio() * 100.0, text)
        .saw(own, "fetch_deviation_percent", (others.geometric_deviation - 1.0) * 100.0, {
            format!("the others varied by {}", percent(others.geometric_deviation - 1.0))
        })
        .saw_if(own, "first_byte_us", fetches.first_byte_us.get().copied(), |us| {
            let first =
                fetch.first_byte_us.value().map_or_else(|| "unknown".into(), |us| time(us / 1e6));
            format!("the first byte came after {first}, later after {} (median)", time(us / 1e6))
        })
        .advice(
            "for faster cold copies: a faster disk, more read-ahead or more cache at the server",
        )
}

/// Time of the first fetch, percent of the geometric mean of the others.
fn witness(view: &View) -> Result<f64, Missing> {
    let fetches = view.fetches().ok_or_else(|| Missing::because("the target is no file"))?;
    Ok(First::of(view, fetches, fetches.first.get()?)?.ratio() * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::Place;

    /// A first fetch of this many seconds, then `n` of 1 s that vary by a factor.
    fn fetched(first_s: f64, n: u64, geometric_deviation: f64) -> Case {
        fetched_bytes(1000, first_s, n, geometric_deviation)
    }

    fn fetched_bytes(bytes: u64, first_s: f64, n: u64, geometric_deviation: f64) -> Case {
        let longest_s = Known::Value(geometric_deviation.powi(2));
        let others = FetchTimes { n, geometric_mean_s: 1.0, geometric_deviation, longest_s };
        Case::healthy().arriving(|_, _| ()).asking(0.0).fetch_times(first_s, bytes, others)
    }

    #[test]
    fn a_slow_first_fetch_is_the_servers_disk_and_never_the_verdict() {
        let finding = fires(&RULE, fetched(3.0, 20, 1.1));
        assert_eq!((finding.end, finding.confidence), (Place::Near, Confidence::Likely));
        let diagnosis = diagnose(&fetched(3.0, 20, 1.1).evidence());
        assert_eq!(diagnosis.verdict.limit, "none");
        assert_eq!(diagnosis.findings.len(), 1, "{:?}", diagnosis.findings);
    }

    #[test]
    fn one_that_is_as_fast_as_the_others_is_quiet() {
        quiet(&RULE, fetched(1.0, 20, 1.1));
        quiet(&RULE, fetched(3.0, 20, 1.1).uploaded());
        quiet(&RULE, Case::healthy());
    }

    #[test]
    fn what_may_be_chance_is_not_reported() {
        assert!(cannot_tell(&RULE, fetched(1.5, 20, 1.3)).contains("chance"));
        assert!(cannot_tell(&RULE, fetched(1.5, 3, 1.1)).contains("chance"));
        assert!(cannot_tell(&RULE, fetched(3.0, 2, 1.01)).contains("only 2"));
    }

    #[test]
    fn one_that_is_not_the_longest_is_not_reported() {
        let case = fetched(1.5, 60, 1.1).fetched(|fetches| {
            let Known::Value(times) = &mut fetches.whole_times else { return };
            times.longest_s = Known::Value(1.4);
        });
        assert!(cannot_tell(&RULE, case).contains("chance"));
    }

    #[test]
    fn fetches_made_like_the_first_count_for_more_than_those_of_the_measurement() {
        let alone = |n, mean_s: f64| {
            fetched(1.0, 20, 1.01).fetched(move |fetches| {
                let longest_s = Known::Value(mean_s * 1.1);
                let times = FetchTimes {
                    n,
                    geometric_mean_s: mean_s,
                    geometric_deviation: 1.05,
                    longest_s,
                };
                fetches.alone_times = Known::Value(times);
            })
        };
        fires(&RULE, alone(20, 0.2));
        quiet(&RULE, alone(2, 0.2));
        // The first was slow because it was alone, as these were.
        quiet(
            &RULE,
            alone(20, 1.0).fetched(|fetches| {
                let Known::Value(times) = &mut fetches.whole_times else { return };
                times.geometric_mean_s = 0.2;
            }),
        );
        // What a few microseconds more are can't be seen from here.
        quiet(&RULE, alone(20, 0.9995));
    }

    #[test]
    fn the_wait_for_a_cpu_is_no_disk() {
        let first = |first_s| {
            fetched(first_s, 20, 1.01).fetched(|fetches| {
                let alone: Vec<f64> = (0..20).map(|n| 0.12 + 0.001 * f64::from(n % 3)).collect();
                fetches.alone_times = FetchTimes::of(&alone);
            })
        };
        fires(&RULE, first(0.2));
        assert!(cannot_tell(&RULE, first(0.2).waiting(0.5, 0.5)).contains("busy host"));
        fires(&RULE, first(0.3).waiting(0.5, 0.5));
        let waited = |waited_us| {
            let mut case = first(0.6).waiting(0.5, 0.5);
            case.first_fetch(|first| first.cpu_wait_us = Known::Value(waited_us));
            case
        };
        // It took 0.48 s longer than the others, which waited half of their 0.12 s.
        assert!(cannot_tell(&RULE, waited(310_000.0)).contains("busy host"));
        fires(&RULE, waited(290_000.0));
    }

    /// Simulates the first fetch of a warm file, whose time varies as those of the others do: log-normal, and one in five three
    /// times as long as on a busy host.
    #[test]
    fn warm_files_seldom_fire() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut uniform = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut time_s = |busy: f64| {
            let normal: f64 = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            let slow = if uniform() < busy { 3.0 } else { 1.0 };
            0.01 * (0.1 * normal).exp() * slow
        };
        for busy in [0.0, 0.2] {
            let fired = (0..2000).filter(|_| {
                let first_s = time_s(busy);
                let others: Vec<f64> = (0..20).map(|_| time_s(busy)).collect();
                let others = FetchTimes::of(&others).value().unwrap().clone();
                let first = First { took_s: first_s, others, alike: true };
                !first.is_close() && !first.may_be_chance()
            });
            let fired = fired.count();
            assert!(fired <= 20, "{fired} of 2000 at {busy}");
        }
    }

    #[test]
    fn slow_start_of_the_first_connection_is_no_disk() {
        // 800 Mbit/s at 42 ms: nine doublings from ten segments to 4.2 MB.
        let fetched = |first_s| fetched_bytes(100_000_000, first_s, 30, 1.01);
        quiet(&RULE, fetched(1.37));
        fires(&RULE, fetched(1.7));
    }

    #[test]
    fn beside_each_other_fetches_may_hide_it() {
        let flows = |case: Case| case.plan(|plan| plan.flows = 4);
        assert!(cannot_tell(&RULE, flows(fetched(1.0, 20, 1.1))).contains("4 at once"));
        fires(&RULE, flows(fetched(3.0, 20, 1.1)));
    }

    #[test]
    fn a_part_waits_for_its_first_byte_and_for_slow_start_only_once() {
        // A tenth of the file: a second until the first byte, and a tenth of a second for the rest.
        let mut case = fetched_bytes(1000, 1.1, 20, 1.01);
        case.first_fetch(|first| {
            let first_byte_us = Known::Value(1e6);
            *first = Fetch { bytes: 100, whole: false, first_byte_us, ..first.clone() };
        });
        let evidence = case.evidence();
        let view = View::new(&evidence);
        let fetches = view.fetches().unwrap();
        let took_s = First::of(&view, fetches, fetches.first.value().unwrap()).unwrap().took_s;
        let slow_start_s = slow_start_s(&view, 100.0).unwrap();
        assert!((took_s - (1.0 + (0.1 - slow_start_s) * 10.0)).abs() < 1e-9, "{took_s}");
    }
}
