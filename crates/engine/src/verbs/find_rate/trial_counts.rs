//! What one trial of a search saw, from both ends' counts.

use goodput_experiment::rate_search::TrialResult;
use goodput_model::{EndName, Known, Missing, Record, Sample};

use crate::error::EngineError;
use crate::result::dropped::dropped_share;
use crate::result::measurement::Measurement;

/// Shortest time over which the rate of a sender is computed, seconds: half the sampler's period.
const MIN_RATE_TIME_S: f64 = 0.05;

/// The counts of one trial.
pub(super) struct TrialCounts {
    /// Payload sent before the sender was stopped.
    pub(super) sent_bytes: f64,
    /// Sending time, seconds.
    pub(super) seconds: f64,
    /// Share of the datagrams that did not arrive.
    pub(super) lost: f64,
    /// Share of the datagrams that the receiving socket had no room for.
    pub(super) dropped: Known<f64>,
    /// Rates in bits per second; see [`TrialResult`].
    fastest: f64,
    through: f64,
}

impl TrialCounts {
    /// From the ends' counts, and the conclusions from them.
    pub(super) fn of(counts: &SampleCounts, record: &Record) -> Result<Self, EngineError> {
        let lost = lost(record)?;
        let (sent_bytes, seconds) = counts.sent.unwrap_or_else(|| {
            let (rate, seconds) = (record.result.goodput_bits_per_s.0, record.result.duration_s);
            (rate / (1.0 - lost).max(f64::EPSILON) * seconds / 8.0, seconds)
        });
        let sent = sent_bytes * 8.0 / seconds;
        Ok(Self {
            sent_bytes,
            seconds,
            lost,
            dropped: counts.dropped.clone(),
            fastest: counts.fastest.unwrap_or(sent).max(sent),
            through: counts.through.unwrap_or(sent * (1.0 - lost)),
        })
    }

    /// Average sending rate, bits per second.
    pub(super) fn sent_bits_per_s(&self) -> f64 {
        self.sent_bytes * 8.0 / self.seconds
    }

    /// The trial in the search's terms. Drops at the receiver's socket that are not reported count as the path's.
    pub(super) fn tried(&self, asked: Option<f64>, confirms: bool) -> TrialResult {
        TrialResult {
            asked,
            sent: self.sent_bits_per_s(),
            fastest: self.fastest,
            through: self.through,
            lost: self.lost,
            lost_by_receiver: self.dropped.value().copied().unwrap_or(0.0),
            confirms,
        }
    }
}

/// What only the samples show, not the record; taken before they become the record.
pub(super) struct SampleCounts {
    /// Bytes and seconds by the sending end's own counters, if it reports them.
    sent: Option<(f64, f64)>,
    fastest: Option<f64>,
    through: Option<f64>,
    dropped: Known<f64>,
}

impl SampleCounts {
    pub(super) fn of(measured: &Measurement) -> Self {
        let sender = measured.senders().first().copied().unwrap_or(EndName::Near);
        let sent = measured.steady(sender);
        let last = sent.last().filter(|last| last.at_s > 0.0);
        let receiver = measured.end(sender.other());
        Self {
            sent: last.map(|last| (last.sent_bytes as f64, last.at_s)),
            fastest: fastest(sent),
            through: receiver.and_then(|_| second_half(measured.steady(sender.other()))),
            dropped: receiver
                .ok_or_else(|| Missing::because("the far end does not report on its socket"))
                .and_then(dropped_share)
                .into(),
        }
    }
}

/// The highest rate between two samples, bits per second.
fn fastest(samples: &[Sample]) -> Option<f64> {
    let rates = samples.windows(2).filter_map(|two| {
        let seconds = two[1].at_s - two[0].at_s;
        let bytes = two[1].sent_bytes.saturating_sub(two[0].sent_bytes);
        (seconds >= MIN_RATE_TIME_S).then(|| bytes as f64 * 8.0 / seconds)
    });
    rates.reduce(f64::max)
}

/// The rate at which the second half of the samples arrived, bits per second: by then a policer's bucket is empty, and
/// a queue is full.
fn second_half(samples: &[Sample]) -> Option<f64> {
    let last = samples.last()?;
    let middle = samples.iter().rev().find(|sample| sample.at_s <= last.at_s / 2.0)?;
    let seconds = last.at_s - middle.at_s;
    let bytes = last.received_bytes.saturating_sub(middle.received_bytes);
    (seconds >= MIN_RATE_TIME_S).then(|| bytes as f64 * 8.0 / seconds)
}

/// Share of the datagrams that did not arrive.
fn lost(record: &Record) -> Result<f64, EngineError> {
    let direction = record.result.directions.first();
    let direction = direction.ok_or_else(|| EngineError::Flow("nothing was counted".into()))?;
    let unknown = |why| EngineError::Flow(format!("the loss is unknown: {why}"));
    let by_number = direction.lost_percent.get().map_err(unknown)? / 100.0;
    // Sequence numbers don't show losses after the last arrival. Both ends' counts show them, if both count the whole
    // run; a foreign far end stops reading when it is asked to.
    let counted = match (direction.sent_bytes.value(), direction.received_bytes.value()) {
        (Some(sent), Some(received)) if record.far_totals.is_none() && *sent > 0 => {
            1.0 - *received as f64 / *sent as f64
        }
        _ => 0.0,
    };
    Ok(by_number.max(counted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(bytes: &[u64]) -> Vec<Sample> {
        let sample = |(tenth, bytes): (usize, &u64)| Sample {
            at_s: tenth as f64 / 10.0,
            sent_bytes: *bytes,
            received_bytes: *bytes,
            flows: vec![],
        };
        bytes.iter().enumerate().map(sample).collect()
    }

    #[test]
    fn a_sender_that_was_held_up_was_faster_in_between() {
        let stalled = samples(&[0, 1000, 2000, 2000, 2000, 3000]);
        assert_eq!(fastest(&stalled).map(f64::round), Some(80_000.0));
        assert_eq!(fastest(&stalled[..1]), None);
    }

    #[test]
    fn what_a_bucket_held_is_not_part_of_the_second_half() {
        let bucket = samples(&[0, 5000, 6000, 7000, 8000, 9000, 10_000]);
        assert_eq!(second_half(&bucket).map(f64::round), Some(80_000.0));
        assert_eq!(second_half(&[]), None);
    }
}
