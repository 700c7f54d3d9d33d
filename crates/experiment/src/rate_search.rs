//! The design of a search for the highest rate whose loss is under a threshold, after RFC 2544 section
//! 26.1: trials, each at one rate, from the highest downwards, then by halves between the highest that
//! passed and the lowest that failed; the result is confirmed by a longer trial.

/// Width of the bracket at which the search ends, as a share of its upper end.
pub const RESOLUTION: f64 = 0.01;

/// Trials at most, confirmations included: halving a bracket to a hundredth takes seven, and twice that
/// again where confirmations fail.
const MOST_TRIALS: usize = 30;

/// Trials in which the sender did not hold its rate that show that it cannot: one or two may be stalls.
const SHORT: usize = 3;

/// Confirmations that may fail before the path counts as unsteady.
const MOST_REFUTED: usize = 3;

/// What is searched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateSearch {
    /// Share of the datagrams that may be lost, 0 to 1.
    pub max_loss: f64,
    /// Lowest rate worth a trial, bits per second.
    pub lowest: f64,
}

/// One trial that was made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tried {
    /// The rate that the sender was to hold, bits per second; `None`: the highest that it may or can.
    pub asked: Option<f64>,
    /// The rate that it did send, bits per second.
    pub sent: f64,
    /// Share of what was sent that was lost, 0 to 1.
    pub lost: f64,
    /// Whether it was one of the longer ones that confirm.
    pub confirms: bool,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Next {
    /// Make a trial.
    Try {
        /// At this rate, bits per second; `None`: as fast as it may.
        rate: Option<f64>,
        /// As a longer one that confirms.
        confirms: bool,
    },
    /// That is all.
    Done(Found),
}

/// What the trials have shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Found {
    /// This is the highest rate, bits per second, as sent in the confirming trial; a hundredth above it
    /// too much is lost.
    Path(f64),
    /// The sender sends no faster than this, bits per second, and the path loses no more than allowed
    /// of it.
    Sender(f64),
    /// Even at the lowest rate too much is lost: this share.
    LossEverywhere(f64),
    /// Rates that passed failed when they were tried again.
    Unsteady,
    /// The trials were too many; the bracket so far: passed and failed, bits per second.
    Unfinished(f64, f64),
}

impl RateSearch {
    /// What follows from all trials so far, in their order.
    pub fn next(&self, done: &[Tried]) -> Next {
        if done.is_empty() {
            return Next::Try { rate: None, confirms: false };
        }
        let high = done.iter().filter(|t| !self.passes(t)).map(Tried::failed_at).reduce(f64::min);
        let low = self.highest_pass(done, high);
        let refuted = self.refuted(done);
        // Where a longer trial has shown what a short one had not, short ones say nothing.
        let confirms = refuted > 0;
        match (low, high) {
            _ if refuted >= MOST_REFUTED => Next::Done(Found::Unsteady),
            (low, high) if done.len() >= MOST_TRIALS => {
                let (low, high) = (low.map_or(0.0, |low| low.sent), high.unwrap_or(f64::INFINITY));
                Next::Done(Found::Unfinished(low, high))
            }
            (Some(low), None) => self.sender_limited(done, low),
            (Some(low), Some(high)) if high - low.sent <= RESOLUTION * high => {
                match self.confirmed(done, low) {
                    Some(rate) => Next::Done(Found::Path(rate)),
                    None => Next::Try { rate: Some(low.sent), confirms: true },
                }
            }
            (Some(low), Some(_)) if self.short_above(done, low) >= SHORT => {
                self.sender_limited(done, low)
            }
            (Some(low), Some(high)) => {
                Next::Try { rate: Some(self.between(done, low.sent, high)), confirms }
            }
            (None, Some(high)) => self.descend(done, high, confirms),
            // Every trial passes or fails.
            (None, None) => Next::Done(Found::Unsteady),
        }
    }

    /// Trials that passed although a slower one failed: loss does not grow with the rate here.
    pub fn contradictions(&self, done: &[Tried]) -> Vec<(Tried, Tried)> {
        let failed = done.iter().filter(|t| !self.passes(t));
        let slower = |a: Tried, b: Tried| if a.failed_at() <= b.failed_at() { a } else { b };
        let slowest = failed.copied().reduce(slower);
        let passed = done.iter().filter(|t| self.passes(t)).copied();
        let Some(failed) = slowest else { return Vec::new() };
        passed
            .filter(|t| t.sent > failed.failed_at() * (1.0 + RESOLUTION))
            .map(|t| (t, failed))
            .collect()
    }

    /// Whether a trial lost no more than allowed.
    pub fn passes(&self, trial: &Tried) -> bool {
        trial.lost <= self.max_loss
    }

