//! Turns of a mesh: when the next one begins, and its tests.

use goodput_model::Direction;
use serde::{Deserialize, Serialize};

use super::language::{FORMAT, is_id};
use super::single::{KEPT_S, Task};
use crate::mesh::{Mesh, Site};
use crate::plan::schedule;

/// A mesh that is tested once. The bus keeps the newest one, so that any coordinator can go on with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Begins the ids of its tasks.
    pub id: String,
    /// Its number since the mesh file changed, from 0.
    pub number: u64,
    /// The text of the mesh file.
    pub mesh: String,
    /// When it began, seconds since 1970, by the clock of the bus. If no window was open: when one opens.
    pub began_s: f64,
    /// Whether each of its tasks has an outcome.
    pub has_ended: bool,
}

impl Turn {
    /// Reads a turn; none if it can't be one. Anyone who may write to the bus may have written it.
    pub fn read(json: &[u8]) -> Option<Self> {
        let turn: Self = serde_json::from_slice(json).ok()?;
        (is_id(&turn.id) && turn.number < u64::MAX && turn.began_s.is_finite()).then_some(turn)
    }
}

/// What the coordinator does next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Next {
    /// Go on with the turn that another coordinator left.
    GoOn,
    /// Begin the turn of this number.
    Begin(u64),
    /// Wait for this long, seconds, then ask again.
    Wait(f64),
}

/// What follows the turn `last`, if there was one, at `now_s` by the clock of the bus. `every_s`: time between the
/// beginnings of two turns; absent: a turn begins at once.
pub fn next(last: Option<&Turn>, mesh: &str, every_s: Option<f64>, now_s: f64) -> Next {
    let Some(last) = last.filter(|last| last.mesh == mesh) else { return Next::Begin(0) };
    if !last.has_ended {
        // Of an older one, nobody knows which tests were made.
        let is_known = now_s - last.began_s < KEPT_S as f64;
        return if is_known { Next::GoOn } else { Next::Begin(last.number + 1) };
    }
    // The clock of the bus may have gone back.
    let left_s = every_s.map_or(0.0, |every_s| (last.began_s + every_s - now_s).min(every_s));
    if left_s > 0.0 { Next::Wait(left_s) } else { Next::Begin(last.number + 1) }
}

/// The tasks of a turn. They are made round by round: those of a thousand sites are a million.
pub struct Tasks<'a> {
    mesh: &'a Mesh,
    turn: &'a Turn,
    /// Indexes of the pairs of each round.
    rounds: Vec<Vec<usize>>,
}

/// The tasks of a turn.
pub fn tasks<'a>(mesh: &'a Mesh, turn: &'a Turn) -> Tasks<'a> {
    let mut schedule = schedule(mesh);
    let mut rounds = std::mem::take(&mut schedule.rounds);
    for round in &mut rounds {
        round.retain(|pair| schedule.is_in(turn.number, *pair));
    }
    rounds.retain(|round| !round.is_empty());
    Tasks { mesh, turn, rounds }
}

impl Tasks<'_> {
    /// When their turn began, seconds since 1970, by the clock of the bus.
    pub fn began_s(&self) -> f64 {
        self.turn.began_s
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        let pairs: usize = self.rounds.iter().map(Vec::len).sum();
        pairs * if self.mesh.both_directions { 2 } else { 1 }
    }

    /// The pairs of each round, and the tests of each pair, one after the other.
    pub fn rounds(&self) -> impl Iterator<Item = Vec<Vec<Task>>> {
        let tests = |pair: &usize| self.of(self.mesh.pairs[*pair].sites);
        self.rounds.iter().map(move |round| round.iter().map(tests).collect())
    }

    /// The tests of a pair. One of its sites can be called, or the mesh file would have been refused.
    fn of(&self, [one, two]: [usize; 2]) -> Vec<Task> {
        let ways = [Some([one, two]), self.mesh.both_directions.then_some([two, one])];
        let id = |way: [usize; 2]| format!("{}-{}-{}", self.turn.id, way[0], way[1]);
        ways.into_iter().flatten().filter_map(|way| task_of(self.mesh, id(way), way)).collect()
    }
}

