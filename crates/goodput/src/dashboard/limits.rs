//! Who limited when, second by second, while the measurement runs. The drawing thread judges, so that a run never waits
//! for it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use goodput_diagnose::account_of;
use goodput_model::{
    Account, AccountPart, BitRate, Clocks, End, EndName, Evidence, Host, Known, Limiter, Measured,
    Missing, Place, Plan, Sample,
};

use super::series::SHOWN_S;

/// Length of a step, seconds. Shorter than that, a round trip of a long path says nothing.
const STEP_S: f64 = 1.0;

/// How far back the account looks to know what is usual, seconds.
const LOOKS_BACK_S: f64 = 4.0;

/// What each end has counted in the last seconds, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Recent(BTreeMap<EndName, VecDeque<Arc<Sample>>>);

impl Recent {
    /// Takes what `end` has counted.
    pub fn enter(&mut self, end: EndName, sample: &Sample) {
        let samples = self.0.entry(end).or_default();
        // Times before a clock was set back say nothing about those after it.
        if samples.back().is_some_and(|last| sample.at_s < last.at_s) {
            samples.clear();
        }
        while samples.front().is_some_and(|first| first.at_s < sample.at_s - LOOKS_BACK_S) {
            samples.pop_front();
        }
        samples.push_back(Arc::new(sample.clone()));
    }

    /// The time from the oldest to the newest sample of `end`, seconds.
    fn span_s(&self, end: EndName) -> Option<(f64, f64)> {
        let samples = self.0.get(&end)?;
        Some((samples.front()?.at_s, samples.back()?.at_s))
    }

    /// Payload per second since `from_s`: what arrived, or else what `sender` sent.
    fn goodput(&self, sender: EndName, from_s: f64) -> Option<BitRate> {
        let arrived = self.0.get(&sender.other());
        let samples = arrived.or_else(|| self.0.get(&sender))?;
        let first = samples.iter().find(|sample| sample.at_s >= from_s)?;
        let last = samples.back()?;
        let bytes = |sample: &Sample| match arrived {
            Some(_) => sample.received_bytes,
            None => sample.sent_bytes,
        };
        BitRate::over(bytes(last).saturating_sub(bytes(first)), last.at_s - first.at_s)
    }
}

/// The account of each direction of one run.
#[derive(Debug, Clone)]
pub struct RunLimits {
    run: u32,
    /// In the order of the plan's senders.
    pub directions: Vec<Limits>,
}

impl RunLimits {
    /// Of the run with this number.
    pub fn new(plan: &Plan, run: u32) -> Self {
        let senders = plan.direction.senders().iter();
        let directions = senders.map(|sender| Limits::new(plan.clone(), *sender)).collect();
        Self { run, directions }
    }

    /// Accounts for what `run` did since the last call, once a second.
    pub fn judge(&mut self, run: u32, plan: &Plan, recent: &Recent) {
        if self.run != run {
            *self = Self::new(plan, run);
        }
        self.directions.iter_mut().for_each(|limits| limits.judge(recent));
    }
}

/// What limited one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitedStep {
    /// Its beginning, seconds by the sender's samples.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// What held most of it, and where. Absent if nothing is known.
    pub held_by: Option<(Limiter, Place)>,
}

/// The account of one direction so far.
#[derive(Debug, Clone)]
pub struct Limits {
    plan: Plan,
    sender: EndName,
    judged_until_s: Option<f64>,
    /// The steps of the last minute.
    pub steps: VecDeque<LimitedStep>,
    held: Vec<(Limiter, Place, f64)>,
    flow_seconds: f64,
    /// Why the last step could not be accounted for.
    pub unknown: Option<Missing>,
}

impl Limits {
    /// Of the direction that `sender` sends in.
    pub(super) fn new(plan: Plan, sender: EndName) -> Self {
        Self {
            plan,
            sender,
            judged_until_s: None,
            steps: VecDeque::new(),
            held: Vec::new(),
            flow_seconds: 0.0,
            unknown: None,
        }
    }

