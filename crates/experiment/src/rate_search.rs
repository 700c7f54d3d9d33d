//! The design of a search for the highest rate whose loss is under a threshold, after RFC 2544 section 26.1: each
//! trial has one rate. The trials go down from the highest rate, then halve the distance between the highest rate that
//! passed and the lowest that failed. A longer trial confirms the result, and a second trial the failure above it.
//!
//! A trial may fail for reasons that have nothing to do with the path: a host on it stalled for a moment. So a failure
//! that more passes contradict than confirm doesn't count, and a trial whose loss was too high because of the
//! receiving socket is repeated. A receiver that drops time after time is slower than the path, and is then the limit.

/// Width of the bracket at which the search ends, as a share of its upper end.
pub const RESOLUTION_SHARE: f64 = 0.01;

/// Most trials, confirmations included: halving a bracket to a hundredth takes seven, and twice as many again if
/// confirmations fail.
const MAX_TRIALS: usize = 30;

/// This many repetitions are no accident: consecutive trials in which the sender did not hold its rate, trials that
/// the receiver spoilt, confirmations that failed.
const REPEATS_THAT_DECIDE: usize = 3;

/// Failures at about the same rate that count as a certain one.
const FAILURES_THAT_DECIDE: usize = 2;

/// The search's parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateSearch {
    /// Share of the datagrams that may be lost, 0 to 1.
    pub max_loss: f64,
    /// Lowest rate worth a trial, bits per second.
    pub lowest: f64,
}

/// The result of one trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialResult {
    /// The rate requested from the sender, bits per second; `None`: its highest.
    pub asked: Option<f64>,
    /// The sender's average rate, bits per second.
    pub sent: f64,
    /// The sender's rate while nothing held it up, bits per second.
    pub fastest: f64,
    /// The rate of arrivals after the path's initial burst, bits per second.
    pub through: f64,
    /// Share of the sent datagrams that was lost, 0 to 1.
    pub lost: f64,
    /// The part of `lost` that reached the receiver, whose socket had no room; also a share of the sent datagrams.
    pub lost_by_receiver: f64,
    /// Whether it was a longer, confirming trial.
    pub confirms: bool,
}

/// The verdict of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialVerdict {
    /// The loss was within the threshold.
    Passed,
    /// The path lost too much.
    Failed,
    /// The path alone did not lose too much, but path and receiver together did: this proves nothing about the path.
    Spoilt,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Next {
    /// Make a trial.
    Try {
        /// At this rate, bits per second; `None`: as fast as possible.
        rate: Option<f64>,
        /// As a longer, confirming trial.
        confirms: bool,
    },
    /// Stop.
    Done(SearchState),
}

/// The result of the trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SearchState {
    /// This is the highest rate, bits per second, as sent in the confirming trial; a hundredth above it too much is
    /// lost.
    Path(f64),
    /// The same, but the receiver's socket loses too much above this rate, not the path.
    Receiver(f64),
    /// The sender sends no faster than this, bits per second, and the path's loss at this rate is within the
    /// threshold.
    Sender(f64),
    /// Even at the lowest rate too much is lost: this share.
    LossEverywhere(f64),
    /// Rates that passed failed in another trial.
    Unsteady,
    /// Too many trials; the bracket so far: passed and failed, bits per second.
    Unfinished(f64, f64),
}

