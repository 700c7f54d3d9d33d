//! Whether other programs used the machine during a test. Hosts of a lab share the machine's CPUs: if other programs
//! take them, the path is no longer limited by what the scenario planted, and "can't tell" is a right answer.
//!
//! A wrong answer counts, however busy the machine is; if most runs give one, the test fails. A verdict that names the
//! machine's own busy CPUs is not judged here, because it may be true of any path on a slow machine; `cargo xtask truth`
//! judges it. An answer that decides nothing counts as wrong on an undisturbed machine. On a disturbed one it is printed
//! as `NOT JUDGED`, and `cargo xtask test` counts it separately. It does not fail in CI, whose machines are shared: a
//! failure there would show more about the neighbours than about goodput. A scenario in which another cause is named is
//! judged like that, too, but if all runs name the same one, the test fails ([`crate::majority`]).

use std::collections::BTreeMap;
use std::fs::{read_dir, read_to_string};

use goodput_lab::{LabError, Scenario};
use goodput_model::{Record, Verdict};
use libtest_mimic::Failed;

use crate::majority::{Outcome, Said, by_majority};
use crate::neighbours::{MAX_BUSY_SHARE, Needs, Test};

/// Largest share of the CPUs that other programs take on an undisturbed machine.
const MAX_OTHERS_SHARE: f64 = 0.05;
/// Smallest share of the time for which CPUs that limit a path are busy: of two CPUs that both hosts of the lab share, one
/// is then full.
const MIN_LIMITING_SHARE: f64 = 0.5;

/// Flag of kernel threads (`PF_KTHREAD`, include/linux/sched.h), which work on behalf of a process.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Limits that are true of any path if the machine is too busy: its CPUs.
pub const CPUS: [&str; 6] = [
    "cpu-contention",
    "cpu-quota",
    "cpu-steal",
    "receiver-cpu",
    "sender-cpu",
    "softirq-saturation",
];

/// How the record of a test is judged.
#[derive(Debug, PartialEq)]
pub enum Judgement {
    /// The record names what the test planted.
    Right,
    /// The record names nothing false, and not what it should.
    Open(String),
    /// The record names another cause, which may be true if others took the CPUs: the cause, and what it is based on.
    Other(String, String),
    /// The machine's CPUs limit, by the kernel's own counters.
    Cpus(String),
    /// The record names something false.
    Wrong(String),
}

impl Judgement {
    /// Of a verdict, if `limit` is what was planted.
    pub fn of(record: &Record, limit: &str) -> Self {
        let said = || format!("{:?} {:?}", record.verdict, record.probes);
        match &*record.verdict.limit {
            found if found == limit => Self::Right,
            Verdict::NO_LIMIT => Self::Open(said()),
            found if CPUS.contains(&found) => Self::Cpus(said()),
            _ => Self::Wrong(said()),
        }
    }
}

/// A test whose answer has to be right, or not wrong on a machine that others use, in most of its runs.
pub fn judged(
    name: &'static str,
    needs: Needs,
    test: impl Fn() -> Result<Judgement, Failed> + Send + 'static,
) -> Test {
    let run = move || {
        let watch = Watch::begin(needs);
        let judgement = test()?;
        Ok(outcome(judgement, &watch.end()))
    };
    Test::new(name, needs, move || by_majority(name, run))
}

/// The same in a scenario, or a skip if that can't run. `needs` is what the test needs of the machine for it.
pub fn judged_in(
    name: &'static str,
    scenario: &'static str,
    needs: fn(&Scenario) -> Needs,
    test: fn(&Scenario) -> Result<Judgement, Failed>,
) -> Test {
    judged_on(name, Scenario::load(scenario), needs, test)
}

/// The same in a scenario of the test's own.
pub fn judged_on(
    name: &'static str,
    scenario: Result<Scenario, LabError>,
    needs: fn(&Scenario) -> Needs,
    test: fn(&Scenario) -> Result<Judgement, Failed>,
) -> Test {
    match scenario.map(|scenario| (scenario.obstacle(), scenario)) {
        Err(why) => Test::of_facts(name, move || Err(why.to_string().into())),
        Ok((Some(what), _)) => Test::skipped(name, what),
        Ok((None, scenario)) => judged(name, needs(&scenario), move || test(&scenario)),
    }
}

