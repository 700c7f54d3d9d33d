//! The samples of one end. A long measurement keeps a bounded number of them.

use std::ops::Deref;

use goodput_model::Sample;

use crate::run::cadence::{SAMPLE_INTERVAL, SHORT_RUNS};

/// Detailed flows that are kept, over all samples; each takes about 1 KiB. Ten flows fill the space in 40 s, one in 7
/// min.
const MAX_DETAILED_FLOWS: usize = 4096;

/// Most samples that are kept.
const MAX_SAMPLES: usize = 16_384;

/// The beginning is kept unthinned because it contains slow start, seconds.
const HEAD_S: f64 = 10.0;

/// Largest part of the kept samples that belongs to the beginning, as a divisor.
const HEAD_DIVISOR: usize = 4;

/// Samples in order. A run that may be short is sampled more often at first; if it turns out longer, it keeps the samples
/// of a longer one, evenly spaced. When there are too many, every second one after the beginning is dropped, and only every second
/// new one is kept from then on. The rest are evenly spaced by a power of two. Counters are cumulative, so sums and
/// rates between any two remaining samples stay the same. The first, the last and the marked one stay.
///
/// Samples with details and those without are counted apart. Details come at every n-th sample, so a common count could
/// keep only those without them.
#[derive(Debug)]
pub struct ThinnedSamples {
    samples: Vec<Sample>,
    details: usize,
    /// After the beginning, one of this many samples is kept.
    stride: usize,
    /// How many samples came after the last permanent one: of those without details, and of those with them.
    since: [usize; 2],
    /// Until when samples come before something that matters.
    until_s: f64,
    /// Time of the last sample until then.
    marked_s: Option<f64>,
}

impl Default for ThinnedSamples {
    fn default() -> Self {
        Self {
            samples: Vec::new(),
            details: 0,
            stride: 1,
            since: [0; 2],
            until_s: f64::NEG_INFINITY,
            marked_s: None,
        }
    }
}

impl ThinnedSamples {
    /// Takes the next sample.
    pub fn push(&mut self, sample: Sample) {
        self.join_short(sample.at_s);
        if sample.at_s <= self.until_s {
            self.marked_s = Some(sample.at_s);
        }
        let replaced = self.samples.last().is_some_and(|last| {
            // On a slow path the far end reports its last totals first, and their details later.
            last.at_s == sample.at_s && last.flows.is_empty()
        });
        if replaced || self.is_surplus() {
            self.drop_last();
        }
        if replaced {
            let plain = &mut self.since[0];
            *plain = if *plain == 1 { self.stride } else { *plain - 1 };
        }
        let since = &mut self.since[class(&sample)];
        *since = if *since == self.stride { 1 } else { *since + 1 };
        self.details += sample.flows.len();
        self.samples.push(sample);
        if self.samples.len() > MAX_SAMPLES || self.details > MAX_DETAILED_FLOWS {
            self.thin();
        }
    }

    /// The last sample until this time, which may still be on its way, comes before something that matters; it is kept.
    pub fn mark(&mut self, until_s: f64) {
        let before = self.samples.iter().rev().find(|sample| sample.at_s <= until_s);
        self.marked_s = before.map(|last| last.at_s);
        self.until_s = until_s;
    }

    /// Number of samples up to the marked one.
    pub fn marked(&self) -> Option<usize> {
        let at_s = self.marked_s?;
        Some(self.samples.partition_point(|sample| sample.at_s <= at_s))
    }

    /// Mean time between two samples after the beginning, seconds, if some were left out.
    pub fn every_s(&self) -> Option<f64> {
        let rest = self.samples.get(self.head() - 1..)?;
        let rest = Some(rest).filter(|rest| self.stride > 1 && rest.len() > 1)?;
        let (first, last) = (rest.first()?, rest.last()?);
        Some((last.at_s - first.at_s) / (rest.len() - 1) as f64)
    }

    /// All remaining samples.
    pub fn into_samples(self) -> Vec<Sample> {
        self.samples
    }

