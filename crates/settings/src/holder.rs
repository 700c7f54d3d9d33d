//! Who works on the journal of a run, and so on the settings that the run changed: the run itself, or whoever puts back
//! what it left.
//!
//! The lock of the journal shows that somebody does, and the lines of the journal show who: whoever takes over a journal
//! writes itself down before it puts anything back (`Line::TakenOver`).

use std::fmt;

use crate::journal::{Contents, Owner};

/// The first version of the format that notes who takes a journal over.
const NOTES_TAKE_OVERS: u32 = 4;

/// Who works on a journal that is locked, or is about to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// The run itself, which is seen to be alive.
    Run {
        /// Its process.
        pid: u32,
    },
    /// The run itself, in another container: the processes there are not seen from here.
    RunElsewhere {
        /// Its process, as that container counts.
        pid: u32,
    },
    /// A process that puts back what the run left: the run's guard, or an undo.
    PuttingBack {
        /// The process of the run.
        run: u32,
        /// Whether the run's process lives and could not put everything back itself; otherwise it was interrupted.
        run_lives: bool,
        /// The process that puts back, if it has noted itself and is seen from here.
        by: Option<u32>,
    },
    /// The run itself, which can't be seen from here, or its guard: an older goodput notes too little to tell.
    Unknown {
        /// The process of the run.
        run: u32,
    },
}

impl Holder {
    /// Who holds a journal that is locked, and what it says.
    pub(crate) fn of_locked(contents: &Contents) -> Self {
        let Some(owner) = &contents.owner else { return Self::Unknown { run: 0 } };
        let pid = owner.pid;
        match contents.taken_over {
            Some(_) => Self::of_released(contents, owner),
            None if owner.is_seen() => Self::Run { pid },
            // Nobody has written since it died, so the lock is new.
            None if owner.process.is_of_here() => Self::of_released(contents, owner),
            None if owner.format >= NOTES_TAKE_OVERS && owner.process.is_contained() => {
                Self::RunElsewhere { pid }
            }
            None => Self::Unknown { run: pid },
        }
    }

    /// Who puts back what is in a journal that its run holds no more.
    pub(crate) fn of_released(contents: &Contents, owner: &Owner) -> Self {
        let by = contents.taken_over.as_ref().filter(|by| by.process.is_seen(by.pid));
        Self::PuttingBack { run: owner.pid, run_lives: owner.is_seen(), by: by.map(|by| by.pid) }
    }

    /// Whether it is a run at work, which puts everything back itself.
    pub fn is_run(&self) -> bool {
        matches!(self, Self::Run { .. } | Self::RunElsewhere { .. })
    }
}

impl fmt::Display for Holder {
    /// Who does what, as a sentence without its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run { pid } => write!(f, "another goodput (process {pid}) is at work"),
            Self::RunElsewhere { pid } => {
                write!(f, "a goodput in another container (process {pid} there) is at work")
            }
            Self::PuttingBack { run, run_lives, by } => {
                let who = match by {
                    Some(by) => format!("process {by}"),
                    None => "its guard, or an undo,".into(),
                };
                match run_lives {
                    true => write!(
                        f,
                        "goodput (process {run}) could not put back all that it had changed, and {who} tries again"
                    ),
                    false => write!(
                        f,
                        "goodput (process {run}) was interrupted, and {who} puts back what that run changed"
                    ),
                }
            }
            Self::Unknown { run } => write!(
                f,
                "an older goodput (process {run}) is at work in another container, or was interrupted and its guard puts \
                 back what it changed"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Asker, TakenOver};
    use crate::place::Place;
    use crate::process::ProcessMark;

    /// The mark of a process in another container of this host.
    fn contained() -> ProcessMark {
        ProcessMark { process_namespace: Some(1), ..ProcessMark::own() }
    }

    /// The mark of a process of this container that has ended: another one has its number now.
    fn ended() -> ProcessMark {
        let own = ProcessMark::own();
        ProcessMark { started: own.started.map(|ticks| ticks + 1), ..own }
    }

    fn holder(format: u32, process: ProcessMark, by: Option<ProcessMark>) -> Holder {
        let pid = std::process::id();
        let place = Place::here().unwrap();
        let owner = Owner { format, pid, process, place, asker: Asker::User };
        let taken_over = by.map(|process| TakenOver { pid, process });
        let mut contents = Contents::default();
        (contents.owner, contents.taken_over) = (Some(owner), taken_over);
        Holder::of_locked(&contents)
    }

    #[test]
    fn a_live_run_its_guard_and_the_guard_of_a_killed_run_are_told_apart() {
        let pid = std::process::id();
        let putting_back = |run_lives, by| Holder::PuttingBack { run: pid, run_lives, by };
        let own = ProcessMark::own;
        assert_eq!(holder(4, own(), None), Holder::Run { pid });
        assert_eq!(holder(4, own(), Some(own())), putting_back(true, Some(pid)));
        assert_eq!(holder(4, ended(), Some(own())), putting_back(false, Some(pid)));
        assert_eq!(holder(4, ended(), None), putting_back(false, None), "its guard begins");
        assert_eq!(holder(4, contained(), None), Holder::RunElsewhere { pid });
        assert_eq!(holder(4, contained(), Some(contained())), putting_back(false, None));
        assert_eq!(holder(3, contained(), None), Holder::Unknown { run: pid });
        assert_eq!(holder(3, own(), None), Holder::Run { pid });
    }

    #[test]
    fn each_holder_is_named_in_words() {
        let run = 7;
        for (holder, words) in [
            (Holder::Run { pid: run }, "another goodput (process 7) is at work"),
            (Holder::RunElsewhere { pid: run }, "in another container (process 7 there)"),
            (
                Holder::PuttingBack { run, run_lives: true, by: Some(9) },
                "(process 7) could not put back all that it had changed, and process 9 tries again",
            ),
            (
                Holder::PuttingBack { run, run_lives: false, by: None },
                "(process 7) was interrupted, and its guard, or an undo, puts back",
            ),
            (Holder::Unknown { run }, "an older goodput (process 7)"),
        ] {
            let said = holder.to_string();
            assert!(said.contains(words), "{said}");
        }
    }
}