/// What a run of a test comes to.
pub fn outcome(judgement: Judgement, machine: &Machine) -> Outcome {
    let (text, cause, excuse) = match judgement {
        Judgement::Right => return Outcome::Expected,
        Judgement::Wrong(text) => (text, None, None),
        Judgement::Open(text) => (text, None, machine.taken.clone()),
        Judgement::Other(cause, text) => (text, Some(cause), machine.taken.clone()),
        Judgement::Cpus(text) => {
            (text, None, machine.busy.then(|| "the CPUs were busy".to_owned()))
        }
    };
    match excuse {
        Some(excuse) => Outcome::NotJudged(Said { text: format!("{excuse}: {text}"), cause }),
        None => Outcome::Unexpected(Said { text, cause }),
    }
}

/// What the machine did during a test.
pub struct Machine {
    /// What other programs took of the CPUs, in words, if it was much; unknown is not much.
    taken: Option<String>,
    /// Whether its CPUs were busy enough to limit a path. Unknown counts as busy.
    busy: bool,
}

/// The CPU time from a moment on.
pub struct Watch {
    begin: Option<Ticks>,
    /// Whether tests of this suite run beside this one. Their CPU time counts as our own.
    has_neighbours: bool,
}

/// Clock ticks since the machine began.
struct Ticks {
    /// Of the CPUs that this process may use: programs, interrupts, and the hypervisor's other guests.
    used: u64,
    /// Of those CPUs.
    idle: u64,
    /// Of this process, its descendants, and the kernel's threads.
    own: u64,
}

impl Watch {
    /// From now on, for a test with these needs.
    pub fn begin(needs: Needs) -> Self {
        Self { begin: Ticks::now(), has_neighbours: needs != Needs::All }
    }

    /// What the machine did since then.
    pub fn end(&self) -> Machine {
        let Some((before, after)) = self.begin.as_ref().zip(Ticks::now()) else {
            return Machine { taken: None, busy: true };
        };
        let used = after.used.saturating_sub(before.used) as f64;
        let idle = after.idle.saturating_sub(before.idle) as f64;
        let own = after.own.saturating_sub(before.own) as f64;
        let (others, busy) = ((used - own) / (used + idle), used / (used + idle));
        let crowded = self.has_neighbours && busy > MAX_BUSY_SHARE;
        let taken = match others > MAX_OTHERS_SHARE {
            true => Some(format!("others took {:.0} % of the CPUs", others * 100.0)),
            false => {
                crowded.then(|| format!("the CPUs were busy for {:.0} % of the time", busy * 100.0))
            }
        };
        Machine { taken, busy: busy > MIN_LIMITING_SHARE }
    }
}

impl Ticks {
    fn now() -> Option<Self> {
        let allowed = allowed(&read_to_string("/proc/self/status").ok()?)?;
        // The processes first: what they use meanwhile then counts for others, who seem more, not fewer.
        let own = own(&processes()?, std::process::id());
        let (used, idle) = machine(&read_to_string("/proc/stat").ok()?, &allowed)?;
        Some(Self { used, idle, own })
    }
}

/// What some CPUs have used, and how long they were idle (proc_stat(5)).
fn machine(stat: &str, allowed: &[usize]) -> Option<(u64, u64)> {
    let (mut used, mut idle) = (0, 0);
    for line in stat.lines().filter_map(|line| line.strip_prefix("cpu")) {
        let mut words = line.split(' ');
        if !words.next()?.parse().is_ok_and(|cpu| allowed.contains(&cpu)) {
            continue;
        }
        let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let [user, nice, system, unused, waiting, irq, softirq, stolen, ..] = ticks[..] else {
            return None;
        };
        used += user + nice + system + irq + softirq + stolen;
        idle += unused + waiting;
    }
    Some((used, idle))
}

/// A process: its parent, and what it and the children that it has waited for have used.
#[derive(Debug, PartialEq)]
struct Process {
    parent: u32,
    flags: u64,
    used: u64,
}

/// All that are seen from here.
fn processes() -> Option<BTreeMap<u32, Process>> {
    let entries = read_dir("/proc").ok()?.filter_map(Result::ok);
    let stats = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, process(&read_to_string(entry.path().join("stat")).ok()?)?))
    });
    Some(stats.collect())
}

