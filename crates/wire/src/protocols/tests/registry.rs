//! The list against the folder, and the entries against each other.

use std::collections::HashSet;

use super::super::{ALL, Opening, opening};

#[test]
fn the_list_is_the_folder() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/protocols");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .map(|name| name.trim_end_matches(".rs").replace('_', "-"))
        .filter(|id| id != "mod" && id != "tests")
        .collect();
    let mut ids: Vec<String> = ALL.iter().map(|protocol| protocol.id.into()).collect();
    files.sort();
    ids.sort();
    assert_eq!(ids, files);
}

#[test]
fn ids_are_unique_and_summaries_are_one_line() {
    let ids: HashSet<_> = ALL.iter().map(|protocol| protocol.id).collect();
    assert_eq!(ids.len(), ALL.len());
    for protocol in ALL {
        let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(protocol.id.chars().all(kebab), "{}", protocol.id);
        assert!(!protocol.summary.is_empty() && !protocol.summary.contains('\n'));
    }
}

#[test]
fn no_protocol_claims_what_others_say_first() {
    let foreign: [&[u8]; 4] =
        [b"GET / HTTP/1.1\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"\x16\x03\x01\x02\x00", &[0; 64]];
    for first in foreign {
        assert!(matches!(opening(ALL, first), Opening::Unknown), "{}", first.escape_ascii());
    }
}