    /// The fastest trial that passed below the slowest that failed.
    fn highest_pass(&self, done: &[Tried], high: Option<f64>) -> Option<Tried> {
        let below = done.iter().filter(|t| self.passes(t) && high.is_none_or(|high| t.sent < high));
        below.copied().reduce(|a, b| if b.sent > a.sent { b } else { a })
    }

    /// The rate of the confirming trial that passed at `low`, where there was one.
    fn confirmed(&self, done: &[Tried], low: Tried) -> Option<f64> {
        let same = |t: &&Tried| t.sent >= low.sent * (1.0 - RESOLUTION / 2.0);
        let mut passed = done.iter().filter(|t| t.confirms && self.passes(t));
        passed.find(same).map(|t| t.sent)
    }

    /// Trials that passed, but at less than was asked, where a rate above `low` was.
    fn short_above(&self, done: &[Tried], low: Tried) -> usize {
        let above = |t: &Tried| t.asked.is_some_and(|asked| asked * (1.0 - RESOLUTION) > low.sent);
        done.iter().filter(|t| self.passes(t) && t.falls_short() && above(t)).count()
    }

    /// The sender holds no rate above `low`.
    fn sender_limited(&self, done: &[Tried], low: Tried) -> Next {
        let confirmed = done.iter().filter(|t| t.confirms && self.passes(t)).map(|t| t.sent);
        let best = confirmed.clone().reduce(f64::max).unwrap_or(0.0);
        if best >= low.sent * (1.0 - RESOLUTION) || confirmed.count() >= SHORT {
            Next::Done(Found::Sender(best))
        } else {
            Next::Try { rate: low.asked, confirms: true }
        }
    }

    /// Confirmations that failed at a rate that had passed.
    fn refuted(&self, done: &[Tried]) -> usize {
        let had_passed = |t: &Tried, before: &[Tried]| {
            before.iter().any(|b| self.passes(b) && b.sent >= t.sent * (1.0 - RESOLUTION / 2.0))
        };
        let trials = done.iter().enumerate().filter(|(_, t)| t.confirms && !self.passes(t));
        trials.filter(|(number, t)| had_passed(t, &done[..*number])).count()
    }

    /// The next rate between one that passes and one that fails. A path that drops no more than what is
    /// too much lets its own rate through: that rate first, then whether a hundredth more fails. Where
    /// the path is not like that, the middle.
    fn between(&self, done: &[Tried], low: f64, high: f64) -> f64 {
        let middle = low.midpoint(high);
        let through = self.came_through(done, high);
        let last_two = done.iter().rev().take(2).filter(|t| !self.passes(t)).count();
        if last_two < 2 && through > low * (1.0 + RESOLUTION) {
            return through;
        }
        let small_step = low * (1.0 + 0.9 * RESOLUTION);
        if (through / low - 1.0).abs() <= RESOLUTION { small_step.min(middle) } else { middle }
    }

    /// What came through of the slowest trial that failed, bits per second.
    fn came_through(&self, done: &[Tried], high: f64) -> f64 {
        let slowest = done.iter().rfind(|t| !self.passes(t) && t.failed_at() <= high);
        high * (1.0 - slowest.map_or(0.0, |t| t.lost))
    }

    /// Nothing has passed below `high`: to the rate that came through, or below the slowest that failed,
    /// by steps that double.
    fn descend(&self, done: &[Tried], high: f64, confirms: bool) -> Next {
        let through = self.came_through(done, high);
        if high <= self.lowest * (1.0 + RESOLUTION) {
            return Next::Done(Found::LossEverywhere(1.0 - through / high));
        }
        let failed = done.iter().rev().take_while(|t| !self.passes(t));
        let failed = failed.take_while(|t| confirms || !t.confirms).count();
        let step = (RESOLUTION * 2_f64.powi(failed.saturating_sub(1).min(10) as i32)).min(0.9);
        let rate = through.min(high * (1.0 - step));
        Next::Try { rate: Some(rate.max(self.lowest)), confirms }
    }
}

impl Tried {
    /// Whether the sender did not hold the rate that was asked of it.
    pub fn falls_short(&self) -> bool {
        self.asked.is_some_and(|asked| self.sent < asked * (1.0 - RESOLUTION))
    }

