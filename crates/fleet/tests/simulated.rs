//! A turn of a thousand agents in virtual time. Agents and coordinators are killed at random moments, and the queue delivers
//! again what nobody has acknowledged. What they do next is the library's (`tasks`, `next`, `step`); the bus is a model.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use goodput_fleet::{Delivered, Mesh, Next, Step, Task, Turn, next, step, tasks};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// Length of a test, and the time that a coordinator gives it beside, milliseconds.
const LENGTH_MS: u64 = 1000;
const BESIDE_MS: u64 = 90_000;
/// When a task is delivered again, milliseconds after its agent was killed.
const REDELIVERY_MS: u64 = 10_000;
/// When a killed coordinator has a successor: its lease must expire.
const SUCCESSION_MS: u64 = 12_000;

#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    Record,
    Reason,
}

/// A task as it is in the queue.
#[derive(Clone, Copy)]
struct Message {
    /// Its place among all tests.
    way: usize,
    far: usize,
    token: u64,
}

/// How far an agent is with the message before it; it is killed between any two of these.
#[derive(Clone, Copy, Default)]
enum Doing {
    #[default]
    Nothing,
    Begun(Message),
    Measuring(Message),
    Kept(Message),
    Published,
}

#[derive(Default)]
struct Agent {
    is_down: bool,
    doing: Doing,
    /// With whom it is in a test.
    with: Option<usize>,
    /// What its disk keeps: this survives.
    kept: Option<(usize, End)>,
    queue: VecDeque<Message>,
    /// Of its next move: moves with an older one are void.
    move_number: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Move { agent: usize, number: u64 },
    Kill,
    GiveUp { round: usize, pair: usize, test: usize },
}

/// The pairs of a round: the tests of each, the one that it is at, and whether that was put into the queue.
struct Pair {
    tests: Vec<Task>,
    at: usize,
    is_put: bool,
}

struct World {
    random: Xoshiro256PlusPlus,
    now_ms: u64,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    agents: Vec<Agent>,
    /// By the place of a test.
    begun: Vec<bool>,
    measured: Vec<u8>,
    outcomes: Vec<Option<End>>,
    /// The token of the newest coordinator.
    fence: u64,
    coordinator_is_killed: bool,
    /// Rounds so far, those that a successor goes through again included.
    round: usize,
    pairs: Vec<Pair>,
    /// The pair of the round that an agent is in.
    pair_of: Vec<usize>,
    kills: usize,
    kill_every_ms: Option<u64>,
}

fn number(name: &str) -> usize {
    name[1..].parse().expect("a site is s and its number")
}

impl World {
    fn new(sites: usize, kill_every_ms: Option<u64>) -> Self {
        let ways = sites * sites;
        let mut world = Self {
            random: Xoshiro256PlusPlus::seed_from_u64(7),
            now_ms: 0,
            events: BinaryHeap::new(),
            agents: (0..sites).map(|_| Agent::default()).collect(),
            begun: vec![false; ways],
            measured: vec![0; ways],
            outcomes: vec![None; ways],
            fence: 1,
            coordinator_is_killed: false,
            round: 0,
            pairs: Vec::new(),
            pair_of: vec![0; sites],
            kills: 0,
            kill_every_ms,
        };
        world.later(kill_every_ms.unwrap_or(u64::MAX), Event::Kill);
        world
    }

    fn later(&mut self, in_ms: u64, event: Event) {
        self.events.push(Reverse((self.now_ms.saturating_add(in_ms), event)));
    }

    fn way(&self, task: &Task) -> usize {
        number(task.sender()) * self.agents.len() + number(task.receiver())
    }

    /// An agent makes its next move in this time.
    fn moves(&mut self, agent: usize, in_ms: u64) {
        self.agents[agent].move_number += 1;
        let number = self.agents[agent].move_number;
        self.later(in_ms, Event::Move { agent, number });
    }

    fn soon(&mut self) -> u64 {
        self.random.random_range(1..50)
    }

    /// Until this round is done. `false`: the coordinator was killed.
    fn test(&mut self, round: Vec<Vec<Task>>) -> bool {
        self.round += 1;
        self.pairs = round.into_iter().map(|tests| Pair { tests, at: 0, is_put: false }).collect();
        for pair in 0..self.pairs.len() {
            let task = self.pairs[pair].tests[0].clone();
            for site in [&task.near, &task.far] {
                self.pair_of[number(site)] = pair;
            }
            self.go_on(pair);
        }
        self.run_until(|world| world.pairs.iter().all(|pair| pair.at == pair.tests.len()));
        !std::mem::take(&mut self.coordinator_is_killed)
    }

