//! Requirements for every check.

use std::collections::BTreeSet;

use goodput_model::Snapshot;

use super::super::{HostView, check};
use super::ALL;

#[test]
fn ids_are_unique_and_kebab_case_and_titles_are_phrases() {
    let ids: BTreeSet<_> = ALL.iter().map(|check| check.id).collect();
    assert_eq!(ids.len(), ALL.len(), "ids are unique");
    let titles: BTreeSet<_> = ALL.iter().map(|check| check.title).collect();
    assert_eq!(titles.len(), ALL.len(), "titles are unique");
    for check in ALL {
        assert!(check.id.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", check.id);
        assert!(!check.title.is_empty() && !check.title.ends_with('.'), "{}", check.id);
    }
}

#[test]
fn without_facts_no_check_can_tell_and_none_fires() {
    let empty = Snapshot::default();
    let view = HostView { device: Some("eth0"), now: &empty, before: Some((&empty, 10.0)) };
    for one in ALL {
        assert!(!matches!(one.check(&view), Ok(Some(_))), "{}", one.id);
    }
    let checked = check(&[view]);
    assert_eq!(checked.findings, []);
    assert!(checked.undecided.len() >= ALL.len() - 1, "{:?}", checked.undecided);
}

#[test]
fn checks_of_the_host_are_asked_once() {
    let mut facts = Snapshot::default();
    facts.put("sysctl.net.ipv4.tcp_sack", "0");
    let view = |device| HostView { device: Some(device), now: &facts, before: None };
    let found = check(&[view("eth0"), view("eth1")]).findings;
    assert_eq!(found.len(), 1, "{found:?}");
}