impl RateSearch {
    /// The next step after all trials so far, in their order.
    pub fn next(&self, done: &[TrialResult]) -> Next {
        let Some(last) = done.last() else {
            return Next::Try { rate: None, confirms: false };
        };
        let high = self.slowest_failure(done).map(|failure| failure.failed_at());
        // If a longer trial has contradicted a short one, short ones no longer count.
        let confirms = self.refuted(done, false) > 0;
        let low = self.highest_pass(done, high, confirms);
        match (low, high) {
            _ if self.refuted(done, true) >= REPEATS_THAT_DECIDE => {
                Next::Done(SearchState::Unsteady)
            }
            (low, high) if done.len() >= MAX_TRIALS => {
                let (low, high) = (low.map_or(0.0, |low| low.sent), high.unwrap_or(f64::INFINITY));
                Next::Done(SearchState::Unfinished(low, high))
            }
            (Some(low), None) => self.sender_limited(done, low),
            (Some(low), Some(_)) if self.falls_short_now(done) => self.sender_limited(done, low),
            (Some(low), Some(high)) if high - low.sent <= RESOLUTION_SHARE * high => {
                self.close_bracket(done, low, high, confirms)
            }
            (Some(low), Some(high)) => {
                Next::Try { rate: Some(self.between(done, low.sent, high)), confirms }
            }
            (None, Some(high)) => self.descend(done, high, confirms),
            // The receiver spoilt the trial.
            (None, None) => Next::Try { rate: last.asked, confirms: last.confirms },
        }
    }

    /// The bracket is narrow enough: both of its ends must be confirmed.
    fn close_bracket(
        &self,
        done: &[TrialResult],
        low: TrialResult,
        high: f64,
        confirms: bool,
    ) -> Next {
        match self.confirmed(done, low) {
            None => Next::Try { rate: Some(low.sent), confirms: true },
            Some(_) if self.failures_near(done, high) < FAILURES_THAT_DECIDE => {
                Next::Try { rate: Some(high), confirms }
            }
            Some(rate) => Next::Done(match self.slowest_failure(done).map(|t| self.says(&t)) {
                Some(TrialVerdict::Spoilt) => SearchState::Receiver(rate),
                _ => SearchState::Path(rate),
            }),
        }
    }

    /// The verdict of a trial on its own.
    pub fn says(&self, trial: &TrialResult) -> TrialVerdict {
        if trial.lost <= self.max_loss {
            TrialVerdict::Passed
        } else if trial.lost - trial.lost_by_receiver <= self.max_loss {
            TrialVerdict::Spoilt
        } else {
            TrialVerdict::Failed
        }
    }

    /// Trials that passed although a slower one failed: here loss does not increase with the rate.
    pub fn contradictions(&self, done: &[TrialResult]) -> Vec<(TrialResult, TrialResult)> {
        let Some(failed) = self.slowest_failure(done) else { return Vec::new() };
        let passed = done.iter().filter(|t| self.passes(t)).copied();
        passed
            .filter(|t| t.sent > failed.failed_at() * (1.0 + RESOLUTION_SHARE))
            .map(|t| (t, failed))
            .collect()
    }

    /// Trials that failed although more trials at the same rate or above passed: the rate was not the reason.
    pub fn accidents(&self, done: &[TrialResult]) -> usize {
        done.iter().filter(|t| self.fails(done, t) && self.is_outvoted(done, t)).count()
    }

    fn passes(&self, trial: &TrialResult) -> bool {
        self.says(trial) == TrialVerdict::Passed
    }

    /// Whether a trial counts as failed. A loss at the receiver counts if it is not an accident.
    fn fails(&self, done: &[TrialResult], trial: &TrialResult) -> bool {
        match self.says(trial) {
            TrialVerdict::Passed => false,
            TrialVerdict::Failed => true,
            TrialVerdict::Spoilt => {
                done.iter().filter(|t| self.says(t) == TrialVerdict::Spoilt).count()
                    >= REPEATS_THAT_DECIDE
            }
        }
    }

    /// Whether more trials passed at or above the rate of a failure than failed at or below it. Short trials do not
    /// contradict a longer one.
    fn is_outvoted(&self, done: &[TrialResult], failure: &TrialResult) -> bool {
        let rate = failure.failed_at();
        let votes = done.iter().filter(|t| t.confirms || !failure.confirms);
        let (mut passed, mut failed) = (0, 0);
        for vote in votes {
            if self.passes(vote) {
                passed += usize::from(vote.sent >= rate * (1.0 - RESOLUTION_SHARE / 2.0));
            } else if self.fails(done, vote) {
                failed += usize::from(vote.failed_at() <= rate * (1.0 + RESOLUTION_SHARE / 2.0));
            }
        }
        passed > failed
    }

