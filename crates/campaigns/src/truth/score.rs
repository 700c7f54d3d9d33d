//! How right a verdict was.

use super::case::{Came, Planted, Ran, Verdict};
use super::twin::{LEAST_COST, MAX_HEALTHY_COST};

/// Degrees of being right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Score {
    /// One planted cause, and it is the verdict.
    First,
    /// The planted cause is the second or third finding.
    AmongThree,
    /// Another cause is named, and the planted one is not among the first three.
    Wrong,
    /// No cause is named at all.
    Missed,
    /// Nothing planted, and nothing named but allowed causes.
    Quiet,
    /// Nothing planted, and a cause named.
    FalseAlarm,
    /// Nothing planted, and named that other programs took the CPUs, as they did.
    Disturbed,
    /// Several planted, all named, one of them as the verdict.
    AllNamed,
    /// Several planted, one of them is the verdict, and another is not named.
    SomeNamed,
    /// Several planted, and none of them is the verdict.
    NoneFirst,
}

/// How right a run was; `None` if there is no verdict, or if its cost decides nothing.
pub fn score(ran: &Ran) -> Option<Score> {
    if cost_decides_nothing(ran) {
        return None;
    }
    let Came::Verdict(verdict) = &ran.came else { return None };
    Some(match &ran.planted {
        Planted::One { rules, end } => one(verdict, rules, end.as_deref()),
        Planted::Several(rules) => several(verdict, rules),
        Planted::Nothing(may) => nothing(ran, verdict, may),
    })
}

/// Whether a fault cost too little to count, or a path without a fault fell too far short of its rate. What a fault cost that
/// was drawn at random is known only if both of its healthy twins ran. The faults of the lab's scenarios are chosen, and have
/// no twins.
pub fn cost_decides_nothing(ran: &Ran) -> bool {
    match (ran.cost, matches!(ran.planted, Planted::Nothing(_))) {
        (Some(cost), true) => cost >= MAX_HEALTHY_COST,
        (Some(cost), false) => cost < LEAST_COST,
        (None, is_healthy) => !is_healthy && ran.drawn.is_some(),
    }
}

fn one(verdict: &Verdict, rules: &[String], end: Option<&str>) -> Score {
    let there = end.is_none_or(|end| verdict.end == end);
    if rules.contains(&verdict.limit) && there {
        Score::First
    } else if verdict.found.iter().take(3).any(|rule| rules.contains(rule)) && there {
        Score::AmongThree
    } else if verdict.limit == "none" {
        Score::Missed
    } else {
        Score::Wrong
    }
}

fn several(verdict: &Verdict, rules: &[String]) -> Score {
    match (rules.contains(&verdict.limit), rules.iter().all(|rule| verdict.found.contains(rule))) {
        (true, true) => Score::AllNamed,
        (true, false) => Score::SomeNamed,
        (false, _) => Score::NoneFirst,
    }
}

/// Share of the machine's CPUs that other programs take on an undisturbed one, at most.
const MAX_OTHERS_SHARE: f64 = 0.05;

/// Whether a finding of this rule is true of this run although it was not planted: nothing was, and other programs took the
/// CPUs, by the kernel's count of low priorities, which no rule reads.
pub fn is_of_the_machine(ran: &Ran, rule: &str) -> bool {
    matches!(ran.planted, Planted::Nothing(_))
        && rule == "cpu-contention"
        && ran.others.is_some_and(|share| share > MAX_OTHERS_SHARE)
}

fn nothing(ran: &Ran, verdict: &Verdict, may: &[String]) -> Score {
    let named = verdict.found.iter().chain([&verdict.limit]).filter(|rule| *rule != "none");
    let mut named = named.filter(|rule| !may.contains(rule)).peekable();
    if named.peek().is_none() {
        Score::Quiet
    } else if named.all(|rule| is_of_the_machine(ran, rule)) {
        Score::Disturbed
    } else {
        Score::FalseAlarm
    }
}

impl Score {
    /// Whether the verdict is one of the planted causes, or an allowed one. This measures what confidence
    /// means.
    pub fn is_right(self) -> bool {
        matches!(self, Self::First | Self::AllNamed | Self::SomeNamed | Self::Quiet)
    }

    /// Whether the result is entirely right.
    pub fn is_perfect(self) -> bool {
        self.is_right() && self != Self::SomeNamed
    }

