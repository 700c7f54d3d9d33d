//! A fleet whose agents, coordinator, NATS servers and database are killed at random moments: each task has one record or a
//! reason, and no test is begun twice. Each agent is on a host of its own: a network namespace with its own address.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

use goodput_testing::servers::{Nats, Postgres, nats_cluster_at, own_postgres};
use goodput_testing::{Hosts, in_namespace, wait_for, within};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::common::Home;

/// Kills, and sites, in an ordinary test run; `cargo xtask kills N --fleet` has N kills in a mesh of [`MANY_SITES`].
const FEW: (u32, usize) = (5, 4);
const MANY_SITES: usize = 12;

/// Longest time between two kills, and until what was killed is started again.
const LONGEST: Duration = Duration::from_secs(3);

/// A process that is killed and started again, and what all of its lives have said.
struct Part {
    child: Child,
    home: Home,
    arguments: Vec<String>,
    /// Where it runs; none: in the namespace of the test.
    namespace: Option<PathBuf>,
    log: PathBuf,
}

impl Part {
    fn start(arguments: Vec<String>, namespace: Option<PathBuf>) -> Self {
        let home = Home::new();
        let log = home.path().join("log");
        let child = spawn(&home, &arguments, namespace.as_deref(), &log);
        Self { child, home, arguments, namespace, log }
    }

    fn kill(&mut self) {
        self.child.kill().expect("it runs, or has ended and is ours");
        self.child.wait().expect("it is ours");
    }

    fn start_again(&mut self) {
        self.child = spawn(&self.home, &self.arguments, self.namespace.as_deref(), &self.log);
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("it is text")
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}

fn spawn(home: &Home, arguments: &[String], namespace: Option<&Path>, log: &Path) -> Child {
    let open = || OpenOptions::new().create(true).append(true).open(log).expect("it is ours");
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let [out, err]: [File; 2] = [open(), open()];
    let mut command = home.goodput(&arguments);
    if let Some(namespace) = namespace {
        command = within(namespace, &command);
    }
    command.stdout(out).stderr(err).spawn().expect("it starts")
}

/// The whole fleet.
struct Stage {
    nats: [Nats; 3],
    database: Postgres,
    name: String,
    agents: Vec<Part>,
    coordinator: Part,
    /// What the coordinators that ended by themselves have printed, by the beginning of the tasks' ids.
    turns: Vec<(String, Turn)>,
    sites: usize,
    /// What is killed, and when.
    random: Xoshiro256PlusPlus,
    _hosts: Hosts,
    _storage: Home,
}

/// Of each pair of a turn, whether it has a record.
type Turn = BTreeMap<(usize, usize), bool>;

impl Stage {
    fn set(sites: usize, seed: u64) -> Option<Self> {
        let storage = Home::new();
        let hosts = Hosts::new(u8::try_from(sites).expect("they are few"))?;
        let nats = nats_cluster_at(storage.path(), Hosts::CENTRE)?;
        let database = own_postgres()?;
        let name = database.new_database();
        let urls = nats.each_ref().map(Nats::url).join(",");
        let shared = |words: &[&str]| -> Vec<String> {
            let store = database.url(&name);
            let more = ["--nats", &urls, "--store", &store];
            words.iter().chain(&more).map(ToString::to_string).collect()
        };
        let agent = |site| {
            let name = format!("s{site}");
            let arguments = shared(&["-v", "fleet", "agent", "--name", &name]);
            Part::start(arguments, Some(hosts.namespace(site)))
        };
        let agents: Vec<_> = (0..sites).map(agent).collect();
        let table = |site| format!("[site.s{site}]\ntarget = \"{}\"\n", hosts.address(site));
        let tables = (0..sites).map(table);
        let mesh =
            "[test]\nlength = \"0.3s\"\npause = \"0s\"\n".to_owned() + &tables.collect::<String>();
        let mesh = storage.file("mesh.toml", &mesh).display().to_string();
        let coordinator = Part::start(shared(&["-v", "fleet", "run", &mesh, "--once"]), None);
        let (turns, _hosts, _storage) = (Vec::new(), hosts, storage);
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Some(Self {
            nats,
            database,
            name,
            agents,
            coordinator,
            turns,
            sites,
            random,
            _hosts,
            _storage,
        })
    }

