//! Whether the machine had other things to do during a test. Hosts of a lab share its CPUs: where others
//! take them, what limits a path is no longer what the scenario has planted, and a verdict of it proves
//! nothing about the diagnosis.

use std::fs::read_to_string;

use libtest_mimic::{Failed, Trial};

/// Share of the CPUs that others take of a machine that is left alone, at most.
const OTHERS: f64 = 0.1;
/// Share that is idle where everybody finds room.
const ROOM: f64 = 0.5;

/// How often a measurement is made, at most.
const MOST: usize = 3;

/// The CPU time from a moment on.
struct Watch(Option<Ticks>);

/// Clock ticks since the machine, or this process, began.
struct Ticks {
    /// Of programs on the CPUs that this process may use, and taken by the hypervisor.
    used: u64,
    /// Of those CPUs.
    idle: u64,
    /// Of this process, and of those that it has started and waited for.
    own: u64,
}

impl Watch {
    /// From now on.
    fn begin() -> Self {
        Self(Ticks::now())
    }

    /// What others took since then, in words, where it was much; unknown is not much.
    fn taken(&self) -> Option<String> {
        let (before, after) = self.0.as_ref().zip(Ticks::now())?;
        let used = after.used.saturating_sub(before.used) as f64;
        let idle = after.idle.saturating_sub(before.idle) as f64;
        let others = used - after.own.saturating_sub(before.own) as f64;
        let all = used + idle;
        let is_much = others > OTHERS * all && idle < ROOM * all;
        is_much.then(|| format!("others took {:.0} % of the CPUs", others / all * 100.0))
    }
}

impl Ticks {
    fn now() -> Option<Self> {
        let (stat, status) =
            (read_to_string("/proc/stat").ok()?, read_to_string("/proc/self/status").ok()?);
        let allowed = allowed(&status)?;
        let (mut used, mut idle) = (0, 0);
        for line in stat.lines().filter_map(|line| line.strip_prefix("cpu")) {
            let mut words = line.split(' ');
            if !words.next()?.parse().is_ok_and(|cpu: usize| allowed.contains(&cpu)) {
                continue;
            }
            // proc_stat(5); interrupts are the work of whoever caused them, which nobody counts.
            let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
            let [user, nice, system, unused, waiting, _, _, stolen, ..] = ticks[..] else {
                return None;
            };
            used += user + nice + system + stolen;
            idle += unused + waiting;
        }
        Some(Self { used, idle, own: own()? })
    }
}

/// `utime`, `stime`, `cutime` and `cstime` (proc_pid_stat(5)).
fn own() -> Option<u64> {
    let stat = read_to_string("/proc/self/stat").ok()?;
    // The name, in parentheses, may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().skip(11).take(4).map(|ticks| ticks.parse::<u64>().ok()).sum()
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

/// What a measurement comes to, and who took the CPUs, where it does not stand for that. From such a one
/// nothing is learnt: it is printed and made again, and if the last is one as well, nobody can judge it.
pub fn undisturbed<T>(
    name: &str,
    measure: impl Fn() -> T,
    stands: impl Fn(&T) -> bool,
) -> (T, Option<String>) {
    let mut left = MOST;
    loop {
        let watch = Watch::begin();
        let outcome = measure();
        let taken = if stands(&outcome) { None } else { watch.taken() };
        left -= 1;
        let Some(taken) = taken.as_ref().filter(|_| left > 0) else {
            return (outcome, taken);
        };
        eprintln!("DISTURBED {name}: {taken}; once more");
    }
}

/// Whether a record says what it should, or what it says instead.
pub type Judgement = Result<(), String>;

/// A test whose judgement counts only while the machine was its own. That there is something to judge
/// counts always.
pub fn trial(name: &'static str, test: fn() -> Result<Judgement, Failed>) -> Trial {
    Trial::test(name, move || {
        let is_right = |outcome: &Result<Judgement, Failed>| matches!(outcome, Ok(Ok(())));
        let (outcome, taken) = undisturbed(name, test, is_right);
        match (outcome?, taken) {
            (Ok(()), _) => Ok(()),
            (Err(wrong), None) => Err(wrong.into()),
            (Err(wrong), Some(taken)) => {
                eprintln!("DISTURBED {name}: {taken}; not judged: {wrong}");
                Ok(())
            }
        }
    })
}