/// The side that can be called listens: the receiver, if both can. None if neither can. Whoever gives the task out says until when it may be
/// begun, and which coordinator that is.
pub(super) fn task_of(mesh: &Mesh, id: String, way: [usize; 2]) -> Option<Task> {
    let [sender, receiver] = way;
    let [from, to]: [&Site; 2] = [&mesh.sites[sender], &mesh.sites[receiver]];
    let (near, far, direction) = match from.can_call(to) {
        true => (from, to, Direction::Send),
        false => (to, from, Direction::Reverse),
    };
    if !near.can_call(far) {
        return None;
    }
    Some(Task {
        format: FORMAT,
        id,
        near: near.name.clone(),
        far: far.name.clone(),
        target: far.target.clone()?,
        by_ssh: far.by_ssh.clone(),
        direction,
        length_s: mesh.length_s,
        rate: None,
        rate_limit_of: None,
        expires_s: 0.0,
        token: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::super::single::Role;
    use super::*;
    use std::collections::HashSet;

    const THREE: &str =
        "[site.a]\ntarget = \"a.example\"\n[site.b]\ntarget = \"b.example\"\n[site.c]\n";

    fn turn(mesh: &str, number: u64) -> Turn {
        Turn { id: "t".into(), number, mesh: mesh.into(), began_s: 1000.0, has_ended: true }
    }

    fn all(mesh: &str, number: u64) -> Vec<Task> {
        let parsed = Mesh::parse("x", mesh).unwrap();
        let turn = turn(mesh, number);
        let tasks = tasks(&parsed, &turn);
        let all: Vec<_> = tasks.rounds().flatten().flatten().collect();
        assert_eq!(all.len(), tasks.count());
        all
    }

    #[test]
    fn what_can_t_be_a_turn_is_none() {
        let read = |turn: &Turn| Turn::read(&serde_json::to_vec(turn).unwrap());
        let good = turn(THREE, 3);
        assert_eq!(read(&good).as_ref(), Some(&good));
        assert_eq!(read(&Turn { number: u64::MAX, ..good.clone() }), None);
        assert_eq!(read(&Turn { id: "a.b".into(), ..good }), None);
        assert_eq!(Turn::read(b"{}"), None);
    }

    #[test]
    fn each_pair_is_tested_in_both_directions_and_who_can_be_called_listens() {
        let all = all(THREE, 0);
        let ways: HashSet<_> = all.iter().map(|task| (task.sender(), task.receiver())).collect();
        assert_eq!((all.len(), ways.len()), (6, 6));
        let ids: HashSet<_> = all.iter().map(|task| &task.id).collect();
        assert_eq!(ids.len(), 6);
        assert!(all.iter().all(|task| task.far != "c"), "nobody can call c");
        let back = all.iter().find(|task| (task.sender(), task.receiver()) == ("a", "c")).unwrap();
        assert_eq!((&*back.near, &*back.target), ("c", "a.example"));
        assert_eq!(back.direction, Direction::Reverse);
        let json = serde_json::to_vec(back).unwrap();
        assert_eq!(Task::read(&json, Role::Near, "c", 0.0).as_ref(), Ok(back), "an agent takes it");
    }

    #[test]
    fn a_site_without_goodput_sends_and_receives_but_never_calls() {
        let foreign = THREE.replace("target = \"b.example\"", "server = \"iperf3://b.example\"");
        let all = all(&foreign, 0);
        let ways: HashSet<_> = all.iter().map(|task| (task.sender(), task.receiver())).collect();
        assert_eq!((all.len(), ways.len()), (6, 6));
        assert!(all.iter().all(|task| task.near != "b"), "{all:?}");
        let from_b = all.iter().find(|task| task.sender() == "b" && task.near == "a").unwrap();
        assert_eq!((&*from_b.target, from_b.direction), ("iperf3://b.example", Direction::Reverse));
    }

    #[test]
    fn in_a_round_each_site_is_in_one_pair_and_a_pair_has_its_tests_in_turn() {
        let mesh = Mesh::parse("x", THREE).unwrap();
        let turn = turn(THREE, 0);
        let rounds: Vec<_> = tasks(&mesh, &turn).rounds().collect();
        assert_eq!(rounds.len(), 3);
        for round in rounds {
            assert_eq!(round.len(), 1, "of three sites, one is left over");
            let [there, back] = &round[0][..] else { panic!("{round:?}") };
            assert_eq!((there.sender(), there.receiver()), (back.receiver(), back.sender()));
        }
    }

    #[test]
    fn a_mesh_is_tested_every_so_often_and_a_turn_that_was_left_goes_on() {
        let ended = turn("m", 4);
        let every = Some(3600.0);
        assert_eq!(next(None, "m", every, 0.0), Next::Begin(0));
        assert_eq!(next(Some(&ended), "m", every, 2000.0), Next::Wait(2600.0));
        assert_eq!(next(Some(&ended), "m", every, 4600.0), Next::Begin(5));
        assert_eq!(next(Some(&ended), "m", None, 1001.0), Next::Begin(5));
        let left = Turn { has_ended: false, ..ended.clone() };
        assert_eq!(next(Some(&left), "m", every, 9000.0), Next::GoOn);
        assert_eq!(next(Some(&left), "m", every, -9e9), Next::GoOn);
        assert_eq!(
            next(Some(&left), "m", every, 9e9),
            Next::Begin(5),
            "nobody knows what was made"
        );
        assert_eq!(next(Some(&left), "changed", every, 9e9), Next::Begin(0));
        assert_eq!(next(Some(&ended), "m", every, -9e9), Next::Wait(3600.0));
        let for_ever = Some(f64::INFINITY);
        assert_eq!(next(Some(&ended), "m", for_ever, 9e9), Next::Wait(f64::INFINITY));
        assert_eq!(next(Some(&ended), "changed", for_ever, 9e9), Next::Begin(0));
    }

    #[test]
    fn a_pair_that_a_budget_pays_for_half_of_is_in_every_second_turn() {
        // Two tests of 10 s at 1 Gbit/s are 2.5 GB: the budget pays for two of four turns.
        let head = "[test]\nevery = \"6h\"\nrate = \"1gbit\"\nbudget = \"5GB/day\"\n";
        let mesh = format!("{head}[site.a]\ntarget = \"a\"\n[site.b]\n");
        let tested: Vec<_> = (0..4).map(|number| all(&mesh, number).len()).collect();
        assert_eq!(tested.iter().sum::<usize>(), 4, "{tested:?}");
    }
}