    /// The failures that count.
    fn failures<'a>(&'a self, done: &'a [TrialResult]) -> impl Iterator<Item = TrialResult> + 'a {
        let counts = |t: &&TrialResult| self.fails(done, t) && !self.is_outvoted(done, t);
        done.iter().filter(counts).copied()
    }

    /// The trial that shows the limit: the slowest of the failures that count.
    pub fn slowest_failure(&self, done: &[TrialResult]) -> Option<TrialResult> {
        self.failures(done).min_by(|a, b| a.failed_at().total_cmp(&b.failed_at()))
    }

    /// How many trials failed at about `high`.
    fn failures_near(&self, done: &[TrialResult], high: f64) -> usize {
        self.failures(done).filter(|t| t.failed_at() <= high * (1.0 + RESOLUTION_SHARE)).count()
    }

    /// The fastest trial that passed below the slowest failure; only longer trials, if only they count.
    fn highest_pass(
        &self,
        done: &[TrialResult],
        high: Option<f64>,
        longer: bool,
    ) -> Option<TrialResult> {
        let passed = done.iter().filter(|t| self.passes(t) && (t.confirms || !longer));
        let below = passed.filter(|t| high.is_none_or(|high| t.sent < high));
        below.copied().reduce(|a, b| if b.sent > a.sent { b } else { a })
    }

    /// The rate of the confirming trial that passed at `low`, if there was one.
    fn confirmed(&self, done: &[TrialResult], low: TrialResult) -> Option<f64> {
        let same = |t: &&TrialResult| {
            t.sent >= low.sent * (1.0 - RESOLUTION_SHARE / 2.0) && t.sent <= low.sent
        };
        let mut passed = done.iter().filter(|t| t.confirms && self.passes(t));
        passed.find(same).map(|t| t.sent)
    }

    /// Whether the last trials all passed at less than the requested rate.
    fn falls_short_now(&self, done: &[TrialResult]) -> bool {
        let last = done.iter().rev().take_while(|t| self.passes(t) && t.falls_short());
        last.take(REPEATS_THAT_DECIDE).count() == REPEATS_THAT_DECIDE
    }

    /// The sender holds no rate above `low`.
    fn sender_limited(&self, done: &[TrialResult], low: TrialResult) -> Next {
        let confirmed = done.iter().filter(|t| t.confirms && self.passes(t)).map(|t| t.sent);
        let best = confirmed.clone().filter(|sent| *sent <= low.sent).reduce(f64::max);
        match best {
            Some(best)
                if best >= low.sent * (1.0 - RESOLUTION_SHARE)
                    || confirmed.count() >= REPEATS_THAT_DECIDE =>
            {
                Next::Done(SearchState::Sender(best))
            }
            _ => Next::Try { rate: low.asked, confirms: true },
        }
    }

    /// Confirmations that failed at a rate that had passed; in longer trials, if only they count.
    fn refuted(&self, done: &[TrialResult], longer: bool) -> usize {
        let had_passed = |t: &TrialResult, before: &[TrialResult]| {
            let mut passed = before.iter().filter(|b| self.passes(b) && (b.confirms || !longer));
            passed.any(|b| b.sent >= t.sent * (1.0 - RESOLUTION_SHARE / 2.0))
        };
        let failed = |t: &TrialResult| self.fails(done, t) && !self.is_outvoted(done, t);
        let trials = done.iter().enumerate().filter(|(_, t)| t.confirms && failed(t));
        trials.filter(|(number, t)| had_passed(t, &done[..*number])).count()
    }

