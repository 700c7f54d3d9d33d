//! Verdicts on artificial records.

use goodput_model::Place;
use serde_json::json;

use super::*;

fn record(limit: &str, found: &[&str], goodput: f64) -> Record {
    let missing = json!({ "missing": "made up" });
    let end = json!({
        "cpu_percent": missing, "host_cpu_percent": missing,
        "softirq_percent": missing, "steal_percent": missing,
    });
    let findings: Vec<_> = found.iter().map(|rule| json!({
        "rule": rule, "end": "near", "confidence": "likely", "share_percent": missing,
        "summary": "made up", "evidence": [], "predicted_bits_per_s": missing, "changes": [],
    })).collect();
    let record = json!({
        "format": 1, "kind": "test", "started": "2026-01-01T00:00:00Z", "target": "far",
        "plan": goodput_model::Plan::standard(),
        "ends": { "near": missing, "far": missing },
        "intervals": [],
        "result": {
            "goodput_bits_per_s": goodput, "duration_s": 2.0, "precision_percent": missing,
            "ceiling_bits_per_s": missing, "directions": [], "near": end, "far": end,
        },
        "verdict": {
            "limit": limit, "end": "near", "share_percent": missing, "summary": "made up",
            "sender": "near",
        },
        "findings": findings, "undecided": [], "doubts": [],
    });
    serde_json::from_value(record).unwrap()
}

fn failing(expect: &Expect, record: &Record) -> Vec<&'static str> {
    judge(expect, record).into_iter().filter(|e| !e.ok).map(|e| e.what).collect()
}

fn expect() -> Expect {
    Expect {
        limit: vec!["none".into(), "shaper-rate".into()],
        end: Some(Place::Near),
        not: vec!["path-loss".into()],
        goodput: Some(GoodputRange { min: Some(BitRate(1e6)), max: Some(BitRate(2e6)) }),
        ..Expect::default()
    }
}

#[test]
fn a_record_that_meets_all_fails_nothing() {
    let record = record("shaper-rate", &["shaper-rate"], 1.5e6);
    assert_eq!(judge(&expect(), &record).len(), 4);
    assert_eq!(failing(&expect(), &record), [""; 0]);
}

#[test]
fn each_expectation_fails_on_its_own() {
    assert_eq!(failing(&expect(), &record("path-rate", &[], 1.5e6)), ["limit"]);
    assert_eq!(failing(&expect(), &record("none", &["path-loss"], 1.5e6)), ["not"]);
    assert_eq!(failing(&expect(), &record("none", &[], 0.5e6)), ["goodput"]);
    assert_eq!(failing(&expect(), &record("none", &[], 2.5e6)), ["goodput"]);
    let elsewhere = Expect { end: Some(Place::Path), ..expect() };
    assert_eq!(failing(&elsewhere, &record("none", &[], 1.5e6)), ["end"]);
}

#[test]
fn both_limits_must_be_named_and_one_of_them_first() {
    let expect = Expect { both: vec!["a".into(), "b".into()], ..Expect::default() };
    assert_eq!(failing(&expect, &record("b", &["b", "a"], 1e6)), [""; 0]);
    assert_eq!(failing(&expect, &record("a", &["a", "c"], 1e6)), ["both"]);
    assert_eq!(failing(&expect, &record("c", &["c", "a", "b"], 1e6)), ["both"]);
}

#[test]
fn on_a_healthy_path_any_other_finding_is_an_alarm() {
    let limit = vec!["none".into(), "path-rate".into()];
    let expect = Expect { limit, healthy: true, ..Expect::default() };
    assert_eq!(failing(&expect, &record("none", &[], 1e6)), [""; 0]);
    assert_eq!(failing(&expect, &record("path-rate", &["path-rate"], 1e6)), [""; 0]);
    assert_eq!(failing(&expect, &record("path-rate", &["path-rate", "a"], 1e6)), ["healthy"]);
}

#[test]
fn what_is_not_expected_is_not_judged() {
    assert!(judge(&Expect::default(), &record("x", &["y"], 0.0)).is_empty());
}

#[test]
fn a_judgement_says_what_was_wanted_and_what_came() {
    let judged = judge(&expect(), &record("none", &["path-loss"], 2.5e6));
    let said: Vec<_> = judged.iter().map(|e| (e.wanted.as_str(), e.got.as_str())).collect();
    assert_eq!(said[0], ("none or shaper-rate", "none"));
    assert_eq!(said[2], ("no finding of path-loss", "path-loss"));
    assert_eq!(said[3], ("1 Mbit/s to 2 Mbit/s", "2.50 Mbit/s"));
}
