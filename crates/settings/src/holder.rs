//! Who works on the journal of a run, and so on the settings that the run changed: the run itself, or whoever puts back
//! what it left.
//!
//! The lock of the journal shows that somebody does, and the lines of the journal show who: whoever takes over a journal
//! writes itself down before it puts anything back (`Line::TakenOver`).

use std::fmt;

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
        /// The process of the run; 0 if the journal does not say it.
        run: u32,
    },
}

impl Holder {
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
            Self::Unknown { run: 0 } => {
                f.write_str("a process that its journal does not name is at work")
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