    /// The next rate between one that passes and one that fails. A path that drops only the excess lets its own rate
    /// through: try this rate first, then whether a hundredth more fails. On any other path, the middle.
    fn between(&self, done: &[TrialResult], low: f64, high: f64) -> f64 {
        let middle = low.midpoint(high);
        let through = self.came_through(done, high);
        let last_two = done.iter().rev().take(2).filter(|t| self.fails(done, t)).count();
        let is_inside = through > low * (1.0 + RESOLUTION_SHARE)
            && through < high * (1.0 - RESOLUTION_SHARE / 2.0);
        if last_two < 2 && is_inside {
            return through;
        }
        let small_step = low * (1.0 + 0.9 * RESOLUTION_SHARE);
        if (through / low - 1.0).abs() <= RESOLUTION_SHARE {
            small_step.min(middle)
        } else {
            middle
        }
    }

    /// The rate that came through in the slowest failed trial, bits per second.
    fn came_through(&self, done: &[TrialResult], high: f64) -> f64 {
        self.slowest_failure(done).map_or(high, |t| t.through)
    }

    /// Nothing has passed below `high`: go to the rate that came through, or below the slowest failure by steps that
    /// double.
    fn descend(&self, done: &[TrialResult], high: f64, confirms: bool) -> Next {
        if high <= self.lowest * (1.0 + RESOLUTION_SHARE) {
            return Next::Done(SearchState::LossEverywhere(
                self.slowest_failure(done).map_or(0.0, |t| t.lost),
            ));
        }
        let failed = done.iter().rev().filter(|t| self.passes(t) || self.fails(done, t));
        let failed = failed.take_while(|t| !self.passes(t) && (confirms || !t.confirms)).count();
        let step =
            (RESOLUTION_SHARE * 2_f64.powi(failed.saturating_sub(1).min(10) as i32)).min(0.9);
        let rate = self.came_through(done, high).min(high * (1.0 - step));
        Next::Try { rate: Some(rate.max(self.lowest)), confirms }
    }
}

impl TrialResult {
    /// Whether the sender did not hold the requested rate.
    pub fn falls_short(&self) -> bool {
        self.asked.is_some_and(|asked| self.sent < asked * (1.0 - RESOLUTION_SHARE))
    }

