//! Reads a probe's answer from a run before and the probe's own run, side by side.

use goodput_model::{End, EndName, Missing, Record, Role};

/// What one run showed in its main direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Goodput, bits per second.
    pub goodput: f64,
    /// Retransmitted share of the bytes written.
    pub retransmitted: Result<f64, Missing>,
    /// Retransmitted segments.
    pub retransmissions: Result<f64, Missing>,
    /// Share of the datagrams lost.
    pub lost: Result<f64, Missing>,
    /// CPU time of the busiest flow's thread at the near end minus that at the far end, shares of one
    /// CPU.
    pub near_works_more: Result<f64, Missing>,
    /// The end that sent.
    pub sender: EndName,
}

/// Standard deviations allowed for chance: chance exceeds three once in a thousand answers.
const MIN_STANDARD_DEVIATIONS: f64 = 3.0;

/// How an answer is read. A value between two thresholds is no answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reading {
    /// Goodput of the probe over the goodput before: at least `one_from` speaks for the one cause, at most
    /// `other_to` for the other.
    Goodput {
        /// Least ratio for the one cause.
        one_from: f64,
        /// Largest ratio for the other.
        other_to: f64,
    },
    /// Retransmitted share of the probe over the share before. The one cause takes the same share of whatever is
    /// sent: it is the answer if the ratio is 1 within the counts' statistical error. A ratio far from 0 is not
    /// enough: a host whose timers are late sends a paced flow in bursts, which the other
    /// cause still drops in part.
    Retransmitted {
        /// Least ratio for the one cause, however few segments were lost.
        one_from: f64,
        /// Largest ratio for the other.
        other_to: f64,
    },
    /// Share of the probe's datagrams that were lost.
    Lost {
        /// Least share for the one cause.
        one_from: f64,
        /// Largest share for the other.
        other_to: f64,
    },
    /// In the opposite direction, the same host works more. For the one cause this is the host that sent
    /// before; for the other it is the one that received.
    SameHost {
        /// Least difference of the two threads' CPU time, shares of one CPU.
        least: f64,
    },
}

/// Which of the two causes the answer speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The first of the pair.
    One,
    /// The second.
    Other,
    /// Neither: the value lies between.
    Neither,
}

impl Seen {
    /// Reads a run's record.
    pub fn of(record: &Record) -> Result<Self, Missing> {
        let direction = record
            .result
            .directions
            .first()
            .ok_or_else(|| Missing::because("nothing was measured"))?;
        let share = |part: &goodput_model::Known<u64>, whole: &goodput_model::Known<u64>| {
            let (part, whole) = (*part.get()? as f64, *whole.get()? as f64);
            if whole > 0.0 { Ok(part / whole) } else { Err(Missing::because("nothing was sent")) }
        };
        let (near, far) = (record.ends.near.get(), record.ends.far.get());
        let works = |end: Result<&End, Missing>| thread_cpu(end?);
        Ok(Self {
            goodput: direction.goodput_bits_per_s.0,
            retransmitted: share(&direction.retransmitted_bytes, &direction.sent_bytes),
            retransmissions: direction.retransmits.get().map(|count| *count as f64),
            lost: direction.lost_percent.get().map(|percent| percent / 100.0),
            near_works_more: works(near).and_then(|near| Ok(near - works(far)?)),
            sender: direction.sender,
        })
    }
}

/// CPU time of the busiest flow's thread between the first and the last detailed sample, as a share of
/// the time.
fn thread_cpu(end: &End) -> Result<f64, Missing> {
    let detailed = || end.samples.iter().filter(|sample| !sample.flows.is_empty());
    let (Some(first), Some(last)) = (detailed().next(), detailed().next_back()) else {
        return Err(Missing::because("the flows were not sampled"));
    };
    let elapsed_us = (last.at_s - first.at_s) * 1e6;
    let mut most: Option<f64> = None;
    for later in &last.flows {
        let same = |role: Role| {
            move |f: &&goodput_model::FlowSample| f.flow == later.flow && f.role == role
        };
        let Some(earlier) = first.flows.iter().find(same(later.role)) else { continue };
        let used = later.cpu_us.get()?.saturating_sub(*earlier.cpu_us.get()?) as f64;
        most = Some(most.map_or(used, |most: f64| most.max(used)));
    }
    match most {
        Some(used) if elapsed_us > 0.0 => Ok(used / elapsed_us),
        _ => Err(Missing::because("no flow was sampled twice")),
    }
}

