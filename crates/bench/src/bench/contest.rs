//! What a contest is: a load, who takes part, what is measured of it, and the goals.

use std::time::Duration;

use anyhow::Result;

use super::load::Load;
use super::place::Place;
use super::programs::{GOODPUT, Program};
use super::quantity::{Quantity, Values};
use super::stage::Stage;
use super::watch::Watch;

/// One contest. In each round every entry runs once at every place.
pub struct Contest {
    /// What `--only` and the kept lines call it.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// What is sent and what to know about it; the paragraph under the heading.
    pub about: &'static str,
    /// Where it takes place.
    pub places: &'static [Place],
    /// What is sent.
    pub load: Load,
    /// For how long.
    pub length: Length,
    /// What is watched beside the programs' own counts.
    pub watch: Watch,
    /// Who takes part.
    pub entries: &'static [Entry],
    /// What the table shows.
    pub columns: &'static [&'static Quantity],
    /// What is asked of it.
    pub goals: &'static [Goal],
}

/// For how long an entry sends.
#[derive(Debug, Clone, Copy)]
pub enum Length {
    /// As `--seconds` says.
    Asked,
    /// One second: what is looked for comes at the beginning.
    OneSecond,
}

/// One that takes part.
pub struct Entry {
    /// Its name in the table; unique in the contest.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
}

/// What takes part.
pub enum Kind {
    /// A program, and options of its client beyond those of the load.
    Runs(&'static Program, &'static [&'static str]),
    /// Something that needs no other program: what this machine can do at all, or a size.
    Measured(fn(&Stage<'_>, &Load) -> Result<Values>),
}

/// Something to reach.
pub struct Goal {
    /// In words, without the names of the contestants.
    pub what: &'static str,
    /// Of this entry.
    pub of: &'static str,
    /// This quantity.
    pub quantity: &'static Quantity,
    /// Held against what.
    pub against: Against,
    /// Where it shall be.
    pub bound: Bound,
}

/// What a value is held against; always of the same round and place.
pub enum Against {
    /// Nothing: the value as the table shows it.
    Nothing,
    /// The ratio to the peer that was the best by this quantity.
    BestPeer(&'static Quantity),
    /// The difference to that peer, in the unit of the table.
    BestPeerMinus(&'static Quantity),
    /// The ratio to this entry.
    Entry(&'static str),
    /// How many percent of this entry.
    PercentOf(&'static str),
    /// How many percent below this entry.
    PercentBelow(&'static str),
    /// How many percent above this entry.
    PercentAbove(&'static str),
    /// The difference to this entry, in the unit of the table.
    EntryMinus(&'static str),
}

/// Where a value shall be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    AtLeast(f64),
    Above(f64),
    AtMost(f64),
    Below(f64),
    /// Anywhere: it is shown only.
    None,
}

impl Contest {
    /// The entry of this name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Seconds of a run if `--seconds` says `asked`.
    pub fn seconds(&self, asked: u32) -> u32 {
        match self.length {
            Length::Asked => asked,
            Length::OneSecond => 1,
        }
    }
}

impl Entry {
    /// About how long one of its runs takes if the payload takes `seconds`.
    pub fn takes(&self, load: &Load, seconds: u32) -> Duration {
        match &self.kind {
            Kind::Runs(program, _) => {
                Duration::from_secs(seconds.into()) + (program.beyond)(load.transport)
            }
            Kind::Measured(_) => Duration::from_millis(300),
        }
    }

    /// Whether it is one of those that goodput is compared with.
    pub fn is_peer(&self) -> bool {
        matches!(&self.kind, Kind::Runs(program, _) if program.name != GOODPUT.name)
    }
}
