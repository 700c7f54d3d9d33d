//! A host whose every name is hostile.

use std::path::PathBuf;
use std::process::Command;

use goodput_fleet::{Observation, Part, Question, Surveyed, Unusable};
use goodput_model::{BitRate, CheckReport, Host, Known, Record};
use goodput_store::{Store, StoreError};
use goodput_web::{
    ChangesPart, LoggedChange, MeasureAsked, MeshAsked, PathChange, Program, Running, SettingLine,
};

use super::{HOSTILE, IN_WORDS, followed};

/// A host whose names a hostile peer chose.
pub struct FakeHost(pub PathBuf);

impl Program for FakeHost {
    fn history(&self) -> Result<Store, StoreError> {
        Store::open(&self.0)
    }

    fn path_changes(&self, _: &Store, _: &str) -> Result<Vec<PathChange>, StoreError> {
        let [since, amount, before, after] = [HOSTILE; 4].map(String::from);
        let with_it = vec![HOSTILE.into()];
        let whose = "the path";
        Ok(vec![PathChange { since, whose, amount, before, after, with_it, records: [1, 2] }])
    }

    /// Four sites, of which the last one is called in a hostile way and sends slowly.
    fn mesh(&self, _: &Store, asked: &MeshAsked) -> Result<Surveyed, String> {
        let sites = ["a", "b", "c", HOSTILE].map(String::from);
        let pairs = sites.iter().flat_map(|from| sites.iter().map(move |to| (from, to)));
        let pairs =
            pairs.filter(|(from, to)| from != to && (from.as_str(), to.as_str()) != ("a", "b"));
        let test = |(n, (from, to)): (usize, (&String, &String))| Observation {
            record: n as i64 + 1,
            sender: from.clone(),
            receiver: to.clone(),
            at_s: 0.0,
            goodput: BitRate(if from == HOSTILE { 3e8 } else { 9e8 } * (1.0 + n as f64 / 1e4)),
            rtt_us: Known::missing(HOSTILE),
            limit: HOSTILE.into(),
            limit_at: Part::Sender,
            share_of_limit: None,
            is_partial: false,
        };
        let seen: Vec<_> = pairs.enumerate().map(test).collect();
        let question = Question { now_s: 7200.0, slow_percent: asked.slow_percent };
        Ok(Surveyed {
            matrix: Known::Value(goodput_fleet::matrix(sites.to_vec(), &seen, question)),
            left_out: [(Unusable::Datagrams, 2)].into(),
            unreadable: vec![HOSTILE.into()],
        })
    }

    fn check(&self) -> Result<CheckReport, String> {
        let [name, kernel, goodput] = [HOSTILE; 3].map(String::from);
        Ok(CheckReport {
            format: 1,
            started: "2026-01-01T00:00:00Z".into(),
            host: Host { name, kernel, goodput, cpus: 2 },
            devices: vec![HOSTILE.into()],
            watched_s: Known::missing("once"),
            findings: Vec::new(),
            undecided: Vec::new(),
        })
    }

    fn settings(&self) -> Vec<SettingLine> {
        let line = |value| SettingLine { name: HOSTILE.into(), title: "It does".into(), value };
        vec![line(Ok(HOSTILE.into())), line(Err(HOSTILE.into()))]
    }

    fn changes(&self, before: Option<u64>, most: usize) -> Result<ChangesPart, String> {
        let mut changes = self.standing()?;
        // The log has one more than the newest ones.
        changes.truncate(if before.is_some() { 1 } else { most });
        Ok(ChangesPart { changes, older: before.is_none().then_some(7) })
    }

    fn standing(&self) -> Result<Vec<LoggedChange>, String> {
        let [time, setting, from, to, what, run, place] = [HOSTILE; 7].map(String::from);
        let here = LoggedChange { time, setting, from, to, what, run, place, host: String::new() };
        let there = LoggedChange { host: format!("ssh://{HOSTILE}"), ..here.clone() };
        Ok(vec![here, there])
    }

    fn take_back(&self, change: &LoggedChange) -> Result<String, String> {
        Ok(format!("{}: taken back", change.setting))
    }

    fn saved(&self) -> Vec<String> {
        vec![HOSTILE.into()]
    }

    fn remove_saved(&self) -> Vec<String> {
        vec![format!("{HOSTILE}: removed")]
    }

    fn leftovers(&self) -> Vec<String> {
        vec![HOSTILE.into()]
    }

    fn undo(&self) -> Result<Vec<String>, String> {
        Ok(vec![format!("{HOSTILE}: put back")])
    }

    fn left_at_hosts(&self) -> Vec<String> {
        vec![format!("ssh://{HOSTILE}: left")]
    }

    fn undo_at_hosts(&self) -> Vec<String> {
        vec![format!("ssh://{HOSTILE}: put back there")]
    }

    fn in_words(&self, mut record: Record) -> Record {
        record.doubts.push(IN_WORDS.into());
        record
    }

    fn report(&self, _: &Record) -> String {
        format!("printed {HOSTILE}")
    }

    fn measurement(&self, asked: &MeasureAsked) -> Result<Command, String> {
        if asked.flows.is_some() {
            return Err(format!("--flows: {HOSTILE}"));
        }
        let (target, interval) = (&asked.target, followed::INTERVAL);
        let mut command = Command::new("echo");
        command.arg(format!("{{\"event\":\"note\",\"text\":{target:?}}}\n{interval}"));
        Ok(command)
    }

    fn running(&self) -> Vec<Running> {
        followed::running()
    }

    fn cause(&self, rule: &str) -> Option<&'static str> {
        (rule == "receive-window").then_some("The receiver's window is too small")
    }
}