    /// The rate at which a trial failed: a sender that stalled sent at its own rate in between, and this rate was too
    /// high.
    fn failed_at(&self) -> f64 {
        self.asked.unwrap_or(self.fastest).max(self.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SEARCH: RateSearch = RateSearch { max_loss: 0.001, lowest: 1e5 };

    /// Searches with trials from `make`, which gets the requested rate, whether the trial confirms, and the number of
    /// earlier trials.
    fn search_by(
        mut make: impl FnMut(Option<f64>, bool, usize) -> TrialResult,
    ) -> (SearchState, Vec<TrialResult>) {
        let mut done = Vec::new();
        loop {
            match SEARCH.next(&done) {
                Next::Done(found) => return (found, done),
                Next::Try { rate, confirms } => {
                    done.push(make(rate, confirms, done.len()));
                    assert!(done.len() <= MAX_TRIALS + 1, "{done:?}");
                }
            }
        }
    }

    /// Searches on a path that loses the share `lost`, with a sender that sends up to `most`.
    fn search(
        most: f64,
        mut lost: impl FnMut(f64, bool) -> f64,
    ) -> (SearchState, Vec<TrialResult>) {
        search_by(|rate, confirms, _| {
            let sent = rate.unwrap_or(f64::MAX).min(most);
            TrialResult { confirms, ..tried(rate, sent, lost(sent, confirms)) }
        })
    }

    fn tried(asked: Option<f64>, sent: f64, lost: f64) -> TrialResult {
        let through = sent * (1.0 - lost);
        TrialResult {
            asked,
            sent,
            fastest: sent,
            through,
            lost,
            lost_by_receiver: 0.0,
            confirms: false,
        }
    }

    /// A path that forwards this rate and drops the rest.
    fn policed(rate: f64) -> impl Fn(f64, bool) -> f64 {
        move |sent, _| (1.0 - rate / sent).max(0.0)
    }

    fn found_on_path(most: f64, lost: impl FnMut(f64, bool) -> f64) -> (f64, usize) {
        match search(most, lost) {
            (SearchState::Path(rate), done) => (rate, done.len()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_policer_is_found_in_a_few_trials() {
        let (rate, trials) = found_on_path(1e9, policed(50e6));
        assert!((rate / 50e6 - 1.0).abs() < 0.01, "{rate}");
        assert!(trials <= 7, "{trials}");
    }

    #[test]
    fn a_path_that_collapses_under_load_is_found_as_well() {
        let collapses = |sent: f64, _| if sent > 3e8 { 0.95 } else { 0.0 };
        let (rate, trials) = found_on_path(1e9, collapses);
        assert!((2.96e8..=3e8).contains(&rate), "{rate}");
        assert!(trials <= 16, "{trials}");
    }

    #[test]
    fn a_sender_that_is_slower_than_the_path_is_the_limit() {
        let (found, done) = search(1e8, policed(1e9));
        assert_eq!(found, SearchState::Sender(1e8));
        assert_eq!(done.len(), 2);
        assert!(done[1].confirms);
    }

    #[test]
    fn a_sender_that_paces_worse_than_it_floods_is_the_limit_too() {
        let (found, _) = search_by(|rate, confirms, _| match rate {
            None => tried(None, 1e9, 0.2),
            Some(asked) => TrialResult { confirms, ..tried(rate, asked.min(4e8), 0.0) },
        });
        assert_eq!(found, SearchState::Sender(4e8));
    }

    #[test]
    fn loss_that_does_not_depend_on_the_rate_is_said_to_be_everywhere() {
        let (found, done) = search(1e9, |_, _| 0.02);
        let SearchState::LossEverywhere(lost) = found else { panic!("{found:?}") };
        assert!((lost - 0.02).abs() < 1e-9);
        assert_eq!(done.last().unwrap().sent, SEARCH.lowest);
        assert!(done.len() < MAX_TRIALS, "{}", done.len());
    }

    #[test]
    fn what_passes_only_in_short_trials_is_not_the_result() {
        // A bucket that short trials do not empty.
        let (rate, _) = found_on_path(1e9, |sent, long| {
            let rate = if long { 4.9e8 } else { 5e8 };
            (1.0 - rate / sent).max(0.0)
        });
        assert!((rate / 4.9e8 - 1.0).abs() < 0.01, "{rate}");
        let (found, _) = search(1e9, |_, long| if long { 0.5 } else { 0.0 });
        assert!(
            matches!(found, SearchState::Unsteady | SearchState::LossEverywhere(_)),
            "{found:?}"
        );
    }

    #[test]
    fn a_sender_that_stalls_now_and_then_does_not_hide_the_path() {
        let (found, done) = search_by(|rate, confirms, before| {
            let held = if before % 3 == 1 { 0.8 } else { 1.0 };
            let asked = rate.unwrap_or(1e9);
            let lost = (1.0 - 5e7 / asked).max(0.0);
            TrialResult { confirms, ..tried(rate, asked * held, lost) }
        });
        let SearchState::Path(rate) = found else { panic!("{found:?} {done:?}") };
        assert!((rate / 5e7 - 1.0).abs() < 0.01, "{rate}");
    }

    #[test]
    fn a_sender_that_never_holds_its_rate_comes_to_an_end() {
        let (found, done) = search_by(|rate, confirms, before| {
            let asked = rate.unwrap_or(1e9);
            let sent = asked * (0.9 - 0.01 * before as f64);
            TrialResult { confirms, ..tried(rate, sent, f64::max(1.0 - 5e7 / asked, 0.0)) }
        });
        assert!(matches!(found, SearchState::Sender(_) | SearchState::Unfinished(..)), "{found:?}");
        assert!(done.len() <= MAX_TRIALS);
    }

    #[test]
    fn a_slower_trial_that_lost_more_is_a_contradiction() {
        let trial = |sent, lost| tried(Some(sent), sent, lost);
        let done = [trial(9e8, 0.0), trial(5e8, 0.01), trial(4e8, 0.0)];
        assert_eq!(SEARCH.contradictions(&done), [(done[0], done[1])]);
        assert_eq!(SEARCH.contradictions(&done[1..]), []);
    }

    #[test]
    fn a_flood_that_was_held_up_does_not_hide_the_path() {
        // On average less than the policer's rate, and too much of it lost.
        let (found, _) = search_by(|rate, confirms, _| match rate {
            None => TrialResult { fastest: 2e8, through: 3e7, ..tried(None, 4e7, 0.1) },
            Some(rate) => {
                TrialResult { confirms, ..tried(Some(rate), rate, (1.0 - 5e7 / rate).max(0.0)) }
            }
        });
        let SearchState::Path(rate) = found else { panic!("{found:?}") };
        assert!((rate / 5e7 - 1.0).abs() < 0.01, "{rate}");
    }

    #[test]
    fn one_accident_does_not_lower_the_result() {
        let policed = policed(5e7);
        for accident in 1..9 {
            let (found, done) = search_by(|rate, confirms, before| {
                let sent = rate.unwrap_or(1e9);
                let lost = policed(sent, confirms).max(if before == accident { 0.03 } else { 0.0 });
                TrialResult { confirms, ..tried(rate, sent, lost) }
            });
            let SearchState::Path(rate) = found else { panic!("{accident}: {found:?} {done:?}") };
            assert!((rate / 5e7 - 1.0).abs() < 0.015, "{accident}: {rate} {done:?}");
        }
    }

    #[test]
    fn what_the_receiver_spoils_is_tried_again() {
        let policed = policed(5e7);
        let (found, done) = search_by(|rate, confirms, before| {
            let sent = rate.unwrap_or(1e9);
            let by_receiver = if before == 0 || before == 2 { 0.04 } else { 0.0 };
            let lost = policed(sent, confirms) + by_receiver;
            TrialResult { confirms, lost_by_receiver: by_receiver, ..tried(rate, sent, lost) }
        });
        assert_eq!(SEARCH.says(&done[2]), TrialVerdict::Spoilt);
        assert_eq!(done[2].asked, done[3].asked);
        let SearchState::Path(rate) = found else { panic!("{found:?} {done:?}") };
        assert!((rate / 5e7 - 1.0).abs() < 0.01, "{rate}");
    }

    #[test]
    fn a_receiver_that_is_slower_than_the_path_is_the_limit() {
        let (found, done) = search_by(|rate, confirms, _| {
            let sent = rate.unwrap_or(1e9);
            let lost_by_receiver = (1.0 - 3e8 / sent).max(0.0);
            TrialResult { confirms, lost_by_receiver, ..tried(rate, sent, lost_by_receiver) }
        });
        let SearchState::Receiver(rate) = found else { panic!("{found:?} {done:?}") };
        assert!((rate / 3e8 - 1.0).abs() < 0.01, "{rate}");
    }

    #[test]
    fn what_a_bucket_passes_in_short_trials_does_not_outvote_a_longer_one() {
        // A bucket of a tenth of a second: 110 % passes for one second, 103 % for three.
        let (found, done) = search(1e9, |sent, long| {
            let rate = if long { 5.17e7 } else { 5.5e7 };
            (1.0 - rate / sent).max(0.0)
        });
        let SearchState::Path(rate) = found else { panic!("{found:?} {done:?}") };
        assert!((5.1e7..=5.18e7).contains(&rate), "{rate} {done:?}");
    }

    proptest! {
        #[test]
        fn every_path_comes_to_an_end(most in 1e6f64..1e10, losses in proptest::collection::vec(0.0f64..0.004, 40)) {
            let mut at = losses.iter().cycle();
            let (_, done) = search(most, |_, _| *at.next().unwrap());
            prop_assert!(done.len() <= MAX_TRIALS + 1);
        }

        #[test]
        fn the_rate_of_a_policer_is_found_within_a_hundredth(most in 1e7f64..1e10, share in 0.001f64..0.95) {
            let rate = most * share;
            prop_assume!(rate > 2e5);
            let (found, _) = found_on_path(most, policed(rate));
            prop_assert!(found <= rate * 1.0011 && found >= rate * 0.985, "{found} of {rate}");
        }
    }
}
