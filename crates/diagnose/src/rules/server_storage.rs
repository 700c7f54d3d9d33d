//! # What it means
//! The first copy of the file took longer than the copies that followed. The server had to bring the file from its disk, or
//! from where it keeps it, before it could send it from memory.
//!
//! # Why it limits
//! It does not limit this measurement, which fetches the file again and again. It limits a copy of a file that nobody has
//! read lately: such a copy is as slow as the first fetch, however fast the network is.
//!
//! # How it is seen
//! The first fetch took at least 15 % longer than the others, and longer than 99 % of fetches that vary as they do (a
//! prediction interval of the logarithms of their times). What slow start costs the first connection is subtracted before.
//!
//! # What to try
//! A faster disk, larger read-ahead or more memory for the cache at the server. A faster network does little for cold copies.
//!
//! # When it is wrong
//! A proxy that fetches the file from elsewhere and a program that opens it for the first time look like a slow disk. If
//! the file was in the server's cache already, the first fetch is as fast as the others and says nothing of the disk.
//!
//! # Source
//! Hahn, Meeker: Statistical Intervals (1991), section 4.8 (prediction of one further observation); RFC 6928 (initial window).

use goodput_model::{Confidence, Fetch, FetchTimes, Fetches, Finding, Known, Missing};

use crate::finding::{Draft, percent, rate, time};
use crate::rule::{Rule, Stage};
use crate::thresholds::MIN_SPARE_RATE_RATIO;
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "server-storage",
    title: "A cold copy waits for the server's disk",
    stage: Stage::Aside,
    explains: &[],
    check,
    witness,
    witness_name: "first_fetch_percent_of_others",
    source: include_str!("server_storage.rs"),
};

/// Fewer fetches than this after the first say too little of how they vary.
const MIN_LATER_FETCHES: u64 = 3;
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

/// The first fetch against the others.
struct First {
    /// What it took, slow start subtracted, seconds for a whole file.
    took_s: f64,
    others: FetchTimes,
}

impl First {
    fn of(view: &View, fetches: &Fetches, first: &Fetch) -> Result<Self, Missing> {
        let others = *fetches.whole_times.get()?;
        let part = match first.whole {
            true => 1.0,
            false => first.bytes as f64 / *fetches.file_bytes.get()? as f64,
        };
        // The wait for the first byte and slow start come once, however much of the file follows.
        let first_byte_s = first.first_byte_us.get()? / 1e6;
        let payload_s = first.took_s - first_byte_s - slow_start_s(view, first.bytes as f64)?;
        let took_s = first_byte_s + payload_s / part;
        Ok(Self { took_s, others })
    }

    /// How many times as long as the others it took.
    fn ratio(&self) -> f64 {
        self.took_s / self.others.geometric_mean_s
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
    if ratio < MIN_SPARE_RATE_RATIO {
        return not_slower(view);
    }
    if first.others.n < MIN_LATER_FETCHES {
        return Err(Missing::because(format!(
            "the first fetch took {ratio:.1} times as long, but only {} whole fetches followed",
            first.others.n
        )));
    }
    if ratio <= first.bound() {
        return Err(Missing::because(format!(
            "the first fetch took {ratio:.1} times as long, which may be chance: the others vary by a factor of {:.2}",
            first.others.geometric_deviation
        )));
    }
    draft(view, fetches, fetch, &first).found()
}

/// The first fetch ran alone. Fetches beside each other take longer, so that they hide a slow first one.
fn not_slower(view: &View) -> Result<Option<Finding>, Missing> {
    match view.plan().flows {
        1 => Ok(None),
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
        "the first fetch took {:.1} times as long as the {} others, slow start subtracted; chance explains {:.2} times",
        first.ratio(),
        others.n,
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

    /// A first fetch of so many seconds, then `n` of 1 s that vary by a factor.
    fn fetched(first_s: f64, n: u64, geometric_deviation: f64) -> Case {
        fetched_bytes(1000, first_s, n, geometric_deviation)
    }

    fn fetched_bytes(bytes: u64, first_s: f64, n: u64, geometric_deviation: f64) -> Case {
        let others = FetchTimes { n, geometric_mean_s: 1.0, geometric_deviation };
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
    fn what_may_be_chance_is_not_told() {
        assert!(cannot_tell(&RULE, fetched(1.5, 20, 1.3)).contains("chance"));
        assert!(cannot_tell(&RULE, fetched(1.5, 3, 1.1)).contains("chance"));
        assert!(cannot_tell(&RULE, fetched(3.0, 2, 1.01)).contains("only 2"));
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