    /// Keeps no more samples than a run needs that goes on until `at_s`. What comes after the mark no longer counts.
    fn join_short(&mut self, at_s: f64) {
        if self.until_s > f64::NEG_INFINITY {
            return;
        }
        let last_s = self.samples.last().map_or(0.0, |last| last.at_s);
        let longer = SHORT_RUNS.iter().skip(1).map(|(_, interval)| *interval);
        for ((until, _), interval) in SHORT_RUNS.iter().zip(longer.chain([SAMPLE_INTERVAL])) {
            // The last sample of a run of this length comes a little late.
            let over_s = (*until + interval / 2).as_secs_f64();
            if (last_s..at_s).contains(&over_s) {
                self.join_within(interval.as_secs_f64());
            }
        }
    }

    /// Keeps one sample for each `interval_s`: the one with details, or the one nearest to its time.
    fn join_within(&mut self, interval_s: f64) {
        let slot = |sample: &Sample| (sample.at_s / interval_s).round();
        let off = |sample: &Sample| (sample.at_s - slot(sample) * interval_s).abs();
        let is_better = |one: &Sample, other: &Sample| match (&one.flows[..], &other.flows[..]) {
            ([], [_, ..]) => false,
            ([_, ..], []) => true,
            _ => off(one) < off(other),
        };
        for sample in std::mem::take(&mut self.samples) {
            match self.samples.last_mut().filter(|last| slot(last) == slot(&sample)) {
                Some(last) if is_better(&sample, last) => *last = sample,
                Some(_) => {}
                None => self.samples.push(sample),
            }
        }
        self.details = self.samples.iter().map(|sample| sample.flows.len()).sum();
    }

    /// Whether the newest sample lies between two kept ones, and was there only because it was the newest.
    fn is_surplus(&self) -> bool {
        let last = self.samples.last().filter(|last| self.since[class(last)] != self.stride);
        last.is_some_and(|last| last.at_s > HEAD_S && Some(last.at_s) != self.marked_s)
            && self.samples.len() > self.head()
    }

    fn drop_last(&mut self) {
        self.details -= self.samples.pop().map_or(0, |last| last.flows.len());
    }

    /// Number of samples in the beginning.
    fn head(&self) -> usize {
        let mut details = 0;
        let is_head = |sample: &&Sample| {
            details += sample.flows.len();
            sample.at_s <= HEAD_S && details <= MAX_DETAILED_FLOWS / HEAD_DIVISOR
        };
        self.samples.iter().take(MAX_SAMPLES / HEAD_DIVISOR).take_while(is_head).count().max(1)
    }

    /// Drops every second sample after the beginning.
    fn thin(&mut self) {
        let (head, newest) = (self.head(), self.samples.len() - 1);
        let marked_s = self.marked_s;
        let mut place = 0;
        let mut passed = [0_usize; 2];
        self.samples.retain(|sample| {
            let at = place;
            place += 1;
            if at < head {
                return true;
            }
            let of_class = &mut passed[class(sample)];
            *of_class += 1;
            of_class.is_multiple_of(2) || at == newest || Some(sample.at_s) == marked_s
        });
        self.details = self.samples.iter().map(|sample| sample.flows.len()).sum();
        let newest = self.samples.last().map(class);
        for (of_class, since) in self.since.iter_mut().enumerate() {
            let is_surplus = newest == Some(of_class) && *since != self.stride;
            let permanent = passed[of_class] - usize::from(is_surplus && passed[of_class] > 0);
            // An odd one is the last permanent one, which was dropped, or would be.
            let was_dropped = permanent % 2 == 1;
            if (*since == self.stride) != was_dropped {
                *since += self.stride;
            }
        }
        self.stride *= 2;
    }
}

/// Whether a sample is one with details: 1 if so.
fn class(sample: &Sample) -> usize {
    usize::from(!sample.flows.is_empty())
}

impl Deref for ThinnedSamples {
    type Target = [Sample];

