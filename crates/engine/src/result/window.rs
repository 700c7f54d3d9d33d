//! The part of both ends' samples that a rate is measured over.

use goodput_model::{Measured, Sample};

/// Largest share of a run that may be dropped as its start.
const MAX_TRIM_SHARE: f64 = 0.5;

/// The first `count` samples, taken before the senders were stopped; all samples if those are too few to measure
/// anything, if payload came only later, or if nobody was stopped.
pub fn steady(samples: &[Sample], count: Option<usize>) -> &[Sample] {
    let moved =
        |samples: &[Sample]| samples.last().map(|s| (s.sent_bytes > 0, s.received_bytes > 0));
    let before = count.filter(|count| *count >= 2).and_then(|count| samples.get(..count));
    before.filter(|before| moved(before) == moved(samples)).unwrap_or(samples)
}

/// Everything that was received, from the beginning to the end of the last flow, without what had come before.
pub fn whole(receiver: &[Sample]) -> Option<Measured> {
    let last = receiver.last().filter(|last| last.received_bytes > 0 && last.at_s > 0.0)?;
    let series = [(0.0, came_before(receiver)), (last.at_s, last.received_bytes)];
    goodput_experiment::steady::measure(&series, None, 0.0)
}

/// What had come before the receiver's clock began. Nothing, if that is more than came since: the little rest of a short
/// transfer would say nothing about its rate.
fn came_before(receiver: &[Sample]) -> u64 {
    let before = receiver.first().filter(|first| first.at_s <= 0.0);
    let all = receiver.last().map_or(0, |last| last.received_bytes);
    before.map(|first| first.received_bytes).filter(|bytes| *bytes <= all / 2).unwrap_or(0)
}

/// What was written in passes, from the beginning to the end of the last pass. A pass counts once its end has reached
/// the server. If something is to be omitted, starts at the end of the first pass after that.
pub fn written(counted: &[Sample], omit_s: f64) -> Option<Measured> {
    let after = (omit_s > 0.0).then(|| after_steps(counted, omit_s)).flatten();
    after.or_else(|| whole(counted))
}

/// From the first step after `omit_s` to the last; `None` if there are fewer than two.
pub fn after_steps(counted: &[Sample], omit_s: f64) -> Option<Measured> {
    let pairs = counted.iter().zip(counted.iter().skip(1));
    let steps = pairs.filter(|(before, at)| at.received_bytes > before.received_bytes);
    let mut steps = steps.map(|(_, at)| (at.at_s, at.received_bytes)).filter(|at| at.0 >= omit_s);
    let (first, last) = (steps.next()?, steps.next_back()?);
    goodput_experiment::steady::measure(&[first, last], None, 0.0)
}

