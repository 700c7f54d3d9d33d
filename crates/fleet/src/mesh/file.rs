//! A mesh file as it is written: the keys, and what may be left out.

use std::num::NonZeroU16;

use serde::Deserialize;
use toml::Spanned;

use super::by_ssh::{Login, Program};
use super::named::Named;
use super::place::{Host, Target};
use super::server::Server;
use super::values::{Budget, Length, Pause, Rate, Time, Window};

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// Names of lines that several sites share.
    #[serde(default)]
    pub uplinks: Vec<Spanned<String>>,
    /// What is tested, and when.
    #[serde(default)]
    pub test: TestTable,
    /// The sites.
    #[serde(default)]
    pub site: Named<SiteTable>,
    /// Pairs that differ from the others, or the only ones.
    #[serde(default)]
    pub pair: Vec<PairTable>,
}

/// `[site.NAME]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SiteTable {
    /// What `goodput test` calls it; without one, the site can only call others.
    pub target: Option<Target>,
    /// A server there that is no goodput; the site is then only called, by the agents of others.
    pub server: Option<Spanned<Server>>,
    /// A host there that agents log in to, and start a server for each test; the site is then only called, too.
    pub ssh: Option<Spanned<Login>>,
    /// The program that they start; without one, goodput if the host has it, otherwise iperf3.
    pub program: Option<Spanned<Program>>,
    /// Where it listens; without one, goodput at any port that is free, iperf3 at its own.
    pub port: Option<Spanned<NonZeroU16>>,
    /// The name of the host in its records; without one, the site's own name, or the host of its server.
    pub host: Option<Host>,
    /// The line that it shares with others.
    pub uplink: Option<Spanned<String>>,
    /// What its tests may cost in any 24 hours.
    pub budget: Option<Budget>,
}

/// `[test]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TestTable {
    /// Which pairs.
    pub pairs: Which,
    /// Which ends send.
    pub directions: Directions,
    /// How often the mesh is tested; without one, once.
    pub every: Option<Time>,
    /// Length of one test of one direction.
    pub length: Length,
    /// Time between two tests, for connecting and for queues to drain.
    pub pause: Pause,
    /// Rate that a test is expected to reach.
    pub rate: Option<Rate>,
    /// What all tests may cost in any 24 hours.
    pub budget: Option<Spanned<Budget>>,
    /// When tests may run; without any, always.
    pub windows: Vec<Spanned<Window>>,
}

impl Default for TestTable {
    fn default() -> Self {
        Self {
            pairs: Which::All,
            directions: Directions::Both,
            every: None,
            length: Length(10.0),
            pause: Pause(2.0),
            rate: None,
            budget: None,
            windows: Vec::new(),
        }
    }
}

/// Which pairs are tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Which {
    /// Each site with each other.
    All,
    /// Only those with a `[[pair]]`.
    Named,
}

/// Which ends of a pair send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Directions {
    /// Each in turn.
    Both,
    /// The first site sends to the second.
    One,
}

/// `[[pair]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PairTable {
    /// Its two sites. Of more, an array of two would drop the others without a word.
    pub sites: Spanned<Vec<Spanned<String>>>,
    /// Pairs of a higher priority come first, and keep their tests if the budgets are short.
    #[serde(default)]
    pub priority: i32,
    /// Rate that its tests are expected to reach, if not that of all.
    pub rate: Option<Rate>,
}
