//! What limits a test: its verdict's limit. If its verdict names none, that is what took most of its time, by the account.

use goodput_model::{Account, AccountPart, Limiter, Place, Record, Verdict};
use serde::{Deserialize, Serialize};

/// What limited a test, or most of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// Id of the rule, or `none`.
    pub rule: String,
    /// What took more than half of the flows' time, if no rule says why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limiter: Option<Limiter>,
    /// Where the limit is.
    pub end: Place,
    /// The limit in words; of several tests, in those of the newest.
    pub summary: String,
}

impl Limit {
    /// The limit of a test: that of its verdict, otherwise what took most of its time by the account.
    pub fn of(record: &Record) -> Self {
        Self::of_verdict(&record.verdict)
    }

    /// The limit that a verdict names, otherwise what took most of the time by its account.
    pub fn of_verdict(verdict: &Verdict) -> Self {
        let held = (verdict.limit == Verdict::NO_LIMIT).then(|| main_part(verdict)).flatten();
        let (limiter, end, summary) = match held {
            None => (None, verdict.end, verdict.summary.clone()),
            Some((account, part)) => {
                let share = account.share_text(part);
                let summary = format!("{}, {share} of the time", part.limiter.at(part.end));
                (Some(part.limiter), part.end, summary)
            }
        };
        Self { rule: verdict.limit.clone(), limiter, end, summary }
    }

    /// Whether both are the same one, whatever words describe them.
    pub(crate) fn is(&self, other: &Self) -> bool {
        (self.name(), self.end) == (other.name(), other.end)
    }

    /// One name for a limiter and for the rule that finds it.
    fn name(&self) -> String {
        self.limiter.map_or_else(|| self.rule.clone(), Limiter::id)
    }
}

/// The part of the account that took more than half of the time.
fn main_part(verdict: &Verdict) -> Option<(&Account, &AccountPart)> {
    let account = verdict.account.value()?;
    let part = account.parts.first()?;
    (part.seconds > account.flow_seconds / 2.0).then_some((account, part))
}

/// The most frequent limit of some tests; of equally frequent ones, that of the newest test.
pub(crate) fn usual(limits: &[Limit]) -> Option<&Limit> {
    let number = |limit: &&Limit| limits.iter().filter(|other| limit.is(other)).count();
    limits.iter().max_by_key(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Known;

    /// A test with this limit on the path.
    fn record(limit: &str) -> Record {
        let json = include_str!("../../store/tests/golden/v1/test.json");
        let mut record = Record::from_json(json).unwrap();
        (record.verdict.limit, record.verdict.end) = (limit.into(), Place::Path);
        record
    }

    /// A test whose verdict names no limit. Its path was full for this part of a second.
    fn unexplained(seconds: f64) -> Record {
        let mut record = record(Verdict::NO_LIMIT);
        let (limiter, end) = (Limiter::PathRate, Place::Path);
        record.verdict.account = Known::Value(Account {
            flows: 1,
            flow_seconds: 1.0,
            parts: vec![AccountPart { limiter, end, seconds, between_s: None }],
            unknown_s: 1.0 - seconds,
            timeline: Vec::new(),
            slices: Vec::new(),
        });
        record
    }

    #[test]
    fn what_took_most_of_the_time_is_the_limit_that_no_rule_explains() {
        let of = |seconds| Limit::of(&unexplained(seconds));
        let most = of(0.9);
        assert_eq!((&*most.rule, most.limiter), ("none", Some(Limiter::PathRate)));
        assert_eq!(most.summary, "path rate, 90 % of the time");
        assert_eq!(of(0.4).limiter, None);
    }

    #[test]
    fn tests_of_which_a_rule_names_the_limiter_count_with_those_of_which_none_does() {
        let policed = || record("policer");
        let mut all = vec![policed(), policed(), unexplained(0.9), unexplained(0.9)];
        all.push(record("path-rate"));
        let usual = |all: &[Record]| {
            let limits: Vec<Limit> = all.iter().map(Limit::of).collect();
            super::usual(&limits).unwrap().rule.clone()
        };
        assert_eq!(usual(&all), "path-rate");
        all.extend([policed(), policed()]);
        assert_eq!(usual(&all), "policer");
    }

    #[test]
    fn a_verdict_says_more_than_the_account() {
        let mut explained = unexplained(0.9);
        explained.verdict.limit = "policer".into();
        assert_eq!(Limit::of(&explained).limiter, None);
    }
}
