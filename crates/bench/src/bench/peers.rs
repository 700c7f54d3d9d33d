//! Peers that are given by their path, such as the newest of each: they take part beside Debian's.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::contest::{Contest, Entry, Kind};
use super::programs::{ALL, GOODPUT};
use super::version::version;

/// A program given by `--peer NAME=FILE`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GivenPeer {
    /// The program's name.
    pub program: String,
    /// Its version as it prints it; tells it from Debian's.
    pub version: String,
    /// Its file; a page does not name it.
    #[serde(skip)]
    pub file: PathBuf,
}

/// One who takes part in a contest.
pub struct Contestant {
    /// Its name in tables and kept lines; unique in the contest.
    pub name: String,
    /// What it does.
    pub entry: &'static Entry,
    /// Its program, if that was given.
    pub file: Option<PathBuf>,
}

impl GivenPeer {
    /// Reads `NAME=FILE`, and asks the program for its version.
    pub fn parse(text: &str) -> Result<Self> {
        let (name, file) = text.split_once('=').context("a peer is NAME=FILE")?;
        let Some(program) = ALL.iter().find(|program| program.name == name) else {
            let names: Vec<_> = ALL.iter().map(|program| program.name).collect();
            bail!("there is no peer {name}; choose one of {}", names.join(", "));
        };
        if program.name == GOODPUT.name {
            bail!("goodput is no peer of itself; use --program FILE to measure another build");
        }
        let file = fs::canonicalize(file).with_context(|| format!("there is no {file}"))?;
        let line = version(name, &file, program.version);
        let number =
            line.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let number = number.map(|word| word.trim_end_matches(',').to_owned());
        let number =
            number.with_context(|| format!("{} names no version: {line}", file.display()))?;
        Ok(Self { program: name.into(), version: number, file })
    }
}

impl Contest {
    /// Everyone who takes part: each entry with Debian's program, and again with each that was given.
    pub fn contestants(&self, given: &[GivenPeer]) -> Vec<Contestant> {
        self.entries.iter().flat_map(|entry| versions(entry, given)).collect()
    }
}

fn versions(entry: &'static Entry, given: &[GivenPeer]) -> Vec<Contestant> {
    let (name, debian_runs) = match &entry.kind {
        Kind::Runs(program, _) | Kind::AtRest(program) => (program.name, program.in_debian),
        Kind::RunsIfGiven(program, _) => (program.name, false),
        Kind::Measured(_) => (entry.name, true),
    };
    let debian = Contestant { name: entry.name.into(), entry, file: None };
    let given = given.iter().filter(|peer| peer.program == name).map(|peer| Contestant {
        name: format!("{} ({})", entry.name, peer.version),
        entry,
        file: Some(peer.file.clone()),
    });
    debian_runs.then_some(debian).into_iter().chain(given).collect()
}

/// Fails if two given peers could not be told apart in a table.
pub fn check_names(given: &[GivenPeer]) -> Result<()> {
    for (at, peer) in given.iter().enumerate() {
        let is_same =
            |other: &GivenPeer| (&other.program, &other.version) == (&peer.program, &peer.version);
        if given[..at].iter().any(is_same) {
            bail!("two peers are {} {}; give one of them", peer.program, peer.version);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::contests;
    use super::*;

    fn given(program: &str, version: &str) -> GivenPeer {
        GivenPeer { program: program.into(), version: version.into(), file: "/x".into() }
    }

    #[test]
    fn a_given_peer_is_beside_that_of_debian() {
        let contest = contests::ALL[0];
        let names = |given: &[GivenPeer]| -> Vec<String> {
            contest.contestants(given).into_iter().map(|who| who.name).collect()
        };
        assert!(!names(&[]).iter().any(|name| name.contains("netperf")), "Debian has none");
        let all = names(&[given("iperf3", "3.21"), given("netperf", "2.7.1")]);
        for name in ["iperf3", "iperf3 (3.21)", "netperf (2.7.1)"] {
            assert!(all.iter().any(|found| found == name), "{name}: {all:?}");
        }
        assert!(!all.iter().any(|name| name == "netperf" || name.contains("goodput (")), "{all:?}");
    }

    #[test]
    fn peers_that_nobody_can_tell_apart_are_refused() {
        let (one, other) = (given("iperf3", "3.21"), given("iperf3", "3.20"));
        assert!(check_names(&[one.clone(), other]).is_ok());
        assert!(check_names(&[one.clone(), one]).is_err());
    }

    #[test]
    fn what_is_no_peer_is_refused_by_name() {
        for (text, words) in [
            ("iperf3", "NAME=FILE"),
            ("ping=/x", "no peer ping"),
            ("goodput=/x", "--program"),
            ("iperf3=/none", "/none"),
        ] {
            let error = format!("{:#}", GivenPeer::parse(text).unwrap_err());
            assert!(error.contains(words), "{error}");
        }
    }
}