    /// A random part of the longest time.
    fn pause(&mut self) -> Duration {
        Duration::from_millis(self.random.random_range(0..LONGEST.as_millis() as u64))
    }

    /// Kills one of all parts, and starts it again. Returns what it was.
    fn kill_one(&mut self) -> &'static str {
        let number = self.random.random_range(0..self.sites + 5);
        let pause = self.pause();
        match number.checked_sub(self.sites) {
            None => {
                self.agents[number].kill();
                sleep(pause);
                self.agents[number].start_again();
                "agent"
            }
            Some(0) => {
                self.look_at_the_coordinator();
                self.coordinator.kill();
                self.coordinator.start_again();
                "coordinator"
            }
            Some(1) => {
                self.database.stop();
                sleep(pause);
                self.database.start();
                "database"
            }
            Some(server) => {
                let server = server - 2;
                self.nats[server].kill();
                sleep(pause);
                self.nats[server].start();
                "NATS server"
            }
        }
    }

    /// A turn that has ended is followed by another one.
    fn look_at_the_coordinator(&mut self) {
        if let Some(status) = self.coordinator.child.try_wait().expect("it is ours") {
            if matches!(status.code(), Some(0 | 1)) {
                self.turns.push(last_turn(&self.coordinator.log(), self.sites));
            }
            self.coordinator.start_again();
        }
    }

    /// As a service manager does.
    fn start_again_what_has_ended(&mut self) {
        self.look_at_the_coordinator();
        for agent in &mut self.agents {
            if agent.child.try_wait().expect("it is ours").is_some() {
                agent.start_again();
            }
        }
    }

    /// Waits for the end of the last turn, and until all records are in the database.
    fn finish(&mut self) {
        wait_for("the end of the last turn", || {
            let ended = self.turns.len();
            self.start_again_what_has_ended();
            ended < self.turns.len()
        });
        self.coordinator.kill();
        wait_for("the records that wait on disks", || {
            self.agents.iter().enumerate().all(|(site, agent)| waiting(&agent.home, site) == 0)
        });
    }

    /// Of each turn by the beginning of its tasks' ids, the pairs whose record is in the database.
    fn kept(&self) -> BTreeMap<String, BTreeSet<(usize, usize)>> {
        let mut kept: BTreeMap<String, BTreeSet<_>> = BTreeMap::new();
        for id in self.database.sql(&self.name, "SELECT key FROM goodput.keyed").lines() {
            let mut parts = id.rsplitn(3, '-');
            let mut number = || parts.next().and_then(|part| part.parse().ok()).expect(id);
            let (receiver, sender): (usize, usize) = (number(), number());
            let turn = parts.next().expect(id).to_owned();
            assert!(kept.entry(turn).or_default().insert((sender, receiver)), "twice: {id}");
        }
        kept
    }
}

/// Records of an agent that wait for the database.
fn waiting(home: &Home, site: usize) -> usize {
    let folder = home.path().join(format!("state/fleet/s{site}/unsaved"));
    let files = std::fs::read_dir(folder).map(|files| files.flatten().collect::<Vec<_>>());
    let is_record =
        |file: &&std::fs::DirEntry| file.file_name().to_string_lossy().ends_with(".json");
    files.map_or(0, |files| files.iter().filter(is_record).count())
}

