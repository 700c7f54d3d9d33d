//! Bytes that the fuzzer found worth keeping go through their target on every test run, and so do some that it never
//! saw.

use std::fs;
use std::path::PathBuf;

use goodput_fuzzed::targets::ALL;
use goodput_testing::seeds::unpack;
use proptest::prelude::*;

/// Bytes of all corpora together at most: they are in the repository.
const SIZE_MAX: u64 = 1 << 20;

/// The seeds of a target, in one file.
fn corpus(target: &str) -> Vec<u8> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus"));
    let file = folder.join(target).with_extension("seeds");
    fs::read(&file).unwrap_or_else(|why| panic!("{file:?}: {why}"))
}

#[test]
fn every_seed_goes_through_its_target() {
    let mut size = 0;
    for target in ALL {
        let packed = corpus(target.id);
        let seeds = unpack(&packed).unwrap_or_else(|| panic!("{} is cut short", target.id));
        assert!(!seeds.is_empty(), "{} has no seeds", target.id);
        size += packed.len() as u64;
        for seed in seeds {
            // Before it runs: a panic does not say which bytes it was about.
            println!("{} {}", target.id, seed.escape_ascii());
            (target.run)(seed);
        }
    }
    let minimise = "minimise them (`cargo xtask fuzz --keep`)";
    assert!(size <= SIZE_MAX, "{size} bytes of seeds: {minimise}");
}

#[test]
fn the_list_is_the_files() {
    let names = |folder: &str| -> Vec<String> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder);
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let mut names: Vec<_> = entries
            .filter_map(|entry| {
                let path = entry.path();
                let is_folder = entry.file_type().unwrap().is_dir();
                let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
                (is_folder || stem != "mod").then_some(stem)
            })
            .collect();
        names.sort();
        names.dedup();
        names
    };
    let ids: Vec<_> = ALL.iter().map(|target| target.id).collect();
    assert_eq!(names("src/targets"), ids);
    assert_eq!(names("../../fuzz/corpus"), ids);
}

proptest! {
    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        ALL.iter().for_each(|target| (target.run)(&bytes));
    }
}
