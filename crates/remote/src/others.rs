//! Other goodputs at a host: one that changes it, by SSH or there, keeps this one out.
//!
//! Each run has a process there before it looks for others. It goes on only once it sees nobody else, so of two that begin
//! at the same time at least one sees the other. Runs that wait at the same time must not refuse each other, so they have an
//! order: whoever began later gives way at once, and whoever began earlier waits for that.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::awaited::{AwaitedThere, process};
use crate::error::RemoteError;
use crate::host::Host;
use crate::ssh::{DeadManId, MARK};
use crate::system::Process;

/// How long a dead-man that has not yet noticed the end may take: its patience, and time for putting back.
const DEAD_MAN_TIME: Duration = Duration::from_secs(45);

/// How long those are waited for who are about to go: the guard of an ended run, as a run on that host itself waits for it,
/// and runs that give way.
const GUARD_TIME: Duration = Duration::from_secs(30);

/// How long a run on that host itself is waited for: it may have seen this one, and then it goes.
const LOCAL_RUN_TIME: Duration = Duration::from_secs(2);

/// Time between two looks at a host's processes.
const LOOK_INTERVAL: Duration = Duration::from_millis(300);

/// Part of the command line of a guard of a goodput that runs on that host itself.
const LOCAL_GUARD: &str = ".journal.jsonl";

/// Time after which a person is told what this run waits for.
const NOTICE_DELAY: Duration = Duration::from_secs(1);

/// Waits until the dead-man of a run has finished.
pub(crate) fn await_dead_man(host: &mut Host, dead_man: &DeadManId) -> Result<(), RemoteError> {
    let deadline = Instant::now() + DEAD_MAN_TIME;
    let mut notice = Notice::new();
    while find(host, dead_man)?.is_some() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(busy(host, dead_man.pid));
        }
        notice.of(host, dead_man.pid, PUTS_BACK, left)?;
        sleep(LOOK_INTERVAL);
    }
    Ok(())
}

/// What the dead-man or the guard of an ended run does.
const PUTS_BACK: &str = "puts back what an ended run left";

/// Tells a person once for each process that this run waits for it, if it waits for longer than a moment.
struct Notice {
    began: Instant,
    told: Option<u32>,
}

impl Notice {
    /// This run begins to wait.
    fn new() -> Self {
        Self { began: Instant::now(), told: None }
    }

    /// It waits for this process, which does that, for no longer than what is `left`.
    fn of(
        &mut self,
        host: &mut Host,
        pid: u32,
        does: &'static str,
        left: Duration,
    ) -> Result<(), RemoteError> {
        if self.told == Some(pid) || self.began.elapsed() < NOTICE_DELAY {
            return Ok(());
        }
        self.told = Some(pid);
        let whose = host.system.whose(&mut host.session, pid)?;
        let name = host.address.to_string();
        host.notify.tell(&AwaitedThere { host: name, pid, whose, does, left });
        Ok(())
    }
}

/// The process of a dead-man, if it is there.
fn find(host: &mut Host, dead_man: &DeadManId) -> Result<Option<Process>, RemoteError> {
    let all = host.system.processes(&mut host.session, dead_man.word())?;
    Ok(all.into_iter().find(|process| process.pid == dead_man.pid))
}

/// Whether this run's process there keeps others away. Without it, whoever puts something back takes the host anew, even
/// if the session still answers.
pub(crate) fn is_kept(host: &mut Host, own: &DeadManId) -> bool {
    find(host, own).is_ok_and(|found| found.is_some_and(|process| process.trusted))
}