    fn run_until(&mut self, is_done: impl Fn(&Self) -> bool) {
        while !self.coordinator_is_killed && !is_done(self) {
            self.next_event();
        }
    }

    fn next_event(&mut self) {
        let Reverse((at_ms, event)) = self.events.pop().expect("something is left to do");
        self.now_ms = at_ms;
        match event {
            Event::Move { agent, number } if self.agents[agent].move_number == number => {
                self.act(agent);
            }
            Event::Move { .. } => {}
            Event::Kill => self.kill(),
            Event::GiveUp { round, pair, test } => {
                if self.round == round && self.pairs.get(pair).is_some_and(|pair| pair.at == test) {
                    let way = self.way(&self.pairs[pair].tests[test]);
                    self.outcomes[way].get_or_insert(End::Reason);
                    self.go_on(pair);
                }
            }
        }
    }

    /// The coordinator looks after a pair.
    fn go_on(&mut self, pair: usize) {
        while let Some(task) = self.pairs[pair].tests.get(self.pairs[pair].at) {
            let way = self.way(task);
            if self.outcomes[way].is_some() {
                self.pairs[pair].at += 1;
                self.pairs[pair].is_put = false;
                continue;
            }
            if !std::mem::replace(&mut self.pairs[pair].is_put, true) {
                self.put(pair, way);
            }
            return;
        }
    }

    fn put(&mut self, pair: usize, way: usize) {
        let Pair { tests, at, .. } = &self.pairs[pair];
        let (test, near, far) = (*at, number(&tests[*at].near), number(&tests[*at].far));
        self.agents[near].queue.push_back(Message { way, far, token: self.fence });
        let patience = LENGTH_MS + BESIDE_MS;
        self.later(patience, Event::GiveUp { round: self.round, pair, test });
        let agent = &self.agents[near];
        if matches!(agent.doing, Doing::Nothing) && !agent.is_down {
            let soon = self.soon();
            self.moves(near, soon);
        }
    }

    /// An agent makes one move.
    fn act(&mut self, agent: usize) {
        self.agents[agent].is_down = false;
        let mut in_ms = self.soon();
        self.agents[agent].doing = match self.agents[agent].doing {
            Doing::Nothing => match self.agents[agent].queue.front().copied() {
                None => return,
                Some(message) => self.take(agent, message),
            },
            Doing::Begun(message) => {
                if self.agents[agent].with.is_some() {
                    Doing::Begun(message)
                } else if self.begins(agent, message) {
                    in_ms = LENGTH_MS;
                    Doing::Measuring(message)
                } else {
                    self.agents[agent].kept = Some((message.way, End::Reason));
                    Doing::Kept(message)
                }
            }
            Doing::Measuring(message) => {
                let is_whole = self.part(agent);
                let end = if is_whole { End::Record } else { End::Reason };
                self.agents[agent].kept = Some((message.way, end));
                Doing::Kept(message)
            }
            Doing::Kept(message) => {
                if let Some((_, end)) = self.agents[agent].kept.take() {
                    self.outcomes[message.way].get_or_insert(end);
                }
                if !self.pairs.is_empty() {
                    self.go_on(self.pair_of[agent]);
                }
                Doing::Published
            }
            Doing::Published => {
                self.agents[agent].queue.pop_front();
                Doing::Nothing
            }
        };
        self.moves(agent, in_ms);
    }

    /// What an agent does with a message that is delivered.
    fn take(&mut self, agent: usize, message: Message) -> Doing {
        let Message { way, token, .. } = message;
        let seen = Delivered {
            is_published: self.outcomes[way].is_some(),
            is_kept: self.agents[agent].kept.is_some_and(|(kept, _)| kept == way),
            is_begun: self.begun[way],
        };
        if !seen.is_published && !seen.is_kept && token != self.fence {
            return Doing::Published;
        }
        match step(seen) {
            Step::Acknowledge => Doing::Published,
            Step::Publish => Doing::Kept(message),
            Step::GiveUp => {
                self.agents[agent].kept = Some((way, End::Reason));
                Doing::Kept(message)
            }
            Step::Measure => {
                self.begun[way] = true;
                Doing::Begun(message)
            }
        }
    }

