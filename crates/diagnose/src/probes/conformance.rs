//! Requirements for every probe.

use std::collections::BTreeSet;

use super::{ALL, Reading, splitting};

/// Causes that only a probe can show, so no rule names them.
const FOUND_BY_PROBES: [&str; 1] = ["per-flow-limit"];

#[test]
fn the_folder_is_the_list() {
    let helpers = ["mod", "reading", "rivals", "conformance"];
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/probes");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| {
            entry.unwrap().file_name().to_str()?.strip_suffix(".rs").map(Into::into)
        })
        .filter(|name: &String| !helpers.contains(&name.as_str()))
        .collect();
    let list: BTreeSet<String> = ALL.iter().map(|probe| probe.id.replace('-', "_")).collect();
    assert_eq!(list, files);
    assert_eq!(list.len(), ALL.len(), "ids are unique");
}

#[test]
fn pairs_name_rules_that_exist() {
    for probe in ALL {
        for rule in probe.pairs.iter().flat_map(|pair| [pair.one, pair.other]) {
            let known = crate::rules::find(rule).is_some();
            assert!(known || FOUND_BY_PROBES.contains(&rule), "{}: {rule}", probe.id);
        }
    }
}

#[test]
fn a_pair_is_two_causes_with_a_gap_between_its_thresholds_and_a_reason() {
    for probe in ALL {
        assert!(!probe.title.is_empty() && !probe.pairs.is_empty(), "{}", probe.id);
        for pair in probe.pairs {
            assert!(pair.one != pair.other && pair.why.len() > 20, "{}: {pair:?}", probe.id);
            let gap = match pair.read {
                Reading::Goodput { one_from, other_to }
                | Reading::Retransmitted { one_from, other_to }
                | Reading::Lost { one_from, other_to } => one_from - other_to,
                Reading::SameHost { least } => 2.0 * least,
            };
            assert!(gap > 0.0, "{}: {pair:?}", probe.id);
        }
    }
}

#[test]
fn the_pairs_that_are_confused_most_are_covered() {
    for (one, other) in [
        ("policer", "path-loss"),
        ("path-loss", "path-rate"),
        ("tso-oversize", "path-loss"),
        ("receive-window", "receiver-application"),
        ("send-buffer", "sender-application"),
        ("per-flow-limit", "path-rate"),
        ("path-rate", "receiver-cpu"),
        ("pmtu-black-hole", "path-loss"),
        ("sender-cpu", "receiver-cpu"),
        ("offload-off", "cpu-contention"),
    ] {
        assert!(!splitting(one, other).is_empty(), "{one} and {other}");
        assert_eq!(splitting(one, other).len(), splitting(other, one).len());
    }
}
