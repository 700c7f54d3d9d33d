//! Flows of which nothing comes back as long as they run, because a queue keeps it. No round trip of theirs shows that queue:
//! only the exchanges of the clocks do, and on which way it is.

use goodput_model::{EndName, Exchange, Missing, TcpInfo};

use super::{Halves, View};
use crate::bounded::Bounded;

/// How far the clocks of two hosts may drift apart, as a share of the time. Crystals are off by 50 millionths at most.
const MAX_DRIFT_SHARE: f64 = 100e-6;

/// What exchanges show that were sent while the flows ran, or before, and came back only after their last sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unanswered {
    /// When the first of them was sent, seconds by the sender's samples. What was sent later waited behind it.
    pub since_s: f64,
    /// How much longer they took on each way than the fastest exchange. If that one waited, too, the queue is longer.
    pub halves: Halves,
}

impl View<'_> {
    /// What kept all acknowledgements of the flows.
    ///
    /// # Errors
    /// If one came back, or no exchange of the clocks was kept as long.
    pub fn unanswered(&self) -> Result<Unanswered, Missing> {
        if !self.sender.tcp_series()?.iter().all(|flow| is_unanswered(flow)) {
            return Err(Missing::because(
                "the flows got acknowledgements, or had nothing in flight",
            ));
        }
        let clocks = &self.evidence.clocks;
        let near = self.evidence.near.get()?;
        let clock = near.clock.as_ref().ok_or_else(|| {
            Missing::because("the near end does not report when its samples began")
        })?;
        let later_s = match self.sender.name {
            EndName::Near => 0.0,
            EndName::Far => clocks.far_began_later_s(near, self.evidence.far.get()?)?,
        };
        let at_s = |ns: u64| ns.wrapping_sub(clock.began_ns) as i64 as f64 / 1e9 - later_s;
        let last_s = self.sender.end()?.samples.last().map_or(0.0, |sample| sample.at_s);
        let is_kept = |e: &&Exchange| at_s(e.sent_ns) < last_s && at_s(e.back_ns) > last_s;
        let kept: Vec<&Exchange> = clocks.exchanges.iter().filter(is_kept).collect();
        let since_s = kept.iter().map(|e| at_s(e.sent_ns)).reduce(f64::min);
        let since_s = since_s.ok_or_else(|| {
            Missing::because("no exchange of the clocks was kept as long as the flows ran")
        })?;
        Ok(Unanswered { since_s, halves: self.beyond_the_fastest(&kept)? })
    }

    fn beyond_the_fastest(&self, kept: &[&Exchange]) -> Result<Halves, Missing> {
        let all = &self.evidence.clocks.exchanges;
        let there_ns = |e: &Exchange| e.received_ns.wrapping_sub(e.sent_ns) as i64;
        let back_ns = |e: &Exchange| e.back_ns.wrapping_sub(e.answered_ns) as i64;
        let least_there_ns = all.iter().map(there_ns).min().unwrap_or(0);
        let least_back_ns = all.iter().map(back_ns).min().unwrap_or(0);
        let beyond_s = |ns: i64, least_ns: i64| ns.wrapping_sub(least_ns) as f64 / 1e9;
        let waits = kept
            .iter()
            .map(|e| (beyond_s(there_ns(e), least_there_ns), beyond_s(back_ns(e), least_back_ns)));
        let (out, home): (Vec<f64>, Vec<f64>) = waits.unzip();
        let (there, back) =
            if self.sender.name == EndName::Near { (out, home) } else { (home, out) };
        let first_ns = all.iter().map(|e| e.sent_ns).min().unwrap_or(0);
        let last_ns = all.iter().map(|e| e.back_ns).max().unwrap_or(0);
        let drift_s = MAX_DRIFT_SHARE * last_ns.saturating_sub(first_ns) as f64 / 1e9;
        let more = there.iter().zip(&back).map(|(there, back)| back - there).collect();
        let median = |waits, by| {
            Bounded::median(waits, "an exchange of the clocks").map(|median| median.wider(by))
        };
        Ok(Halves {
            more_back_s: median(more, 2.0 * drift_s)?,
            there_s: median(there, drift_s)?,
            back_s: median(back, drift_s)?,
        })
    }
}

/// Whether something of a flow is in flight, and nothing of it was delivered; of a kernel that does not report that, not.
fn is_unanswered(flow: &[&TcpInfo]) -> bool {
    flow.first().zip(flow.last()).is_some_and(|(first, last)| {
        last.unacked_segments.is_some_and(|segments| segments > 0)
            && last.delivered_segments.is_some()
            && last.delivered_segments == first.delivered_segments
    })
}

#[cfg(test)]
mod tests {
    use goodput_model::EndName;

    use super::*;
    use crate::testing::Case;

    fn unanswered(case: Case) -> Result<Unanswered, Missing> {
        View::new(&case.evidence()).unanswered()
    }

    /// Nothing comes back for 4 s, while exchanges wait this long on each way.
    fn silent(there_s: f64, back_s: f64) -> Case {
        let case = Case::path_rate().waits(there_s, back_s);
        case.tcp(|tcp, _| (tcp.delivered_segments, tcp.unacked_segments) = (Some(2), Some(11)))
    }

    #[test]
    fn exchanges_that_are_kept_as_long_say_on_which_way() {
        for case in [silent(0.0, 9.0), silent(0.0, 9.0).without_far()] {
            let found = unanswered(case).unwrap();
            assert!((found.halves.back_s.value - 9.0).abs() < 1e-6, "{found:?}");
            assert!(found.halves.there_s.value.abs() < 1e-6 && found.since_s == 0.0, "{found:?}");
        }
        let there = unanswered(silent(9.0, 0.0)).unwrap();
        assert_eq!(there.halves.more_back_s.exceeds(0.0, "it"), Ok(false));
    }

    #[test]
    fn what_was_sent_before_the_first_of_them_is_not_explained() {
        let late = unanswered(silent(0.0, 9.0).began_late(EndName::Near, 1.0)).unwrap();
        assert!((late.since_s + 1.0).abs() < 1e-6, "{late:?}");
        // Of exchanges that take 2 s, those of the second half come back after the flows.
        let found = unanswered(silent(0.0, 2.0)).unwrap();
        assert!((found.since_s - 2.0).abs() < 0.06, "{found:?}");
    }

    #[test]
    fn nothing_is_said_of_flows_that_got_answers_or_of_quick_exchanges() {
        assert!(unanswered(Case::path_rate().waits(0.0, 9.0)).is_err());
        assert!(unanswered(silent(0.0, 0.0)).is_err());
        let idle = silent(0.0, 9.0).tcp(|tcp, _| tcp.unacked_segments = Some(0));
        assert!(unanswered(idle).is_err());
    }
}
