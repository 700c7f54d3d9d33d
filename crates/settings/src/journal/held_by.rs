//! Who works on a journal, by its lock and its lines.

use super::contents::{Contents, Owner};
use crate::holder::Holder;

/// The first version of the format that notes who takes a journal over.
const NOTES_TAKE_OVERS: u32 = 4;

impl Owner {
    /// Whether the format of this journal has lines for those who take it over. An older goodput would read such a line as
    /// damage.
    pub(crate) fn notes_take_overs(&self) -> bool {
        self.format >= NOTES_TAKE_OVERS
    }
}

impl Contents {
    /// Who holds the journal while it is locked.
    pub(crate) fn holder(&self) -> Holder {
        let Some(owner) = &self.owner else { return Holder::Unknown { run: 0 } };
        let pid = owner.pid;
        match self.taken_over {
            Some(_) => self.successor(owner),
            None if owner.is_seen() => Holder::Run { pid },
            // Nobody has written since it died, so the lock is new.
            None if owner.process.is_of_here() => self.successor(owner),
            None if owner.notes_take_overs() && owner.process.is_contained() => {
                Holder::RunElsewhere { pid }
            }
            None => Holder::Unknown { run: pid },
        }
    }

    /// Who puts back what is in the journal once its run holds it no more.
    pub(crate) fn successor(&self, owner: &Owner) -> Holder {
        let by = self.taken_over.as_ref().filter(|by| by.process.is_seen(by.pid));
        Holder::PuttingBack { run: owner.pid, run_lives: owner.is_seen(), by: by.map(|by| by.pid) }
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
        contents.holder()
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
}