impl Reading {
    /// Reads the answer from the run `after` and the run `before`; also returns the deciding value.
    pub fn read(&self, before: &Seen, after: &Seen) -> Result<(Answer, f64), Missing> {
        let between = |value: f64, one_from: f64, other_to: f64| {
            let answer = match value {
                v if v >= one_from => Answer::One,
                v if v <= other_to => Answer::Other,
                _ => Answer::Neither,
            };
            (answer, value)
        };
        match *self {
            Self::Goodput { one_from, other_to } => {
                Ok(between(ratio(after.goodput, before.goodput, "goodput")?, one_from, other_to))
            }
            Self::Retransmitted { one_from, other_to } => {
                let by_chance = MIN_STANDARD_DEVIATIONS * deviation(before, after)?;
                let (after, before) = (after.retransmitted.clone()?, before.retransmitted.clone()?);
                let ratio = ratio(after, before, "the retransmitted share")?;
                Ok(between(ratio, one_from.max(1.0 - by_chance), other_to))
            }
            Self::Lost { one_from, other_to } => {
                Ok(between(after.lost.clone()?, one_from, other_to))
            }
            Self::SameHost { least } => {
                let more = after.near_works_more.clone()?;
                let for_sender = if before.sender == EndName::Near { more } else { -more };
                Ok(between(for_sender, least, -least))
            }
        }
    }

    /// The deciding value, for a person.
    pub fn words(&self, value: f64) -> String {
        match self {
            Self::Goodput { .. } => format!("{value:.2} × the goodput"),
            Self::Retransmitted { .. } => format!("{value:.2} × the retransmitted share"),
            Self::Lost { .. } => format!("{:.1} % lost", value * 100.0),
            Self::SameHost { .. } => {
                let (percent, than) =
                    (value.abs() * 100.0, if value < 0.0 { "less" } else { "more" });
                format!(
                    "the former sender's thread used {percent:.0} % of a CPU {than} than the former receiver's"
                )
            }
        }
    }
}

/// Standard deviation of a ratio of two equal shares, from the counts behind them: independent
/// losses are a Poisson count, and relative variances of a ratio add.
fn deviation(before: &Seen, after: &Seen) -> Result<f64, Missing> {
    let variance = |seen: &Seen| Ok(1.0 / seen.retransmissions.clone()?.max(1.0));
    Ok((variance(before)? + variance(after)?).sqrt())
}

fn ratio(after: f64, before: f64, what: &str) -> Result<f64, Missing> {
    if before > 0.0 && after.is_finite() {
        Ok(after / before)
    } else {
        Err(Missing::because(format!("{what} was {before} before")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn seen(goodput: f64) -> Seen {
        Seen {
            goodput,
            retransmitted: Ok(0.01),
            retransmissions: Ok(400.0),
            lost: Err(Missing::because("only for UDP")),
            near_works_more: Ok(0.3),
            sender: EndName::Near,
        }
    }

    #[test]
    fn what_lies_between_the_thresholds_is_no_answer() {
        let read = Reading::Goodput { one_from: 1.5, other_to: 1.2 };
        let answer = |after: f64| read.read(&seen(100.0), &seen(after)).unwrap().0;
        assert_eq!(
            [answer(200.0), answer(130.0), answer(90.0)],
            [Answer::One, Answer::Neither, Answer::Other]
        );
        assert!(read.read(&seen(0.0), &seen(1.0)).is_err());
    }

    #[test]
    fn the_host_that_works_more_both_ways_is_the_slow_one() {
        let read = Reading::SameHost { least: 0.15 };
        assert_eq!(read.read(&seen(1.0), &seen(1.0)).unwrap().0, Answer::One);
        let far = Seen { near_works_more: Ok(-0.3), ..seen(1.0) };
        assert_eq!(read.read(&seen(1.0), &far).unwrap().0, Answer::Other);
        let even = Seen { near_works_more: Ok(0.05), ..seen(1.0) };
        assert_eq!(read.read(&seen(1.0), &even).unwrap().0, Answer::Neither);
    }

    /// A host with slow timers paces in bursts, and a policer then drops 0.6 of what it did: that is not chance.
    #[test]
    fn a_share_of_loss_is_the_same_only_within_what_chance_makes_of_the_counts() {
        let read = Reading::Retransmitted { one_from: 0.5, other_to: 0.2 };
        let lost = |share: f64, count: f64| Seen {
            retransmitted: Ok(share),
            retransmissions: Ok(count),
            ..seen(1.0)
        };
        let answer =
            |after: f64, count: f64| read.read(&lost(0.01, count), &lost(after, count)).unwrap().0;
        assert_eq!(answer(0.006, 400.0), Answer::Neither);
        assert_eq!(answer(0.009, 400.0), Answer::One);
        assert_eq!(answer(0.006, 10.0), Answer::One, "of ten losses four more or less are chance");
        assert_eq!(answer(0.001, 400.0), Answer::Other);
    }

    #[test]
    fn what_was_not_counted_cannot_be_read() {
        let read = Reading::Lost { one_from: 0.1, other_to: 0.05 };
        assert_eq!(read.read(&seen(1.0), &seen(1.0)).unwrap_err().to_string(), "only for UDP");
    }
}