    /// The rate at which a trial failed: a sender that stalled sent at its rate in between, and that is
    /// what was too much.
    fn failed_at(&self) -> f64 {
        self.asked.unwrap_or(self.sent).max(self.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SEARCH: RateSearch = RateSearch { max_loss: 0.001, lowest: 1e5 };

    /// Searches on a path that answers by `lost`, with a sender that sends up to `most`.
    fn search(most: f64, mut lost: impl FnMut(f64, bool) -> f64) -> (Found, Vec<Tried>) {
        let mut done = Vec::new();
        loop {
            match SEARCH.next(&done) {
                Next::Done(found) => return (found, done),
                Next::Try { rate, confirms } => {
                    let sent = rate.unwrap_or(f64::MAX).min(most);
                    done.push(Tried { asked: rate, sent, lost: lost(sent, confirms), confirms });
                    assert!(done.len() <= MOST_TRIALS + 1, "{done:?}");
                }
            }
        }
    }

    /// A path that lets so much through and drops the rest.
    fn policed(rate: f64) -> impl Fn(f64, bool) -> f64 {
        move |sent, _| (1.0 - rate / sent).max(0.0)
    }

    fn found_on_path(most: f64, lost: impl FnMut(f64, bool) -> f64) -> (f64, usize) {
        match search(most, lost) {
            (Found::Path(rate), done) => (rate, done.len()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_policer_is_found_in_a_few_trials() {
        let (rate, trials) = found_on_path(1e9, policed(50e6));
        assert!((rate / 50e6 - 1.0).abs() < 0.01, "{rate}");
        assert!(trials <= 6, "{trials}");
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
        assert_eq!(found, Found::Sender(1e8));
        assert_eq!(done.len(), 2);
        assert!(done[1].confirms);
    }

    #[test]
    fn a_sender_that_paces_worse_than_it_floods_is_the_limit_too() {
        let mut done = vec![Tried { asked: None, sent: 1e9, lost: 0.2, confirms: false }];
        let found = loop {
            match SEARCH.next(&done) {
                Next::Done(found) => break found,
                Next::Try { rate, confirms } => {
                    let (asked, sent) = (rate, rate.unwrap().min(4e8));
                    done.push(Tried { asked, sent, lost: 0.0, confirms });
                }
            }
        };
        assert_eq!(found, Found::Sender(4e8));
    }

    #[test]
    fn loss_that_does_not_depend_on_the_rate_is_said_to_be_everywhere() {
        let (found, done) = search(1e9, |_, _| 0.02);
        let Found::LossEverywhere(lost) = found else { panic!("{found:?}") };
        assert!((lost - 0.02).abs() < 1e-9);
        assert_eq!(done.last().unwrap().sent, SEARCH.lowest);
        assert!(done.len() < MOST_TRIALS, "{}", done.len());
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
        assert!(matches!(found, Found::Unsteady | Found::LossEverywhere(_)), "{found:?}");
    }

    #[test]
    fn a_sender_that_stalls_now_and_then_does_not_hide_the_path() {
        let mut number = 0;
        let mut done = Vec::new();
        let found = loop {
            match SEARCH.next(&done) {
                Next::Done(found) => break found,
                Next::Try { rate, confirms } => {
                    number += 1;
                    let held = if number % 3 == 2 { 0.8 } else { 1.0 };
                    let asked = rate.unwrap_or(1e9);
                    let lost = (1.0 - 5e7 / asked).max(0.0);
                    done.push(Tried { asked: rate, sent: asked * held, lost, confirms });
                }
            }
        };
        let Found::Path(rate) = found else { panic!("{found:?} {done:?}") };
        assert!((rate / 5e7 - 1.0).abs() < 0.01, "{rate}");
    }

    #[test]
    fn a_sender_that_never_holds_its_rate_comes_to_an_end() {
        let mut done = Vec::new();
        let mut number = 0.0;
        let found = loop {
            match SEARCH.next(&done) {
                Next::Done(found) => break found,
                Next::Try { rate, confirms } => {
                    number += 1.0;
                    let asked = rate.unwrap_or(1e9);
                    let (sent, lost) =
                        (asked * (0.9 - 0.01 * number), f64::max(1.0 - 5e7 / asked, 0.0));
                    done.push(Tried { asked: rate, sent, lost, confirms });
                }
            }
        };
        assert!(matches!(found, Found::Sender(_) | Found::Unfinished(..)), "{found:?}");
        assert!(done.len() <= MOST_TRIALS);
    }

    #[test]
    fn a_slower_trial_that_lost_more_is_a_contradiction() {
        let trial = |sent, lost| Tried { asked: Some(sent), sent, lost, confirms: false };
        let done = [trial(9e8, 0.0), trial(5e8, 0.01), trial(4e8, 0.0)];
        assert_eq!(SEARCH.contradictions(&done), [(done[0], done[1])]);
        assert_eq!(SEARCH.contradictions(&done[1..]), []);
    }

    proptest! {
        #[test]
        fn every_path_comes_to_an_end(most in 1e6f64..1e10, losses in proptest::collection::vec(0.0f64..0.004, 40)) {
            let mut at = losses.iter().cycle();
            let (_, done) = search(most, |_, _| *at.next().unwrap());
            prop_assert!(done.len() <= MOST_TRIALS + 1);
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
