//! A record without some of its detail.

use goodput_model::{End, Known, Record, Sample};

/// Leaves out every second sample of both ends. Counts go on from sample to sample, so sums and rates between any two that are
/// left stay as they are. `false`: there is nothing more to leave out.
pub(in crate::commands::fleet) fn thin(record: &mut Record) -> bool {
    let [near, far] = [&mut record.ends.near, &mut record.ends.far].map(halved);
    if near.is_none() && far.is_none() {
        return false;
    }
    let thinned = record.thinned.get_or_insert_default();
    thinned.near_samples_every_s = near.or(thinned.near_samples_every_s);
    thinned.far_samples_every_s = far.or(thinned.far_samples_every_s);
    true
}

/// The mean time between the samples that are left, seconds; none if none were left out.
fn halved(end: &mut Known<End>) -> Option<f64> {
    let Known::Value(End { samples, .. }) = end else { return None };
    let before = samples.len();
    let mut number = 0;
    // Those with details and those without: with a common count, all details could be among those that go.
    let mut seen = [0_usize; 2];
    samples.retain(|sample| {
        let seen = &mut seen[usize::from(sample.flows.is_empty())];
        *seen += 1;
        number += 1;
        *seen % 2 == 1 || number == before
    });
    let [first, .., last] = &samples[..] else { return None };
    (samples.len() < before).then(|| mean_time(first, last, samples.len()))
}

fn mean_time(first: &Sample, last: &Sample, samples: usize) -> f64 {
    (last.at_s - first.at_s) / (samples - 1) as f64
}

#[cfg(test)]
pub(in crate::commands::fleet) mod tests {
    use super::*;

    /// A record with 101 samples, of which every tenth has details.
    pub fn detailed() -> Record {
        let json = include_str!("../../../../../store/tests/golden/v1/test.json");
        let mut record = goodput_store::read_record(json).unwrap();
        let Known::Value(near) = &mut record.ends.near else { panic!("it has a near end") };
        let [plain, detailed] = &near.samples[..] else { panic!("it has two samples") };
        let sample = |n: u32| {
            let kind = if n.is_multiple_of(10) { detailed } else { plain };
            Sample { at_s: f64::from(n) / 10.0, ..kind.clone() }
        };
        near.samples = (0..=100).map(sample).collect();
        record
    }

    fn samples(record: &Record) -> &[Sample] {
        &record.ends.near.value().unwrap().samples
    }

    #[test]
    fn a_record_loses_half_of_its_samples_until_the_ends_are_left_and_says_so() {
        let whole = detailed();
        let mut record = whole.clone();
        let mut times = 0;
        while thin(&mut record) {
            times += 1;
            let every_s = record.thinned.as_ref().unwrap().near_samples_every_s.unwrap();
            let (kept, all) = (samples(&record), samples(&whole));
            assert!((every_s - 10.0 / (kept.len() - 1) as f64).abs() < 1e-9, "{every_s}");
            assert!(kept.iter().all(|sample| all.contains(sample)));
            assert_eq!((kept.first(), kept.last()), (all.first(), all.last()));
            assert!(kept.iter().any(|sample| !sample.flows.is_empty()));
        }
        assert!((5..10).contains(&times), "{times}");
        assert!(samples(&record).len() <= 3, "{}", samples(&record).len());
        assert_eq!(record.result, whole.result);
        let again = goodput_store::read_record(&record.to_readable_json().unwrap()).unwrap();
        assert_eq!(again, record);
    }
}