    /// For a person.
    pub fn words(self) -> &'static str {
        match self {
            Self::First => "right",
            Self::AmongThree => "right among the first three",
            Self::Wrong => "wrong",
            Self::Missed => "missed",
            Self::Quiet => "quiet",
            Self::FalseAlarm => "false alarm",
            Self::Disturbed => "disturbed",
            Self::AllNamed => "all named",
            Self::SomeNamed => "one named",
            Self::NoneFirst => "another first",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(found: &[&str]) -> Verdict {
        Verdict {
            limit: found.first().unwrap_or(&"none").to_string(),
            end: "near".into(),
            found: found.iter().map(|rule| rule.to_string()).collect(),
            ..Verdict::default()
        }
    }

    fn scored(planted: Planted, found: &[&str]) -> Option<Score> {
        scored_at(None, planted, found)
    }

    fn scored_at(cost: Option<f64>, planted: Planted, found: &[&str]) -> Option<Score> {
        let came = Came::Verdict(Box::new(verdict(found)));
        score(&Ran { case: "x".into(), planted, came, cost, drawn: None, others: None })
    }

    #[test]
    fn neither_a_cheap_fault_nor_a_path_that_is_far_from_full_is_judged() {
        let fault = |cost| {
            let planted = Planted::One { rules: vec!["a".into()], end: None };
            scored_at(Some(cost), planted, &["a"]).is_some()
        };
        let healthy = |cost| scored_at(Some(cost), Planted::Nothing(Vec::new()), &["a"]).is_some();
        assert_eq!([fault(0.1), fault(0.2)], [false, true]);
        assert_eq!([healthy(0.01), healthy(0.1)], [true, false]);
    }

    #[test]
    fn one_cause_is_right_first_among_three_wrong_or_missed() {
        let planted =
            |end: Option<&str>| Planted::One { rules: vec!["a".into()], end: end.map(Into::into) };
        assert_eq!(scored(planted(None), &["a", "b"]), Some(Score::First));
        assert_eq!(scored(planted(None), &["b", "c", "a"]), Some(Score::AmongThree));
        assert_eq!(scored(planted(None), &["b", "c", "d", "a"]), Some(Score::Wrong));
        assert_eq!(scored(planted(None), &[]), Some(Score::Missed));
        assert_eq!(scored(planted(Some("far")), &["a"]), Some(Score::Wrong));
    }

    #[test]
    fn several_causes_are_all_to_be_named() {
        let planted = || Planted::Several(vec!["a".into(), "b".into()]);
        assert_eq!(scored(planted(), &["b", "a"]), Some(Score::AllNamed));
        assert_eq!(scored(planted(), &["b", "c"]), Some(Score::SomeNamed));
        assert_eq!(scored(planted(), &["c", "a", "b"]), Some(Score::NoneFirst));
    }

    #[test]
    fn on_a_healthy_path_any_other_finding_is_an_alarm() {
        let planted = || Planted::Nothing(vec!["none".into(), "a".into()]);
        assert_eq!(scored(planted(), &[]), Some(Score::Quiet));
        assert_eq!(scored(planted(), &["a"]), Some(Score::Quiet));
        assert_eq!(scored(planted(), &["a", "b"]), Some(Score::FalseAlarm));
    }

    #[test]
    fn that_others_took_the_cpus_is_no_alarm_if_they_did() {
        let scored = |others, found: &[&str]| {
            let came = Came::Verdict(Box::new(verdict(found)));
            let planted = Planted::Nothing(vec!["a".into()]);
            score(&Ran { case: "x".into(), planted, came, cost: None, drawn: None, others })
        };
        let contention = ["a", "cpu-contention"];
        assert_eq!(scored(Some(0.3), &contention), Some(Score::Disturbed));
        assert_eq!(scored(Some(0.01), &contention), Some(Score::FalseAlarm));
        assert_eq!(scored(None, &contention), Some(Score::FalseAlarm));
        assert_eq!(scored(Some(0.3), &["cpu-contention", "b"]), Some(Score::FalseAlarm));
        assert_eq!(scored(Some(0.3), &["a"]), Some(Score::Quiet));
    }

    #[test]
    fn a_fault_that_costs_nothing_is_not_judged() {
        let verdict = Came::Verdict(Box::new(verdict(&["b"])));
        let planted = Planted::One { rules: vec!["a".into()], end: None };
        let scored = |cost, drawn: Option<&str>| {
            let drawn = drawn.map(Into::into);
            let (planted, came) = (planted.clone(), verdict.clone());
            score(&Ran { case: "x".into(), planted, came, cost, drawn, others: None })
        };
        assert_eq!(scored(Some(LEAST_COST / 2.0), None), None);
        assert_eq!(scored(Some(LEAST_COST * 2.0), Some("ff")), Some(Score::Wrong));
        // Its healthy twin did not run.
        assert_eq!(scored(None, Some("ff")), None);
        assert_eq!(scored(None, None), Some(Score::Wrong));
    }

    #[test]
    fn what_did_not_run_has_no_score() {
        let ran = Ran {
            case: "x".into(),
            planted: Planted::Several(Vec::new()),
            came: Came::Skipped("x".into()),
            cost: None,
            drawn: None,
            others: None,
        };
        assert_eq!(score(&ran), None);
    }
}