    fn deref(&self) -> &[Sample] {
        &self.samples
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::{FlowSample, Role};

    use super::*;
    use crate::result::window::measure;

    /// A sample each tenth of a second; slow start for the first two seconds, then a rate that varies.
    fn sample(tenth: u64, flows: u16) -> Sample {
        let received_bytes = match tenth {
            ..20 => tenth * tenth * 100,
            _ => 40_000 + (tenth - 20) * 4000 + (tenth % 7) * 90,
        };
        let flow = |id| FlowSample::unreported(id, Role::Receiver, received_bytes, "not looked at");
        let flows = (0..flows).map(flow).collect();
        Sample { at_s: tenth as f64 / 10.0, sent_bytes: 0, received_bytes, flows }
    }

    fn kept(tenths: u64, flows: u16) -> ThinnedSamples {
        let mut kept = ThinnedSamples::default();
        (0..=tenths).for_each(|tenth| kept.push(sample(tenth, flows)));
        kept
    }

    fn bytes(kept: &ThinnedSamples) -> usize {
        let details: usize = kept.iter().map(|sample| sample.flows.capacity()).sum();
        kept.len() * size_of::<Sample>() + details * size_of::<FlowSample>()
    }

    #[test]
    fn a_day_stays_small_and_its_sums_are_exact() {
        // Ten flows in detail ten times a second are 864 000 samples; a tenth of them goes as far.
        for (tenths, flows) in [(86_400, 10), (864_000, 0)] {
            let kept = kept(tenths, flows);
            assert!(bytes(&kept) < 20 << 20, "{} bytes", bytes(&kept));
            assert!(kept.len() > 200, "{}", kept.len());
            assert_eq!(kept.first(), Some(&sample(0, flows)));
            assert_eq!(kept.last(), Some(&sample(tenths, flows)));
            for one in kept.iter() {
                assert_eq!(
                    *one,
                    sample((one.at_s * 10.0).round() as u64, flows),
                    "as it was taken"
                );
            }
        }
    }

    #[test]
    fn what_is_left_is_evenly_spaced_after_a_beginning_that_is_whole() {
        let kept = kept(100_000, 3);
        let begins = kept.iter().take_while(|sample| sample.at_s <= HEAD_S).count();
        assert_eq!(begins, 101, "every tenth of the first 10 s");
        let times: Vec<f64> = kept[begins..kept.len() - 1].iter().map(|s| s.at_s).collect();
        let gap = times[1] - times[0];
        let even = times.windows(2).all(|pair| (pair[1] - pair[0] - gap).abs() < 1e-6);
        let steps = gap * 10.0;
        assert!(even && (steps.log2() - steps.log2().round()).abs() < 1e-6, "{gap} s: {times:?}");
    }

    /// As 64 flows are sampled: all of them in detail at every sixth sample.
    #[test]
    fn details_are_as_evenly_spaced_as_the_samples_between_them() {
        for (flows, every) in [(64, 6), (64, 8), (40, 4), (12, 2)] {
            let mut kept = ThinnedSamples::default();
            for tenth in 0..=20_000 {
                let flows = if tenth % every == 0 { flows } else { 0 };
                kept.push(sample(tenth, flows));
                if tenth % 700 != 0 {
                    continue;
                }
                let details = || kept.iter().filter(|s| !s.flows.is_empty()).map(|s| s.at_s);
                let wide = details().zip(details().skip(1)).map(|(a, b)| b - a).fold(0.0, f64::max);
                // The newest of the details may be one more than is kept.
                let most = kept.stride as f64 * every as f64 / 10.0;
                assert!(
                    wide <= most + 1e-9,
                    "{flows} flows, {tenth}: {wide} s instead of {most} s"
                );
            }
            let details = kept.iter().filter(|sample| !sample.flows.is_empty()).count();
            assert!(details * usize::from(flows) > MAX_DETAILED_FLOWS / 3, "{details}");
        }
    }

    #[test]
    fn the_rate_is_that_of_all_samples() {
        let all: Vec<Sample> = (0..=50_000).map(|tenth| sample(tenth, 4)).collect();
        let thinned = kept(50_000, 4);
        assert!(thinned.len() < all.len() / 8);
        let rate = |samples: &[Sample], omit_s| measure(&[], samples, omit_s, 0.0).unwrap();
        let (whole, thin) = (rate(&all, 2.0), rate(&thinned, 2.0));
        assert_eq!((whole.from_s, whole.to_s), (thin.from_s, thin.to_s));
        assert_eq!(whole.goodput, thin.goodput, "the same window has the same rate");
        // The samples show where the window begins, which may be a few samples later.
        let (whole, thin) = (rate(&all, 0.0), rate(&thinned, 0.0));
        assert!((whole.goodput.0 / thin.goodput.0 - 1.0).abs() < 1e-4, "{whole:?} {thin:?}");
    }

    /// Samples of a run of bytes, detailed each tenth of a second, until `until_ms`.
    fn growing(until_ms: u64) -> ThinnedSamples {
        let mut kept = ThinnedSamples::default();
        let mut at_ms = 0;
        while at_ms <= until_ms {
            let whole = sample(0, u16::from(at_ms % 100 == 0));
            kept.push(Sample { at_s: at_ms as f64 / 1e3, received_bytes: at_ms, ..whole });
            at_ms += if at_ms < 1000 { 25 } else { 50 + 50 * u64::from(at_ms >= 2000) };
        }
        kept
    }

    #[test]
    fn a_run_is_spaced_as_its_length_asks() {
        for (until_ms, step_ms) in [(500, 25), (1000, 25), (1500, 50), (2000, 50), (2100, 100)] {
            let kept = growing(until_ms);
            let times: Vec<u64> = kept.iter().map(|sample| sample.received_bytes).collect();
            let even: Vec<u64> = (0..=until_ms / step_ms).map(|n| n * step_ms).collect();
            assert_eq!(times, even, "until {until_ms} ms");
            let details = kept.iter().filter(|sample| !sample.flows.is_empty()).count() as u64;
            assert_eq!(details, until_ms / 100 + 1, "no detail is lost");
        }
    }

    #[test]
    fn a_last_sample_that_comes_late_is_no_longer_run() {
        for (until_ms, step_ms) in [(1000, 25), (2000, 50)] {
            let mut kept = growing(until_ms - step_ms);
            let at_s = until_ms as f64 / 1e3 + 0.0003;
            kept.push(Sample { at_s, received_bytes: until_ms, ..sample(0, 1) });
            assert_eq!(kept.len() as u64, until_ms / step_ms + 1);
        }
    }

    #[test]
    fn what_drains_after_the_mark_leaves_a_short_run_as_it_is() {
        let mut kept = growing(900);
        kept.mark(0.9);
        [1000, 1050, 2050].iter().for_each(|at_ms| kept.push(sample(at_ms / 100, 1)));
        assert_eq!(kept.marked(), Some(37));
    }

    #[test]
    fn what_came_before_the_mark_can_be_reported_however_much_comes_after() {
        // The mark is set when its sample has come, or while it and some before it are on their way.
        for come in [30_001, 29_000] {
            let mut kept = kept(come, 2);
            kept.mark(3000.15);
            (come + 1..60_000).for_each(|tenth| kept.push(sample(tenth, 2)));
            let marked = kept.marked().unwrap();
            assert_eq!(kept[marked - 1].at_s, 3000.1);
            assert!(kept.len() > marked);
        }
    }

    #[test]
    fn details_that_follow_their_totals_take_their_place() {
        let mut kept = ThinnedSamples::default();
        kept.push(sample(1, 2));
        kept.push(Sample { flows: Vec::new(), ..sample(2, 2) });
        kept.push(sample(2, 2));
        assert_eq!(kept.iter().map(|s| s.flows.len()).collect::<Vec<_>>(), [2, 2]);
    }
}