/// A line of proc_pid_stat(5).
fn process(stat: &str) -> Option<Process> {
    // The name, in parentheses, may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<_> = fields.split_whitespace().collect();
    // `utime`, `stime`, `cutime` and `cstime`.
    let used = fields.get(11..15)?.iter().map(|ticks| ticks.parse::<u64>().ok());
    Some(Process {
        parent: fields.get(1)?.parse().ok()?,
        flags: fields.get(6)?.parse().ok()?,
        used: used.sum::<Option<u64>>()?,
    })
}

/// What `root`, its descendants and the kernel's threads have used.
fn own(processes: &BTreeMap<u32, Process>, root: u32) -> u64 {
    let is_own = |pid: u32| {
        // Bounded, as parents may change between two reads.
        let parents = std::iter::successors(Some(pid), |pid| processes.get(pid).map(|p| p.parent));
        parents.take(processes.len()).any(|pid| pid == root)
    };
    let counted = processes.iter().filter(|(pid, p)| p.flags & KERNEL_THREAD != 0 || is_own(**pid));
    counted.map(|(_, process)| process.used).sum()
}

/// The CPUs of a list like `0-1,4` (`Cpus_allowed_list`, proc_pid_status(5)).
fn allowed(status: &str) -> Option<Vec<usize>> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let mut cpus = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cpus.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(cpus)
}

/// Tests of this file, in a harness that has none of its own.
pub fn all() -> Vec<Test> {
    vec![
        Test::of_facts("disturbed::a_wrong_answer_fails_on_any_machine", wrong_fails),
        Test::of_facts(
            "disturbed::what_others_take_is_distinguished_from_our_own",
            others_are_distinguished,
        ),
    ]
}

fn check(holds: bool, what: &str) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(what.into()) }
}

fn wrong_fails() -> Result<(), Failed> {
    let taken = Machine { taken: Some("others took 60 % of the CPUs".into()), busy: true };
    let (full, idle) = (Machine { taken: None, busy: true }, Machine { taken: None, busy: false });
    let said = || "ack-path".to_owned();
    let fails = |judgement, machine| matches!(outcome(judgement, machine), Outcome::Unexpected(_));
    let open = |judgement, machine| matches!(outcome(judgement, machine), Outcome::NotJudged(_));
    check(fails(Judgement::Wrong(said()), &taken), "wrong, busy")?;
    check(fails(Judgement::Wrong(said()), &idle), "wrong, left alone")?;
    check(fails(Judgement::Open(said()), &full), "open, left alone")?;
    check(open(Judgement::Open(said()), &taken), "open, busy")?;
    check(open(Judgement::Cpus(said()), &full), "the CPUs")?;
    check(fails(Judgement::Cpus(said()), &idle), "the CPUs, which were idle")?;
    let other = || Judgement::Other(said(), said());
    check(fails(other(), &full), "another cause, left alone")?;
    let cause = |judgement| match outcome(judgement, &taken) {
        Outcome::NotJudged(said) => said.cause,
        _ => None,
    };
    check(cause(other()) == Some(said()), "another cause, busy")?;
    check(cause(Judgement::Cpus(said())).is_none(), "the CPUs are excused")?;
    check(outcome(Judgement::Right, &taken) == Outcome::Expected, "right, busy")
}

fn others_are_distinguished() -> Result<(), Failed> {
    let stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 40 5 6 7 8 0 0\ncpu1 1 1 1 1 1 1 1 1 0 0\n";
    check(machine(stat, &[0]) == Some((27, 45)), "the first CPU alone")?;
    let line = "7 (a) b) S 3 7 7 0 -1 2129984 1 2 3 4 10 20 30 40 20 0 1 0 5";
    let read = process(line).ok_or("a line can be read")?;
    check(
        read == Process { parent: 3, flags: 2_129_984, used: 100 },
        "a line with a strange name",
    )?;
    let of = |parent, flags, used| Process { parent, flags, used };
    let processes = BTreeMap::from([
        (1, of(0, 0, 1)),
        (2, of(0, KERNEL_THREAD, 10)),
        (3, of(1, 0, 100)),
        (4, of(3, 0, 1000)),
        (5, of(4, 0, 10_000)),
        (6, of(1, 0, 100_000)),
    ]);
    check(own(&processes, 3) == 11_110, "this one, its descendants and the kernel's")
}