    /// Accounts for the time since the last step, if a step is over.
    fn judge(&mut self, recent: &Recent) {
        let Some((oldest_s, to_s)) = recent.span_s(self.sender) else { return };
        let judged_until_s = self.judged_until_s.filter(|until_s| *until_s <= to_s);
        let from_s = judged_until_s.map_or(oldest_s, |until_s| until_s.max(oldest_s));
        if to_s >= from_s + STEP_S {
            let account = self.evidence(recent, from_s, to_s).and_then(|seen| account_of(&seen));
            self.step([from_s, to_s], account);
            self.judged_until_s = Some(to_s);
        }
    }

    /// The step in which a time lies, if it was looked at.
    pub fn at(&self, at_s: f64) -> Option<&LimitedStep> {
        self.steps.iter().find(|step| (step.from_s..step.to_s).contains(&at_s))
    }

    /// The shares of the time that each limiter held, 0 to 1, the largest first.
    pub fn shares(&self) -> Vec<(Limiter, Place, f64)> {
        let held = self.held.iter();
        let mut shares: Vec<_> =
            held.map(|(limiter, place, s)| (*limiter, *place, s / self.flow_seconds)).collect();
        shares.sort_by(|a, b| b.2.total_cmp(&a.2));
        shares
    }

    fn step(&mut self, [from_s, to_s]: [f64; 2], account: Result<Account, Missing>) {
        let held_by = match account {
            Ok(account) => {
                self.unknown = None;
                self.flow_seconds += account.flow_seconds;
                account.parts.iter().for_each(|part| self.add(part));
                account.parts.first().map(|part| (part.limiter, part.end))
            }
            Err(why) => {
                self.unknown = Some(why);
                None
            }
        };
        let is_shown = |step: &LimitedStep| (to_s - SHOWN_S..to_s).contains(&step.to_s);
        while self.steps.front().is_some_and(|first| !is_shown(first)) {
            self.steps.pop_front();
        }
        self.steps.push_back(LimitedStep { from_s, to_s, held_by });
    }

    fn add(&mut self, part: &AccountPart) {
        let same = |held: &&mut (Limiter, Place, f64)| (held.0, held.1) == (part.limiter, part.end);
        match self.held.iter_mut().find(same) {
            Some(held) => held.2 += part.seconds,
            None => self.held.push((part.limiter, part.end, part.seconds)),
        }
    }

    fn evidence(&self, recent: &Recent, from_s: f64, to_s: f64) -> Result<Evidence, Missing> {
        let goodput = recent.goodput(self.sender, from_s);
        let goodput = goodput.ok_or(Missing::because("too few samples for a rate"))?;
        let end = |name| match recent.0.get(&name) {
            Some(samples) => Known::Value(Arc::new(End {
                samples: samples.iter().map(|sample| Sample::clone(sample)).collect(),
                ..End::unobserved(Host::foreign("not asked"))
            })),
            None => Known::missing("it has not reported yet"),
        };
        Ok(Evidence {
            plan: self.plan.clone(),
            sender_end: self.sender,
            near: end(EndName::Near),
            far: end(EndName::Far),
            reported_loss_share: Known::missing("the measurement still runs"),
            latency: None,
            fetches: None,
            clocks: Clocks::not_compared(),
            measured: Measured {
                goodput,
                from_s,
                to_s,
                precision_percent: Known::missing("the measurement still runs"),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_s: f64) -> Sample {
        Sample { at_s, sent_bytes: 0, received_bytes: 0, flows: Vec::new() }
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_stop_the_account() {
        let plan = Plan::standard();
        let (mut recent, mut limits) = (Recent::default(), RunLimits::new(&plan, 1));
        let mut judged = Vec::new();
        for at_s in [100.0, 101.0, 102.0, 0.0, 1.0, 2.0] {
            recent.enter(EndName::Near, &sample(at_s));
            limits.judge(1, &plan, &recent);
            judged.push(limits.directions[0].steps.back().map(|step| step.to_s));
        }
        let [.., one, two] = &judged[..] else { panic!("{judged:?}") };
        assert_eq!((one, two), (&Some(1.0), &Some(2.0)), "{judged:?}");
    }
}