/// Refuses a host that another goodput is changing, from here, from elsewhere or on that host. Waits while nobody else is
/// there but the guards of ended runs, and runs that give way to this one, whose own process is there ([`Host::stand_by`]).
pub(crate) fn refuse_others(host: &mut Host) -> Result<(), RemoteError> {
    let began = Instant::now();
    let (mut guard_seen, mut notice) = (began, Notice::new());
    loop {
        let others = others(host)?;
        let Some(first) = others.first() else { return Ok(()) };
        let mut patience = GUARD_TIME.saturating_sub(began.elapsed());
        for other in &others {
            match other.stands {
                Stands::PuttingBack => guard_seen = Instant::now(),
                Stands::Behind => {}
                Stands::AtWork { by_ssh: true } => return Err(busy(host, other.pid)),
                Stands::AtWork { by_ssh: false } => {
                    patience = patience.min(LOCAL_RUN_TIME.saturating_sub(guard_seen.elapsed()));
                }
            }
        }
        if patience.is_zero() {
            let at_work = others.iter().find(|other| other.stands != Stands::PuttingBack);
            return Err(match at_work {
                Some(other) => busy(host, other.pid),
                None => puts_back(host, first.pid),
            });
        }
        notice.of(host, first.pid, first.stands.does(), patience)?;
        sleep(LOOK_INTERVAL.min(patience));
    }
}

/// A process of another goodput.
struct Other {
    pid: u32,
    stands: Stands,
}

/// How another goodput stands to this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    /// Its run is over, and it puts back what that left.
    PuttingBack,
    /// It began later, so that it goes as soon as it sees this one.
    Behind,
    /// It began earlier, or nobody knows when.
    AtWork {
        /// Whether it changes the host by SSH.
        by_ssh: bool,
    },
}

impl Stands {
    /// What such a process does, as the rest of a sentence.
    fn does(self) -> &'static str {
        match self {
            Self::PuttingBack => PUTS_BACK,
            Self::Behind => "began later and is about to go",
            Self::AtWork { .. } => "changes settings",
        }
    }
}

/// The processes of other goodputs there that change something or put something back.
fn others(host: &mut Host) -> Result<Vec<Other>, RemoteError> {
    let mut ours = Vec::new();
    let own = host.dead_man.as_ref().map(|dead_man| dead_man.id.clone());
    for one in own.into_iter().chain(host.held_by.clone()) {
        ours.extend(find(host, &one)?);
    }
    let since = ours.iter().map(Process::place).min();
    let mut others = Vec::new();
    for (mark, by_ssh) in [(MARK, true), (LOCAL_GUARD, false)] {
        for process in host.system.processes(&mut host.session, mark)? {
            if !process.trusted || ours.iter().any(|own| own.pid == process.pid) {
                continue;
            }
            let stands = if host.system.is_putting_back(&mut host.session, process.pid)? {
                Stands::PuttingBack
            } else if since.is_some_and(|since| since < process.place()) {
                Stands::Behind
            } else {
                Stands::AtWork { by_ssh }
            };
            others.push(Other { pid: process.pid, stands });
        }
    }
    Ok(others)
}

/// Refuses a host that this run no longer holds: the session of the process that held it has ended, and somebody else may
/// have changed the host since.
pub(crate) fn check_hold(host: &mut Host) -> Result<(), RemoteError> {
    let Some(held_by) = host.held_by.clone() else { return Ok(()) };
    if find(host, &held_by)?.is_some_and(|process| process.trusted) {
        return Ok(());
    }
    Err(RemoteError::Lost {
        host: host.address.to_string(),
        doing: "hold the host for this run".into(),
        why: format!("process {} there has ended", held_by.pid),
    })
}

fn busy(host: &mut Host, pid: u32) -> RemoteError {
    RemoteError::Busy { host: host.address.to_string(), process: in_words(host, pid) }
}

fn puts_back(host: &mut Host, pid: u32) -> RemoteError {
    let process = format!("{}, {PUTS_BACK}", in_words(host, pid));
    RemoteError::Busy { host: host.address.to_string(), process }
}

/// A process there, with whose it is as far as the host shows it.
fn in_words(host: &mut Host, pid: u32) -> String {
    let whose = host.system.whose(&mut host.session, pid).ok().flatten();
    process(pid, whose.as_ref())
}
