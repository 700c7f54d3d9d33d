//! Meshes of a thousand sites: their schedules are within 2 % of the shortest possible.
//!
//! Rounds are counted against a lower bound; no time is measured.

use std::collections::HashSet;

use goodput_fleet::{fewest_rounds, rounds};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

const SITES: usize = 1000;

/// Each site's place: that of its uplink, or its own.
fn places(uplink_of: impl Fn(usize) -> Option<usize>) -> Vec<usize> {
    (0..SITES).map(|site| uplink_of(site).unwrap_or(SITES + site)).collect()
}

fn full_mesh(places: &[usize]) -> Vec<[usize; 2]> {
    let after = |one: usize| (one + 1..SITES).map(move |two| [one, two]);
    (0..SITES).flat_map(after).map(|pair| pair.map(|site| places[site])).collect()
}

/// Rounds, and the fewest possible, after checking that no place is twice in a round.
fn counted(tests: &[[usize; 2]]) -> (usize, usize) {
    let rounds = rounds(2 * SITES, tests);
    let mut taken = HashSet::new();
    for ([one, two], round) in tests.iter().zip(&rounds) {
        assert!(taken.insert((*one, *round)), "place {one} is twice in round {round}");
        assert!(one == two || taken.insert((*two, *round)), "place {two} is twice in {round}");
    }
    (rounds.iter().max().map_or(0, |last| last + 1), fewest_rounds(2 * SITES, tests))
}

fn is_short(tests: &[[usize; 2]], what: &str) {
    let (rounds, fewest) = counted(tests);
    println!("{what}: {rounds} rounds, at least {fewest}");
    assert!(rounds * 100 <= fewest * 102, "{what}: {rounds} rounds, at least {fewest}");
}

#[test]
fn a_full_mesh_without_uplinks_has_the_fewest_rounds() {
    let tests = full_mesh(&places(|_| None));
    assert_eq!(counted(&tests), (999, 999));
}

#[test]
fn twenty_uplinks_of_fifty_sites() {
    is_short(&full_mesh(&places(|site| Some(site % 20))), "20 uplinks of 50");
}

#[test]
fn uplinks_beside_sites_of_their_own() {
    let ten = places(|site| (site < 500).then_some(site % 10));
    is_short(&full_mesh(&ten), "10 uplinks of 50, 500 alone");
    let one = places(|site| (site < 300).then_some(0));
    is_short(&full_mesh(&one), "1 uplink of 300, 700 alone");
    let twos = places(|site| Some(site / 2));
    is_short(&full_mesh(&twos), "500 uplinks of 2");
}

#[test]
fn uplinks_of_any_size_and_named_pairs() {
    for seed in 0..3 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let uplinks = random.random_range(3..60);
        let mut any = || random.random_bool(0.8).then(|| random.random_range(0..uplinks));
        let drawn: Vec<_> = (0..SITES).map(|_| any()).collect();
        let tests = full_mesh(&places(|site| drawn[site]));
        is_short(&tests, &format!("{uplinks} uplinks, seed {seed}"));
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let alone = full_mesh(&places(|_| None));
        let named: Vec<_> = alone.into_iter().filter(|_| random.random_bool(0.3)).collect();
        is_short(&named, &format!("three pairs in ten, seed {seed}"));
    }
}
