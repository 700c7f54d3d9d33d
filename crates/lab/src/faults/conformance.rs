//! What every kind of fault must satisfy, checked for the whole list.

use std::process::{Child, Stdio};

use super::*;
use crate::lab::Lab;
use crate::scenario::Scenario;
use crate::testing::{can_run, skip};

#[test]
fn ids_are_unique_kebab_case_and_in_order() {
    let ids: Vec<_> = ALL.iter().map(|kind| kind.id).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    for id in ids {
        assert!(id.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{id}");
    }
}

#[test]
fn the_list_is_the_folder() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/faults");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !["mod.rs", "conformance.rs", "filter_rules.rs"].contains(&name.as_str()))
        .collect();
    files.sort();
    let listed: Vec<_> =
        ALL.iter().map(|kind| format!("{}.rs", kind.id.replace('-', "_"))).collect();
    assert_eq!(files, listed);
}

#[test]
fn an_unknown_key_is_refused_and_each_missing_one_named() {
    for kind in ALL {
        let table: toml::Table = kind.example.parse().unwrap();
        assert!((kind.read)(table.clone()).is_ok(), "{}", kind.id);
        let mut more = table.clone();
        more.insert("surplus".into(), true.into());
        assert!((kind.read)(more).unwrap_err().message().contains("surplus"), "{}", kind.id);
        for key in table.keys() {
            let mut less = table.clone();
            less.remove(key);
            assert!((kind.read)(less).unwrap_err().message().contains(key), "{} {key}", kind.id);
        }
    }
}

#[test]
fn what_is_planted_is_read_back_from_the_kernel() {
    for kind in ALL {
        let text = format!(
            "name = \"x\"\ntitle = \"X.\"\n[[fault]]\nkind = \"{}\"\n{}",
            kind.id, kind.example
        );
        let faulty: Scenario = text.parse().unwrap();
        if !can_run(&faulty) {
            skip(&faulty.obstacle().unwrap_or_default());
            continue;
        }
        plant_and_read_back(&faulty);
    }
}

fn plant_and_read_back(faulty: &Scenario) {
    let fault = &faulty.faults[0].fault;
    let healthy = Scenario { faults: Vec::new(), ..faulty.clone() };
    let lab = Lab::up(&healthy).unwrap();
    let host = lab.host(&fault.host().to_string()).unwrap();
    let process = Waiting::in_host(host);
    let site = FaultTarget { host, pid: Some(process.0.id()) };
    let before = fault.read_back(site).unwrap();
    let undo = fault.plant(site).unwrap();
    let planted = fault.read_back(site).unwrap();
    assert_ne!(before, planted, "{fault:?} changed nothing");
    drop(undo);
    if fault.when() == PlantTime::ProcessRuns {
        assert_eq!(fault.read_back(site).unwrap(), before, "{fault:?} stayed");
    }
}

/// A process that waits for input that never comes.
struct Waiting(Child);

impl Waiting {
    fn in_host(host: &Host) -> Self {
        let mut command = host.command("cat").unwrap();
        Self(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}
