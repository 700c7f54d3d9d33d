//! From the records of a history to the matrix: what each says of a pair, and how many say nothing.

use std::collections::BTreeMap;

use goodput_model::{Known, Missing};

use super::seen::{Observation, Unusable};
use super::tally::Tally;
use super::whole::{Matrix, Question};
use super::words::left_out_in_words;
use crate::mesh::Mesh;

/// What records say, as they are read.
#[derive(Debug)]
pub struct Survey {
    tally: Tally,
    left_out: BTreeMap<Unusable, usize>,
    unreadable: Vec<String>,
}

/// What they say together.
#[derive(Debug, Clone, PartialEq)]
pub struct Surveyed {
    /// Every pair, or why there is none.
    pub matrix: Known<Matrix>,
    /// Tests that say nothing of a pair, by the reason.
    pub left_out: BTreeMap<Unusable, usize>,
    /// Records that could not be read, and why.
    pub unreadable: Vec<String>,
}

impl Survey {
    /// Of the sites of a mesh, or of all hosts that are seen.
    pub fn of(mesh: Option<&Mesh>) -> Self {
        let (left_out, unreadable) = Default::default();
        Self { tally: mesh.map_or_else(Tally::of_all, Tally::of_mesh), left_out, unreadable }
    }

    /// Adds what a record says.
    pub fn add(&mut self, said: &Result<Observation, Unusable>) {
        match said {
            Ok(seen) => self.tally.add(seen),
            Err(why) => *self.left_out.entry(*why).or_default() += 1,
        }
    }

    /// Adds a record that can't be read.
    pub fn add_unreadable(&mut self, why: String) {
        self.unreadable.push(why);
    }

    /// The matrix, unless no record says anything of a pair.
    pub fn matrix(mut self, question: Question) -> Surveyed {
        let left_out = self.tally.leave_out(question.now_s).into_iter();
        self.left_out.extend(left_out.filter(|(_, tests)| *tests > 0));
        let matrix = match self.tally.is_empty() {
            true => Known::Missing(Missing::because(self.nothing())),
            false => Known::Value(self.tally.matrix(question)),
        };
        Surveyed { matrix, left_out: self.left_out, unreadable: self.unreadable }
    }

    fn nothing(&self) -> String {
        match left_out_in_words(&self.left_out) {
            counts if counts.is_empty() => "the history has no test of a pair".into(),
            counts => format!("the history has no test of a pair (left out: {counts})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::seen::seen;
    use goodput_model::Record;

    const QUESTION: Question = Question { now_s: 2e9, slow_percent: 10.0 };

    #[test]
    fn hosts_that_were_seen_are_the_sites_and_what_says_nothing_is_counted() {
        let json = include_str!("../../../goodput/src/report/example/record.json");
        let mut record = Record::from_json(json).unwrap();
        let mut survey = Survey::of(None);
        survey.add(&seen(&record, 7, None));
        record.incomplete = Some("x".into());
        survey.add(&seen(&record, 8, None));
        survey.add_unreadable("record 9: damaged".into());
        let found = survey.matrix(QUESTION);
        assert_eq!(*found.matrix.value().unwrap().sites, ["laptop", "nas"]);
        assert_eq!(found.left_out, BTreeMap::from([(Unusable::Incomplete, 1)]));
        assert_eq!(found.unreadable.len(), 1);
        let mut part = Survey::of(None);
        part.add(&seen(&record, 8, None));
        let part = part.matrix(QUESTION);
        assert_eq!(part.matrix.value().map(|matrix| (matrix.tested, matrix.partial)), Some((0, 1)));
        record.started = "soon".into();
        let mut nothing = Survey::of(None);
        nothing.add(&seen(&record, 8, None));
        let why = nothing.matrix(QUESTION).matrix.get().unwrap_err();
        assert!(why.to_string().contains("1 test, without a host's name"), "{why}");
    }
}