    /// A test begins, unless the far agent is away or in another one.
    fn begins(&mut self, near: usize, message: Message) -> bool {
        let far = &mut self.agents[message.far];
        if far.is_down || far.with.is_some() {
            return false;
        }
        far.with = Some(near);
        self.agents[near].with = Some(message.far);
        self.measured[message.way] += 1;
        true
    }

    /// The test that an agent is in ends. `false`: the other one has left it.
    fn part(&mut self, agent: usize) -> bool {
        let other = self.agents[agent].with.take();
        if let Some(other) = other {
            assert_eq!(self.agents[other].with, Some(agent), "it is in two tests at once");
            self.agents[other].with = None;
        }
        other.is_some()
    }

    /// Kills an agent, or now and then the coordinator.
    fn kill(&mut self) {
        let Some(every_ms) = self.kill_every_ms else { return };
        self.kills += 1;
        let next_ms = self.random.random_range(1..2 * every_ms);
        self.later(next_ms, Event::Kill);
        if self.random.random_ratio(1, 400) {
            self.coordinator_is_killed = true;
            return;
        }
        let agent = self.random.random_range(0..self.agents.len());
        let other = self.agents[agent].with;
        self.part(agent);
        // Whoever measures notices it; whoever is measured has nothing to do.
        if let Some(near) = other.filter(|it| matches!(self.agents[*it].doing, Doing::Measuring(_)))
        {
            self.moves(near, 1);
        }
        self.agents[agent].doing = Doing::Nothing;
        self.agents[agent].is_down = true;
        let back_ms = self.random.random_range(REDELIVERY_MS..2 * REDELIVERY_MS);
        self.moves(agent, back_ms);
    }

    /// Nobody coordinates until the lease has expired.
    fn succeed(&mut self) {
        self.pairs.clear();
        let until_ms = self.now_ms + SUCCESSION_MS;
        while self.events.peek().is_some_and(|Reverse((at_ms, _))| *at_ms < until_ms) {
            self.next_event();
        }
        self.coordinator_is_killed = false;
        (self.now_ms, self.fence) = (until_ms, self.fence + 1);
    }
}

/// A full mesh of so many sites, tested once.
fn tested(sites: usize, kill_every_ms: Option<u64>) -> World {
    let site = |number: usize| format!("[site.s{number}]\ntarget = \"h{number}\"\n");
    let text: String = (0..sites).map(site).collect();
    let mesh = Mesh::parse("mesh", &text).expect("it is a mesh");
    let turn = Turn { id: "t".into(), number: 0, mesh: text, began_s: 0.0, has_ended: false };
    let mut world = World::new(sites, kill_every_ms);
    while !tasks(&mesh, &turn).rounds().all(|round| world.test(round)) {
        world.succeed();
        let now_s = world.now_ms as f64 / 1000.0;
        assert_eq!(next(Some(&turn), &turn.mesh, None, now_s), Next::GoOn);
    }
    for (way, (outcome, measured)) in world.outcomes.iter().zip(&world.measured).enumerate() {
        let is_test = way / sites != way % sites;
        assert_eq!(outcome.is_some(), is_test, "the test {way} has one outcome");
        assert!(*measured <= 1, "the test {way} was made {measured} times");
        assert!(*outcome != Some(End::Record) || *measured == 1, "the test {way} was made");
    }
    world
}

fn records(world: &World) -> usize {
    world.outcomes.iter().filter(|outcome| **outcome == Some(End::Record)).count()
}

#[test]
fn without_a_kill_each_test_has_a_record() {
    assert_eq!(records(&tested(50, None)), 50 * 49);
}

#[test]
fn a_thousand_agents_that_are_killed_have_one_outcome_for_each_test_and_make_none_twice() {
    let world = tested(1000, Some(5000));
    let (records, kills, coordinators) = (records(&world), world.kills, world.fence);
    println!("{records} records, {kills} kills, {coordinators} coordinators");
    assert!(kills > 1000 && coordinators > 5, "{kills} kills, {coordinators} coordinators");
    // An agent is away for as long as some rounds take.
    assert!(999_000 - records < 20 * kills, "{records} records, {kills} kills");
}
