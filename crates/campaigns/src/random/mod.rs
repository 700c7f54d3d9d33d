//! Faults drawn at random: a path, a fault on it, and the same path without the fault, each as a scenario that
//! `goodput lab` runs. The same seed and number always give the same case.

mod classes;
mod path;
mod scene;

use anyhow::{Context, Result};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use sha2::{Digest, Sha256};

pub use classes::mended;
use classes::{Class, Twins};
use path::Path;
use scene::Scene;

/// Paths drawn before a class that fits none of them is given up.
const MAX_DRAWS: u32 = 10_000;

/// Two values that no queue of the drawn paths distinguishes: none of them has bands.
const SAME: &str = "socket.priority=0,1";

/// One case.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// `class-number`.
    pub name: String,
    /// The scenario with its fault.
    pub faulty: String,
    /// The same path with nothing wrong, as the baseline for the fault's cost.
    pub healthy: String,
    /// Payload that the path carries at best, bits per second; `None` for a cable without a rate of its own.
    pub payload_rate: Option<f64>,
    /// Whether the path keeps the CPUs so idle that others may be measured beside it.
    pub light: bool,
}

impl Case {
    /// The SHA-256 of the fault as it was drawn, in hexadecimal.
    pub fn digest(&self) -> String {
        digest(&self.faulty)
    }
}

impl Known {
    /// The same.
    pub fn digest(&self) -> String {
        digest(&format!("{}\n{}", self.scenario, self.change))
    }
}

/// SHA-256, in hexadecimal digits.
fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Which classes are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Every class.
    All,
    /// Classes that a setting of one of the hosts removes.
    Fixable,
}

/// The random numbers of case `number` of a seed.
fn numbered(seed: u64, number: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(number))
}

/// `None` if no path among very many fits the class.
fn draw(seed: u64, number: u64, which: Which) -> Option<Case> {
    let mut rng = numbered(seed, number);
    let wanted = |class: &&Class| which == Which::All || class.fixable;
    let classes: Vec<_> = classes::ALL.iter().filter(wanted).collect();
    let class = classes.choose(&mut rng)?;
    (0..MAX_DRAWS).find_map(|_| {
        let path = Path::draw(&mut rng);
        let name = format!("{}-{number}", class.id);
        let end = class.spot.end(path.reverse);
        let mut twins = Twins {
            faulty: Scene::faulty(&name, class.title, class.rules, end, &path),
            healthy: Scene::healthy(&healthy_name(&name), &path),
        };
        (class.plant)(&mut rng, &path, &mut twins)?;
        let (faulty, healthy) = (twins.faulty.into_toml(), twins.healthy.into_toml());
        let payload_rate = path.payload_rate();
        Some(Case { name, faulty, healthy, payload_rate, light: path.is_light() })
    })
}

/// Cases `first` to `first + count` of a seed, of every class.
pub fn cases(seed: u64, first: u64, count: u64) -> Result<Vec<Case>> {
    let numbers = first..first.saturating_add(count);
    numbers.map(|number| case(seed, number, Which::All)).collect()
}

/// A path with nothing wrong, and a change on it whose effect is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// `class-number`, or `slower-number`.
    pub name: String,
    /// The scenario.
    pub scenario: String,
    /// The change, as `goodput compare` takes it: as it is, and the change.
    pub change: String,
    /// Whether the path keeps the CPUs so idle that others may be measured beside it.
    pub light: bool,
}

/// The healthy paths of cases `first` to `first + count` of a seed; on each, a change that changes nothing.
pub fn same(seed: u64, first: u64, count: u64) -> Result<Vec<Known>> {
    let known = |case: Case| Known {
        name: healthy_name(&case.name),
        scenario: case.healthy,
        change: SAME.into(),
        light: case.light,
    };
    Ok(cases(seed, first, count)?.into_iter().map(known).collect())
}

/// Paths `first` to `first + count` of a seed; on each, a change takes `percent` of the rate of the sender's shaper.
pub fn slower(seed: u64, first: u64, count: u64, percent: f64) -> Vec<Known> {
    let path = |number: u64| {
        let mut rng = numbered(seed, number);
        let name = format!("slower-{number}");
        let drawn = (0..MAX_DRAWS).find_map(|_| {
            let path = Path::draw(&mut rng);
            let mut scene = Scene::healthy(&name, &path);
            let change = classes::shaped(&path, &mut scene, percent)?;
            Some((scene.into_toml(), change, path.is_light()))
        });
        drawn.map(|(scenario, change, light)| Known { name, scenario, change, light })
    };
    (first..first.saturating_add(count)).filter_map(path).collect()
}

/// The name of a case's healthy path.
pub fn healthy_name(case: &str) -> String {
    format!("{case}-healthy")
}

/// Case `number` of a seed, or why there is none.
pub fn case(seed: u64, number: u64, which: Which) -> Result<Case> {
    draw(seed, number, which).with_context(|| format!("no path fits fault {number} of seed {seed}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_case_is_the_same_each_time_it_is_drawn() {
        let cases = |seed| (0..50).map(|n| draw(seed, n, Which::All)).collect::<Vec<_>>();
        assert_eq!(cases(1), cases(1));
        assert_ne!(cases(1), cases(2));
        let digest = |seed| draw(seed, 0, Which::All).unwrap().digest();
        assert_eq!(digest(1).len(), 64);
        assert_ne!(digest(1), digest(2));
    }

    #[test]
    fn every_class_is_drawn_and_differs_from_its_healthy_twin() {
        let cases: Vec<_> =
            (0..1000).map(|n| draw(1, n, Which::All).expect("a path fits")).collect();
        let class = |case: &Case| case.name.rsplit_once('-').unwrap().0.to_owned();
        let drawn: BTreeSet<_> = cases.iter().map(class).collect();
        assert_eq!(drawn.len(), classes::ALL.len(), "{drawn:?}");
        for case in &cases {
            let parse = |text: &str| text.parse::<toml::Table>().expect("TOML");
            let (faulty, healthy) = (parse(&case.faulty), parse(&case.healthy));
            let without_words = |mut table: toml::Table| {
                ["name", "title", "expect"].iter().for_each(|key| drop(table.remove(*key)));
                table
            };
            assert_ne!(without_words(faulty), without_words(healthy), "{}", case.name);
        }
    }
}
