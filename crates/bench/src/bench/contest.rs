//! A contest: a load, its contestants, what is measured, and the goals.

use std::time::Duration;

use anyhow::Result;

use super::load::Load;
use super::measure::{Measure, Values};
use super::place::Place;
use super::programs::{GOODPUT, Program};
use super::stage::Stage;
use super::watch::Watch;

/// One contest. In each round every entry runs once at every place.
pub struct Contest {
    /// Its name for `--only` and in the kept lines.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// The load and what to know about it; the paragraph under the heading.
    pub about: &'static str,
    /// Where it takes place.
    pub places: &'static [Place],
    /// What is sent.
    pub load: Load,
    /// The length of a run.
    pub length: Length,
    /// What is observed beside the programs' own counts.
    pub watch: Watch,
    /// The contestants.
    pub entries: &'static [Entry],
    /// What the table shows.
    pub columns: &'static [&'static Measure],
    /// What the contest must show.
    pub goals: &'static [Goal],
}

/// How long an entry sends.
#[derive(Debug, Clone, Copy)]
pub enum Length {
    /// As `--seconds` says.
    Asked,
    /// One second: the effect of interest comes at the beginning.
    OneSecond,
}

/// One contestant.
pub struct Entry {
    /// Its name in the table; unique in the contest.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
}

/// The kinds of contestants.
pub enum Kind {
    /// A program, and options of its client beyond those of the load.
    Runs(&'static Program, &'static [&'static str]),
    /// The same, with options that only newer versions than Debian's have: only a given program takes part.
    RunsIfGiven(&'static Program, &'static [&'static str]),
    /// A program's server, with no client.
    AtRest(&'static Program),
    /// Something that needs no other program: what this machine can do at best, or a size.
    Measured(fn(&Stage<'_>, &Load) -> Result<Values>),
}

/// A goal.
pub struct Goal {
    /// In words, without the names of the contestants.
    pub what: &'static str,
    /// The entry that must reach it.
    pub of: &'static str,
    /// The measure.
    pub measure: &'static Measure,
    /// What the value is compared with.
    pub against: Against,
    /// The bound that the result must keep.
    pub bound: Bound,
}

/// The reference for a value; always from the same round and place.
pub enum Against {
    /// Nothing: the value as the table shows it.
    Nothing,
    /// The ratio to the best peer by this measure.
    BestPeer(&'static Measure),
    /// The ratio to the best peer by this measure, of those that are run without further options.
    BestUsualPeer(&'static Measure),
    /// The difference to the best peer by this measure, in the unit of the table.
    BestPeerMinus(&'static Measure),
    /// The ratio to goodput's other entry whose median by this measure is best: the choice that a user would make who
    /// knows all results. The best of each single round would be the luckiest.
    BestChoice(&'static Measure),
    /// The ratio to this entry.
    Entry(&'static str),
    /// The percentage of this entry.
    PercentOf(&'static str),
    /// How many percent below this entry.
    PercentBelow(&'static str),
    /// How many percent above this entry.
    PercentAbove(&'static str),
    /// The difference to this entry, in the unit of the table.
    EntryMinus(&'static str),
}

/// The bound for a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    AtLeast(f64),
    /// At least as much, by the place.
    AtLeastAt {
        veth: f64,
        loopback: f64,
    },
    Above(f64),
    AtMost(f64),
    Below(f64),
    /// No bound: the value is only shown.
    None,
}

impl Contest {
    /// Seconds of a run if `--seconds` says `asked`.
    pub fn seconds(&self, asked: u32) -> u32 {
        match self.length {
            Length::Asked => asked,
            Length::OneSecond => 1,
        }
    }
}

impl Entry {
    /// Approximate duration of one of its runs if the payload takes `seconds`.
    pub fn takes(&self, load: &Load, seconds: u32) -> Duration {
        match &self.kind {
            Kind::Runs(program, _) | Kind::RunsIfGiven(program, _) => {
                Duration::from_secs(seconds.into()) + (program.beyond)(load.transport)
            }
            Kind::AtRest(_) => Duration::from_secs(seconds.into()) + Duration::from_millis(300),
            Kind::Measured(_) => Duration::from_millis(300),
        }
    }

    /// Whether goodput is compared with it.
    pub fn is_peer(&self) -> bool {
        self.program().is_some_and(|(program, _)| program.name != GOODPUT.name)
    }

    /// Whether it is a peer without further options.
    pub fn is_usual_peer(&self) -> bool {
        self.is_peer() && self.program().is_some_and(|(_, extra)| extra.is_empty())
    }

    /// Whether it is goodput itself.
    pub fn is_ours(&self) -> bool {
        self.program().is_some_and(|(program, _)| program.name == GOODPUT.name)
    }

    /// Its program and the further options of the client.
    fn program(&self) -> Option<(&'static Program, &'static [&'static str])> {
        match self.kind {
            Kind::Runs(program, extra) | Kind::RunsIfGiven(program, extra) => {
                Some((program, extra))
            }
            Kind::AtRest(program) => Some((program, &[])),
            Kind::Measured(_) => None,
        }
    }
}

impl Goal {
    /// The bound at this place.
    pub fn bound_at(&self, place: Place) -> Bound {
        match (self.bound, place) {
            (Bound::AtLeastAt { loopback, .. }, Place::Loopback) => Bound::AtLeast(loopback),
            (Bound::AtLeastAt { veth, .. }, Place::Veth | Place::OneCpu) => Bound::AtLeast(veth),
            (bound, _) => bound,
        }
    }
}
