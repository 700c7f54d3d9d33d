//! A matrix in words: the same on a screen and on a page.

use std::collections::BTreeMap;

use goodput_model::{Difference, Seconds, Verdict};

use super::cells::Cell;
use super::explain::{Cause, Explanation};
use super::part::Part;
use super::seen::Unusable;
use super::side::MIN_CELLS;
use super::whole::Matrix;
use crate::span::span;

/// What a pair is: the plan, the matrix and the metrics count alike.
pub const EACH_DIRECTION: &str = "each direction is a pair";

/// How a rule is called, from its id.
pub type Naming<'a> = &'a dyn Fn(&str) -> String;

/// Something that is known of a cell.
pub struct CellValue {
    /// Its short name, lower case.
    pub id: &'static str,
    /// Its name.
    pub title: &'static str,
    /// Its value with its unit, if it is known.
    pub shown: fn(&Cell<'_>, Naming<'_>) -> Option<String>,
}

/// What is shown of a cell, the most important first.
pub const CELL_VALUES: [CellValue; 5] = [
    CellValue { id: "goodput", title: "Goodput", shown: |cell, _| cell.goodput_in_words() },
    CellValue {
        id: "rtt",
        title: "Round trip",
        shown: |cell, _| cell.rtt_us.value().map(|us| Seconds::of_us(*us).to_string()),
    },
    CellValue {
        id: "week",
        title: "Change in a week",
        shown: |cell, _| {
            cell.change_percent.value().map(|percent| format!("{:.0}", Difference(*percent)))
        },
    },
    CellValue {
        id: "age",
        title: "Age of the newest test",
        shown: |cell, _| cell.age_s.value().map(|age_s| span(*age_s)),
    },
    CellValue {
        id: "limit",
        title: "Limit of the newest test",
        shown: |cell, naming| cell.limit_in_words(naming),
    },
];

impl Cell<'_> {
    /// `941 Mbit/s`, or `at least 20 Mbit/s` if an agent's limit capped it.
    fn goodput_in_words(&self) -> Option<String> {
        let rate = self.goodput_bits_per_s.value()?;
        Some(match self.percent_of_limit.value() {
            _ if self.is_partial => format!("{rate} in a part of a test"),
            _ if self.is_capped => format!("at least {rate}"),
            Some(percent) => format!("{rate}, {percent} % of an agent's limit"),
            None if self.is_above_expected => format!("{rate}, more than the mesh file expects"),
            None => rate.to_string(),
        })
    }

    /// `sender-cpu (sender)`
    fn limit_in_words(&self, naming: Naming<'_>) -> Option<String> {
        let (rule, at) = (self.limit.value()?, self.limit_at.value()?);
        let name = naming(rule);
        Some(if *rule == Verdict::NO_LIMIT { name } else { format!("{name} ({at})") })
    }
}

impl Matrix {
    /// `6 sites, 29 of 30 pairs tested (each direction is a pair), typical 900 Mbit/s`
    pub fn in_words(&self) -> String {
        let sites = self.sites.len();
        let (tested, pairs) = (self.tested, self.pairs());
        let capped = match self.capped {
            0 => String::new(),
            capped => format!(", {capped} of them capped by --max-rate of an agent"),
        };
        let partial = match self.partial {
            0 => String::new(),
            partial => format!(", {partial} only in part"),
        };
        let typical = self.explanation.value().map(|one| one.typical_bits_per_s);
        let typical = typical.map_or_else(String::new, |rate| format!(", typical {rate}"));
        format!(
            "{sites} sites, {tested} of {pairs} pairs tested ({EACH_DIRECTION}){capped}{partial}{typical}"
        )
    }

    /// `6 pairs are at least 10 % slower than typical`; none if nothing is explained.
    pub fn slow_in_words(&self) -> Option<String> {
        let by = self.slow_percent;
        Some(match self.explanation.value()?.slow.len() {
            0 => format!("no pair is {by:.0} % slower than typical, or more"),
            1 => format!("1 pair is at least {by:.0} % slower than typical"),
            slow => format!("{slow} pairs are at least {by:.0} % slower than typical"),
        })
    }
}

impl Explanation {
    /// How much paths vary that nothing explains.
    pub fn spread_in_words(&self) -> String {
        format!("pairs vary by {:.1} % (1 standard deviation)", self.spread_percent)
    }

    /// The undecided sides, and why they are.
    pub fn undecided_in_words(&self) -> (Vec<String>, String) {
        let side = |(site, part): &(String, Part)| format!("{site} as {part}");
        let why = format!("fewer than {MIN_CELLS} of its pairs have uncapped tests");
        (self.undecided.iter().map(side).collect(), why)
    }
}

impl Cause {
    /// `c's sending side explains 11 of 14 slow pairs`
    pub fn claim(&self, slow: usize) -> String {
        let [sender, receiver] =
            [&self.sender, &self.receiver].map(|name| name.as_deref().unwrap_or("?"));
        let explains = match slow {
            1 => "explains the only slow pair".into(),
            _ => format!("explains {} of {slow} slow pairs", self.explains.len()),
        };
        match self.part {
            Part::Sender => format!("{sender}'s sending side {explains}"),
            Part::Receiver => format!("{receiver}'s receiving side {explains}"),
            Part::Path => format!("{sender} → {receiver} is a path of its own"),
        }
    }

    /// `-62 % (-68 to -55 %) in 11 tested pairs; 9 of 11 newest records name sender-cpu (sender)`
    pub fn evidence(&self, naming: Naming<'_>) -> String {
        let [low, high] = self.between_percent;
        let effect = format!("{:+.0} % ({low:+.0} to {high:+.0} %)", self.effect_percent);
        let of = match self.part {
            Part::Path => String::new(),
            _ => format!(" in {} tested pairs", self.cells),
        };
        format!("{effect}{of}; {}", self.witness(naming))
    }

    /// What most records of the explained pairs name.
    fn witness(&self, naming: Naming<'_>) -> String {
        let all = self.records.len();
        let Some(most) = self.limits.iter().find(|limit| limit.rule != Verdict::NO_LIMIT) else {
            let records =
                if all == 1 { "its newest record names" } else { "their newest records name" };
            return format!("{records} no limit");
        };
        let (name, at) = (naming(&most.rule), most.at);
        match all {
            1 => format!("its newest record names {name} ({at})"),
            _ => format!("{} of {all} newest records name {name} ({at})", most.cells),
        }
    }
}

/// Each reason with its number of tests.
pub fn left_out_in_words(tests: &BTreeMap<Unusable, usize>) -> String {
    let each = tests.iter().map(|(why, count)| match count {
        1 => format!("1 test, {why}"),
        count => format!("{count} tests, {why}"),
    });
    each.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_say_nothing_are_counted() {
        let tests = BTreeMap::from([(Unusable::Datagrams, 1), (Unusable::Files, 3)]);
        let text = left_out_in_words(&tests);
        assert!(text.contains("1 test, datagrams") && text.contains("3 tests, from or to files"));
        assert_eq!(left_out_in_words(&BTreeMap::new()), "");
    }

    #[test]
    fn values_have_names_of_their_own() {
        let ids: std::collections::BTreeSet<_> = CELL_VALUES.iter().map(|one| one.id).collect();
        assert_eq!(ids.len(), CELL_VALUES.len());
    }
}
