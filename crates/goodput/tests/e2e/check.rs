//! `goodput check`: a look without traffic.

use crate::common::{Home, stderr};

#[test]
fn a_check_prints_what_it_looked_at_and_leaves_by_what_it_found() {
    let output = Home::new().run(&["check", "lo", "--watch", "0.2", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["devices"], serde_json::json!(["lo"]));
    assert!(report["watched_s"].as_f64().is_some_and(|s| s >= 0.2), "{report}");
    let findings = report["findings"].as_array().unwrap();
    let seen = findings.iter().any(|finding| finding["confidence"] != "possible");
    assert_eq!(output.status.code(), Some(i32::from(seen)), "{report}");
}

#[test]
fn a_device_that_is_not_there_is_an_error() {
    let output = Home::new().run(&["check", "nosuch0"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("no device nosuch0"), "{said}");
}