/// The tests that the newest coordinator has printed, which has ended: each of the turn, once; and with what their ids begin.
fn last_turn(log: &str, sites: usize) -> (String, Turn) {
    // Whether it has begun or gone on.
    let said = log.rsplit_once("the turn ").map(|(_, rest)| rest);
    // A word follows, or a semicolon.
    let id = said.and_then(|rest| rest.split([' ', ';']).next());
    let id = id.expect("the coordinator says which turn it is").to_owned();
    let all = sites * (sites - 1);
    // Lines of tests begin with the time.
    let timed =
        |line: &'_ str| line.split_once("Z  ").map_or(line.len(), |(time, _)| time.len() + 3);
    let lines: Vec<&str> = log.lines().map(|line| &line[timed(line)..]).collect();
    let begins = format!("1/{all}  ");
    let first = lines.iter().rposition(|line| line.starts_with(&begins)).unwrap_or_default();
    let mut turn = Turn::new();
    let of_all = format!("/{all}");
    for line in &lines[first..] {
        // The matrix comes after them.
        let Some((number, rest)) = line.split_once("  ") else { continue };
        let Some((pair, end)) = rest.split_once("  ").filter(|_| number.ends_with(&of_all)) else {
            continue;
        };
        let site = |name: &str| name.strip_prefix('s').and_then(|number| number.parse().ok());
        let Some((sender, receiver)) = pair.split_once(" → ") else { continue };
        let Some(pair) = site(sender).zip(site(receiver)) else { continue };
        assert!(turn.insert(pair, !end.starts_with("no record: ")).is_none(), "twice: {line}");
    }
    assert_eq!(turn.len(), all, "each has an outcome: {log}");
    (id, turn)
}

#[test]
fn killed_at_any_moment_each_task_has_one_outcome_and_no_test_is_begun_twice() {
    let many = std::env::var("GOODPUT_KILLS").ok().and_then(|kills| kills.parse().ok());
    let (kills, sites) = many.map_or(FEW, |kills| (kills, MANY_SITES));
    let seed = std::env::var("GOODPUT_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(rand::random);
    println!("GOODPUT_SEED={seed} chooses the same kills again, at the same times");
    in_namespace(|| killed(kills, sites, seed));
}

fn killed(kills: u32, sites: usize, seed: u64) {
    let Some(mut stage) = Stage::set(sites, seed) else { return };
    let mut killed: BTreeMap<&str, u32> = BTreeMap::new();
    for _ in 0..kills {
        // The moment is what is random: there is no condition to wait for.
        let pause = stage.pause();
        sleep(pause);
        *killed.entry(stage.kill_one()).or_default() += 1;
        stage.start_again_what_has_ended();
    }
    stage.finish();
    judge(&stage, &killed);
}

fn judge(stage: &Stage, killed: &BTreeMap<&str, u32>) {
    let kept = stage.kept();
    let mut with_record = 0;
    for (id, turn) in &stage.turns {
        let recorded: BTreeSet<_> =
            turn.iter().filter(|(_, is)| **is).map(|(pair, _)| *pair).collect();
        with_record += recorded.len();
        // A record that came late is kept, although its task has a reason by then.
        let in_database = kept.get(id).cloned().unwrap_or_default();
        let lost: Vec<_> = recorded.difference(&in_database).collect();
        assert!(lost.is_empty(), "records of the turn {id} are not in the database: {lost:?}");
    }
    let mut begun: BTreeMap<String, u32> = BTreeMap::new();
    for agent in &stage.agents {
        for line in agent.log().lines() {
            if let Some((_, rest)) = line.split_once("the test ")
                && let Some((id, _)) = rest.split_once(" begins")
            {
                *begun.entry(id.to_owned()).or_default() += 1;
            }
        }
    }
    let twice: Vec<_> = begun.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "begun twice: {twice:?}");
    assert!(begun.len() >= with_record, "agents say what they begin: {}", stage.agents[0].log());
    let tasks: usize = stage.turns.iter().map(|(_, turn)| turn.len()).sum();
    println!(
        "killed {killed:?}; {} turns, {tasks} tasks: {with_record} with a record, {} with a reason; {} tests begun, none twice",
        stage.turns.len(),
        tasks - with_record,
        begun.len()
    );
}