/// The measured window of one direction, from both ends' samples so far: without the first `omit_s` seconds or, if
/// these are 0, without slow start. The sender's samples begin `later_s` after the receiver's.
pub fn measure(
    sender: &[Sample],
    receiver: &[Sample],
    omit_s: f64,
    later_s: f64,
) -> Option<Measured> {
    if omit_s > 0.0 {
        let after = receiver.iter().filter(|sample| sample.at_s >= omit_s);
        let series: Vec<_> = after.map(|s| (s.at_s, s.received_bytes)).collect();
        return goodput_experiment::steady::measure(&series, None, 0.0);
    }
    let mut series: Vec<_> = receiver.iter().map(|s| (s.at_s, s.received_bytes)).collect();
    if let Some(first) = series.first_mut().filter(|first| first.0 <= 0.0) {
        first.1 = came_before(receiver);
    }
    // A transfer that ended before its second sample is measured as a whole.
    if let [(at_s, 1..)] = series[..]
        && at_s > 0.0
    {
        series.insert(0, (0.0, 0));
    }
    let slow_start = goodput_experiment::slow_start::ended_s(sender).map(|at_s| at_s + later_s);
    goodput_experiment::steady::measure(&series, slow_start, MAX_TRIM_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_of_one_sample_is_measured_as_a_whole() {
        let one =
            |received_bytes| Sample { at_s: 0.5, sent_bytes: 0, received_bytes, flows: vec![] };
        let measured = measure(&[], &[one(1000)], 0.0, 0.0).unwrap();
        assert_eq!((measured.goodput.0, measured.from_s, measured.to_s), (16_000.0, 0.0, 0.5));
        assert!(measured.precision_percent.value().is_none());
        assert!(measure(&[], &[one(0)], 0.0, 0.0).is_none());
    }

    /// 10 segments came before the clock began, and 20 Mbit/s from then on.
    #[test]
    fn what_came_before_the_first_sample_is_in_no_window() {
        let sample = |tick: u64| Sample {
            at_s: tick as f64 * 0.025,
            sent_bytes: 0,
            received_bytes: 14_480 + tick * 62_500,
            flows: vec![],
        };
        let samples: Vec<_> = (0..=8).map(sample).collect();
        for measured in [measure(&[], &samples, 0.0, 0.0), whole(&samples)] {
            let measured = measured.unwrap();
            assert!((measured.goodput.0 / 20e6 - 1.0).abs() < 1e-9, "{measured:?}");
        }
    }

    #[test]
    fn a_transfer_that_came_before_the_first_sample_is_measured_as_a_whole() {
        let sample =
            |at_s, received_bytes| Sample { at_s, sent_bytes: 0, received_bytes, flows: vec![] };
        let samples = [sample(0.0, 100_000), sample(0.1, 100_000)];
        for measured in [measure(&[], &samples, 0.0, 0.0), whole(&samples)] {
            let measured = measured.unwrap();
            assert!((measured.goodput.0 / 8e6 - 1.0).abs() < 1e-9, "{measured:?}");
        }
    }

    #[test]
    fn samples_that_came_late_are_better_than_none() {
        let sample =
            |received_bytes| Sample { at_s: 0.1, sent_bytes: 0, received_bytes, flows: vec![] };
        let counts = [None, Some(0), Some(1), Some(2), Some(3)];
        let parts = |samples: &[Sample]| counts.map(|count| steady(samples, count).len());
        assert_eq!(parts(&[0, 1, 2].map(sample)), [3, 3, 3, 2, 3]);
        assert_eq!(parts(&[0, 0, 2].map(sample)), [3; 5], "a far end that began late");
        assert_eq!(parts(&[0, 0, 0].map(sample)), [3, 3, 3, 2, 3]);
    }

    #[test]
    fn the_wait_for_the_disk_counts() {
        let sample =
            |at_s, received_bytes| Sample { at_s, sent_bytes: 0, received_bytes, flows: vec![] };
        let waits = [sample(0.0, 0), sample(0.1, 1000), sample(2.0, 1000), sample(4.0, 1000)];
        let measured = whole(&waits).unwrap();
        assert_eq!((measured.goodput.0, measured.from_s, measured.to_s), (2000.0, 0.0, 4.0));
        assert!(whole(&[sample(4.0, 0)]).is_none() && whole(&[]).is_none());
    }

    #[test]
    fn what_is_written_in_passes_is_omitted_by_passes() {
        // A pass of 1000 bytes each second; the last one ends with the run.
        let sample = |tenth: u64| Sample {
            at_s: tenth as f64 / 10.0,
            sent_bytes: 0,
            received_bytes: tenth / 10 * 1000,
            flows: vec![],
        };
        let samples: Vec<_> = (0..=40).map(sample).collect();
        for (omit_s, from_s) in [(0.0, 0.0), (0.5, 1.0), (1.7, 2.0)] {
            let measured = written(&samples, omit_s).unwrap();
            assert_eq!((measured.goodput.0, measured.from_s, measured.to_s), (8000.0, from_s, 4.0));
        }
        assert!(after_steps(&samples, 3.5).is_none(), "one step has no length");
        assert_eq!(written(&samples, 3.5).unwrap().from_s, 0.0);
    }

    #[test]
    fn what_is_to_be_omitted_does_not_count_and_all_the_rest_does() {
        let sample = |tenth: u64| Sample {
            at_s: tenth as f64 / 10.0,
            sent_bytes: 0,
            received_bytes: if tenth < 10 { tenth } else { 10 + (tenth - 10) * 1000 },
            flows: vec![],
        };
        let samples: Vec<_> = (0..=30).map(sample).collect();
        let measured = measure(&[], &samples, 1.0, 0.0).unwrap();
        assert_eq!((measured.from_s, measured.to_s), (1.0, 3.0));
        assert!((measured.goodput.0 - 80_000.0).abs() < 1e-6, "{measured:?}");
    }
}
