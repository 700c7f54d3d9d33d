//! `goodput top`: the connections of this very test, seen from outside.

use std::time::Duration;

use goodput_model::{ConnectionActivity, ConnectionSummary, Connections, Role};

use crate::common::{Home, stderr, stdout};
use crate::transfer::Transfer;

/// What goodput prints of the connections of `transfer`.
fn seen(transfer: &Transfer, options: &[&str]) -> String {
    let port = transfer.port.to_string();
    let always = ["top", "--once", "--every", "300ms", "--port", &port];
    let output = Home::new().run(&[&always, options].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn a_connection_has_its_program_its_rate_and_what_limits_it() {
    let transfer = Transfer::start(Duration::from_millis(5));
    let seen: Connections = serde_json::from_str(&seen(&transfer, &["--json"])).unwrap();
    assert!(seen.seconds >= 0.3, "{seen:?}");
    let end = |port: u16| seen.connections.iter().find(|one| one.local.port() == port).unwrap();
    let (sent, received) = (end(transfer.client_port), end(transfer.port));
    assert_eq!([sent.role, received.role], [Role::Sender, Role::Receiver]);
    assert!(sent.sent_bits_per_s.0 > 0.0 && received.received_bits_per_s.0 > 0.0);
    assert!(sent.limit().is_some(), "{sent:?}");
    let pid = |one: &ConnectionActivity| one.program.get().unwrap().pid;
    assert_eq!([pid(sent), pid(received)], [std::process::id(); 2]);
}

#[test]
fn the_lists_are_for_people() {
    let transfer = Transfer::start(Duration::from_millis(5));
    let list = seen(&transfer, &[]);
    assert!(list.starts_with("2 connections, 2 active;"), "{list}");
    let row = format!("{} → 127.0.0.1:{}", transfer.client_port, transfer.port);
    assert!(list.contains(&row) && list.contains("limited by"), "{list}");
    let summary = seen(&transfer, &["--summary", "--over", "500ms"]);
    assert!(summary.contains("share of time") && summary.contains("127.0.0.1 "), "{summary}");
    assert!(!summary.contains(&row), "{summary}");
    let json = seen(&transfer, &["--summary", "--over", "500ms", "--json"]);
    let summary: ConnectionSummary = serde_json::from_str(&json).unwrap();
    // Two looks of 300 ms are the least that covers it.
    assert!((0.5..60.0).contains(&summary.seconds), "{json}");
    assert_eq!(summary.by_peer.len(), 1, "{json}");
    assert!(summary.by_limiter.iter().any(|group| group.held_by.is_some()), "{json}");
}

#[test]
fn words_choose_rows_in_a_list_and_in_json() {
    let transfer = Transfer::start(Duration::from_millis(5));
    let received = format!("{} ←", transfer.port);
    let list = seen(&transfer, &["--filter", &received]);
    assert_eq!(list.matches(" → ").count() + list.matches(" ← ").count(), 1, "{list}");
    let json = seen(&transfer, &["--filter", &received, "--json"]);
    let seen: Connections = serde_json::from_str(&json).unwrap();
    assert_eq!(seen.connections.len(), 1, "{json}");
    assert_eq!(seen.connections[0].local.port(), transfer.port);
}

#[test]
fn what_is_not_there_is_an_empty_list() {
    let transfer = Transfer::start(Duration::from_millis(5));
    let none = seen(&transfer, &["--process", "no-such-program"]);
    assert!(none.starts_with("0 connections, 0 active"), "{none}");
    let elsewhere = seen(&transfer, &["--peer", "192.0.2.0/24"]);
    assert!(elsewhere.starts_with("0 connections"), "{elsewhere}");
    let here = seen(&transfer, &["--peer", "127.0.0.0/8"]);
    assert!(here.starts_with("2 connections"), "{here}");
    let refused = Home::new().run(&["top", "--once", "--every", "1ms"]);
    assert!(!refused.status.success() && stderr(&refused).contains("at least 100ms"));
}
