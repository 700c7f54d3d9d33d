//! Who limited when, second by second, while the measurement runs.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use goodput_diagnose::account_of;
use goodput_model::{
    AccountPart, BitRate, Clocks, End, EndName, Evidence, Host, Known, Limiter, Measured, Missing,
    Place, Plan, Sample,
};

use super::series::SHOWN_S;

/// Length of a step, seconds. Shorter than that, a round trip of a long path says nothing.
const STEP_S: f64 = 1.0;

/// How far back the account looks to know what is usual, seconds.
const LOOKS_BACK_S: f64 = 4.0;

/// What limited one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitedStep {
    /// Its end, seconds by the sender's samples.
    pub to_s: f64,
    /// What held most of it, and where. Absent if nothing is known.
    pub held_by: Option<(Limiter, Place)>,
}

/// The account of one direction so far.
#[derive(Debug, Clone)]
pub struct Limits {
    plan: Plan,
    sender: EndName,
    samples: BTreeMap<EndName, VecDeque<Sample>>,
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
    pub fn new(plan: Plan, sender: EndName) -> Self {
        Self {
            plan,
            sender,
            samples: BTreeMap::new(),
            judged_until_s: None,
            steps: VecDeque::new(),
            held: Vec::new(),
            flow_seconds: 0.0,
            unknown: None,
        }
    }

    /// Takes what `end` has counted. Once a second, the time since then is accounted for.
    pub fn enter(&mut self, end: EndName, sample: &Sample) {
        let samples = self.samples.entry(end).or_default();
        while samples.front().is_some_and(|first| first.at_s < sample.at_s - LOOKS_BACK_S) {
            samples.pop_front();
        }
        samples.push_back(sample.clone());
        let from_s = *self.judged_until_s.get_or_insert(sample.at_s);
        if end == self.sender && sample.at_s >= from_s + STEP_S {
            self.judge(from_s, sample.at_s);
            self.judged_until_s = Some(sample.at_s);
        }
    }

    /// The shares of the time that each limiter held, 0 to 1, the largest first.
    pub fn shares(&self) -> Vec<(Limiter, Place, f64)> {
        let held = self.held.iter();
        let mut shares: Vec<_> =
            held.map(|(limiter, place, s)| (*limiter, *place, s / self.flow_seconds)).collect();
        shares.sort_by(|a, b| b.2.total_cmp(&a.2));
        shares
    }

    fn judge(&mut self, from_s: f64, to_s: f64) {
        let held_by = match account_of(&self.evidence(from_s, to_s)) {
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
        while self.steps.front().is_some_and(|first| first.to_s < to_s - SHOWN_S) {
            self.steps.pop_front();
        }
        self.steps.push_back(LimitedStep { to_s, held_by });
    }

    fn add(&mut self, part: &AccountPart) {
        let same = |held: &&mut (Limiter, Place, f64)| (held.0, held.1) == (part.limiter, part.end);
        match self.held.iter_mut().find(same) {
            Some(held) => held.2 += part.seconds,
            None => self.held.push((part.limiter, part.end, part.seconds)),
        }
    }

    /// Payload per second of the step: what arrived, or else what was sent.
    fn goodput(&self, from_s: f64) -> BitRate {
        let receiver = self.samples.get(&self.sender.other()).map(|samples| (samples, true));
        let counted = receiver.or_else(|| Some((self.samples.get(&self.sender)?, false)));
        let rate = counted.and_then(|(samples, arrived)| {
            let first = samples.iter().find(|sample| sample.at_s >= from_s)?;
            let last = samples.back().filter(|last| last.at_s > first.at_s)?;
            let bytes =
                |sample: &Sample| if arrived { sample.received_bytes } else { sample.sent_bytes };
            let moved = bytes(last).saturating_sub(bytes(first));
            Some(moved as f64 * 8.0 / (last.at_s - first.at_s))
        });
        BitRate(rate.unwrap_or(0.0))
    }

    fn evidence(&self, from_s: f64, to_s: f64) -> Evidence {
        let end = |name| match self.samples.get(&name) {
            Some(samples) => Known::Value(Arc::new(End {
                samples: samples.iter().cloned().collect(),
                ..End::unobserved(Host::foreign("not asked"))
            })),
            None => Known::missing("it has not reported yet"),
        };
        Evidence {
            plan: self.plan.clone(),
            sender_end: self.sender,
            near: end(EndName::Near),
            far: end(EndName::Far),
            reported_loss_share: Known::missing("the measurement still runs"),
            latency: None,
            fetches: None,
            clocks: Clocks::not_compared(),
            measured: Measured {
                goodput: self.goodput(from_s),
                from_s,
                to_s,
                precision_percent: Known::missing("the measurement still runs"),
            },
        }
    }
}
