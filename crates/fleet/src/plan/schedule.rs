//! When which pair is tested, by the pairs' numbers: a mesh of a thousand sites has half a million pairs.

use std::cmp::Reverse;

use goodput_model::Bytes;

use super::budget::{Bought, Wish, buy};
use super::calendar::{Calendar, DAY_S};
use super::rounds::{fewest_rounds, rounds};
use crate::mesh::{Mesh, Pair};

/// The rounds of a mesh, and what the budgets pay for. Pairs are indexes of the mesh's.
pub(crate) struct Schedule {
    /// The pairs of each round that are paid for at least once a day; those of a higher priority come first.
    pub rounds: Vec<Vec<usize>>,
    /// With fewer rounds, a host or an uplink would be in two tests at once.
    pub fewest_rounds: usize,
    /// From the beginning of the first round to the end of the last one, seconds; none if no window has room for a round.
    pub mesh_s: Option<f64>,
    /// Meshes that begin within 24 hours, at most.
    pub per_day: u32,
    /// In how many of these each pair is tested.
    pub bought: Bought,
}

impl Schedule {
    /// Whether a pair is tested in the mesh of this number; its tests are spread evenly.
    pub fn is_in(&self, number: u64, pair: usize) -> bool {
        is_in_turn(number, self.bought.runs[pair], self.per_day)
    }
}

/// Whether a pair that is tested `runs` times in `turns` turns is tested in this one. In the first one, every pair is: who
/// starts a mesh sees what it finds.
fn is_in_turn(number: u64, runs: u32, turns: u32) -> bool {
    let (runs, turns) = (u128::from(runs), u128::from(turns.max(1)));
    let number = u128::from(number);
    ((number + 1) * runs).div_ceil(turns) > (number * runs).div_ceil(turns)
}

/// Schedules a mesh.
pub(crate) fn schedule(mesh: &Mesh) -> Schedule {
    let all: Vec<usize> = (0..mesh.pairs.len()).collect();
    let whole = Tournament::of(mesh, &all);
    let per_day = meshes_per_day(mesh, &whole);
    let bought = bought(mesh, &whole, per_day);
    let paid: Vec<usize> = all.iter().copied().filter(|pair| bought.runs[*pair] > 0).collect();
    let kept = if paid.len() < all.len() { Tournament::of(mesh, &paid) } else { whole };
    let mesh_s = kept.mesh_s(mesh);
    Schedule { rounds: kept.rounds, fewest_rounds: kept.fewest, mesh_s, per_day, bought }
}

/// Pairs in rounds.
struct Tournament {
    /// Indexes of the pairs of each round.
    rounds: Vec<Vec<usize>>,
    fewest: usize,
}

impl Tournament {
    fn of(mesh: &Mesh, pairs: &[usize]) -> Self {
        let places = mesh.uplinks.len() + mesh.sites.len();
        let tests: Vec<_> = pairs.iter().map(|pair| occupied(mesh, mesh.pairs[*pair])).collect();
        let round = rounds(places, &tests);
        let mut all = vec![Vec::new(); round.iter().max().map_or(0, |last| last + 1)];
        for (pair, round) in pairs.iter().zip(round) {
            all[round].push(*pair);
        }
        all.sort_by_key(|round| {
            let most = round.iter().map(|pair| mesh.pairs[*pair].priority).max();
            let often = round.iter().filter(|pair| Some(mesh.pairs[**pair].priority) == most);
            Reverse((most, often.count()))
        });
        Self { rounds: all, fewest: fewest_rounds(places, &tests) }
    }

    fn mesh_s(&self, mesh: &Mesh) -> Option<f64> {
        Calendar::new(&mesh.windows, mesh.round_s()).done_after_s(self.rounds.len())
    }
}

/// The places of a pair: each site's uplink, or its host.
fn occupied(mesh: &Mesh, pair: Pair) -> [usize; 2] {
    pair.sites.map(|site| mesh.sites[site].uplink.unwrap_or(mesh.uplinks.len() + site))
}

/// Meshes that begin within 24 hours, at most: a mesh that takes longer than `every` delays the next one.
fn meshes_per_day(mesh: &Mesh, tournament: &Tournament) -> u32 {
    let Some(every_s) = mesh.every_s else { return 1 };
    let every_s = every_s.max(1.0);
    if !mesh.windows.is_empty() {
        let calendar = Calendar::new(&mesh.windows, mesh.round_s());
        return calendar.meshes_per_day(tournament.rounds.len(), every_s);
    }
    let apart_s = every_s.max(tournament.mesh_s(mesh).unwrap_or(DAY_S));
    (DAY_S / apart_s).ceil() as u32
}

/// The runs that the budgets pay for, by pair; equal pairs in the order of the rounds, which spreads what is left out
/// over all sites.
fn bought(mesh: &Mesh, tournament: &Tournament, per_day: u32) -> Bought {
    let order: Vec<usize> = tournament.rounds.iter().flatten().copied().collect();
    let wish = |pair: &usize| {
        let Pair { sites, priority, .. } = mesh.pairs[*pair];
        Wish { sites, priority, cost: cost(mesh, mesh.pairs[*pair]).unwrap_or(Bytes(0)) }
    };
    let wishes: Vec<Wish> = order.iter().map(wish).collect();
    let budgets: Vec<_> = mesh.sites.iter().map(|site| site.budget).collect();
    let by_round = buy(&wishes, per_day, &budgets, mesh.budget);
    let mut bought = Bought { runs: vec![0; order.len()], short: vec![None; order.len()] };
    for (place, pair) in order.into_iter().enumerate() {
        bought.runs[pair] = by_round.runs[place];
        bought.short[pair] = by_round.short[place];
    }
    bought
}

/// What the tests of a pair in one mesh move over the line of each of its sites, if the file says at which rate.
pub(super) fn cost(mesh: &Mesh, pair: Pair) -> Option<Bytes> {
    let bytes = pair.rate?.bytes_in(mesh.length_s) * f64::from(mesh.directions());
    Some(Bytes(bytes.ceil() as u64))
}

#[cfg(test)]
mod tests {
    use super::is_in_turn;

    #[test]
    fn a_pair_that_a_budget_pays_for_rarely_is_in_as_many_turns() {
        for (runs, turns) in [(0, 4), (1, 4), (3, 4), (4, 4), (5, 7)] {
            for first in 0..20 {
                let within = (first..first + u64::from(turns))
                    .filter(|number| is_in_turn(*number, runs, turns));
                assert_eq!(within.count(), runs as usize, "{runs} of {turns} from {first}");
            }
            assert_eq!(is_in_turn(0, runs, turns), runs > 0, "{runs} of {turns}");
        }
    }
}
