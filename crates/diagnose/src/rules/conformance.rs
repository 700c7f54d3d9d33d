//! What holds for every rule, so that a new one is tested before anyone writes a test for it.

use std::collections::BTreeSet;

use super::ALL;
use crate::rule::HEADINGS;
use crate::testing::Case;
use crate::view::View;

#[test]
fn the_folder_is_the_list() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/rules");
    let files = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().file_name());
    let stems = files.map(|f| f.to_str().unwrap().strip_suffix(".rs").unwrap().replace('_', "-"));
    let folder: BTreeSet<_> = stems.filter(|s| s != "mod" && s != "conformance").collect();
    let list: BTreeSet<_> = ALL.iter().map(|rule| rule.id.to_string()).collect();
    assert_eq!(folder, list);
    assert_eq!(list.len(), ALL.len(), "ids are unique");
}

#[test]
fn ids_are_kebab_case_and_titles_are_phrases() {
    for rule in ALL {
        assert!(rule.id.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", rule.id);
        assert!(!rule.title.is_empty() && !rule.title.ends_with('.'), "{}", rule.id);
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(rule.witness_name.chars().all(plain), "{}", rule.id);
    }
}

#[test]
fn every_rule_explains_a_part_of_the_account_and_none_twice() {
    for rule in ALL {
        let parts: BTreeSet<_> = rule.refines.iter().collect();
        assert!(!parts.is_empty() && parts.len() == rule.refines.len(), "{}", rule.id);
    }
}

#[test]
fn every_page_has_its_headings_in_order() {
    for rule in ALL {
        let page = rule.page();
        let headings: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("# ")).collect();
        assert_eq!(headings, HEADINGS, "{}", rule.id);
        let filled =
            page.split("# ").skip(1).all(|part| part.lines().nth(1).is_some_and(|l| !l.is_empty()));
        assert!(filled, "{} has an empty part", rule.id);
    }
}

#[test]
fn on_empty_evidence_no_rule_can_tell() {
    let evidence = Case::empty().evidence();
    for rule in ALL {
        assert!((rule.check)(&View::new(&evidence)).is_err(), "{}", rule.id);
        assert!((rule.witness)(&View::new(&evidence)).is_err(), "{}", rule.id);
    }
}

#[test]
fn without_the_far_end_and_without_samples_no_rule_can_tell() {
    let evidence = Case::empty().without_far().evidence();
    for rule in ALL {
        assert!((rule.check)(&View::new(&evidence)).is_err(), "{}", rule.id);
    }
}

#[test]
fn on_healthy_evidence_every_rule_stays_quiet() {
    for case in
        [Case::healthy(), Case::healthy().congestion("cubic"), Case::healthy().tbf(2e9, 250_000)]
    {
        let evidence = case.evidence();
        for rule in ALL {
            let answer = (rule.check)(&View::new(&evidence));
            assert_eq!(answer, Ok(None), "{}", rule.id);
        }
    }
}
