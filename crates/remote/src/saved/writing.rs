//! Values that are written into several files of a host: into all of them, or none.

use goodput_settings::{Assignment, FileOutcome, TakenBack};

use super::{EDITED, SavedThere, check};
use crate::error::RemoteError;
use crate::keeper::Keeper;
use crate::look::Look;
use crate::shell::Shell;
use crate::system::System;
use crate::written::WrittenThere;

/// The files that are to keep some values.
pub(crate) struct Writing {
    plans: Vec<Plan>,
    assignments: Vec<Assignment>,
}

impl Writing {
    /// Finds out what is to be written, and writes nothing yet. Values that are kept already stay.
    ///
    /// # Errors
    /// When a value can't be kept by a file of ours.
    pub(crate) fn prepare(
        system: &dyn System,
        shell: &mut dyn Shell,
        assignments: &[Assignment],
    ) -> Result<Self, RemoteError> {
        check(system, shell, assignments)?;
        let plans = plans(system, shell, assignments)?;
        Ok(Self { plans, assignments: assignments.to_vec() })
    }

    /// Writes the lines that keep the values after a reboot, and returns their files. `note` comes to know of them first.
    ///
    /// # Errors
    /// When `note` fails: then nothing is written. When a file can't be written: all are then as before, unless the
    /// connection is lost.
    pub(crate) fn write(
        &self,
        system: &dyn System,
        shell: &mut dyn Shell,
        note: impl FnOnce(Vec<WrittenThere>) -> Result<(), RemoteError>,
    ) -> Result<Vec<SavedThere>, RemoteError> {
        note(self.plans.iter().map(Plan::noted).collect())?;
        if let Err(failure) = self.plans.iter().try_for_each(|plan| plan.write(system, shell)) {
            // Only the first failure is reported.
            let _ = self.take_back(system, shell);
            return Err(failure);
        }
        let is_asked = |plan: &&Plan| self.assignments.iter().any(|one| plan.keeps.contains(one));
        let mut look = Look::new(shell);
        let of = |plan: &Plan| {
            let saved = SavedThere::new(&plan.keeper, plan.keeps.clone(), true);
            saved.judged(system, &mut look, &plan.keeper)
        };
        Ok(self.plans.iter().filter(is_asked).map(of).collect())
    }

    /// Makes all files as they were before, the last one first. Whatever fails, the rest is taken back.
    ///
    /// # Errors
    /// The first failure.
    pub(crate) fn take_back(
        &self,
        system: &dyn System,
        shell: &mut dyn Shell,
    ) -> Result<(), RemoteError> {
        let back = self.plans.iter().rev().map(|plan| plan.take_back(system, shell));
        // All of them, before the first failure is looked for.
        back.collect::<Vec<_>>().into_iter().collect()
    }
}

/// What one file should keep.
pub(super) struct Plan {
    pub(super) keeper: Keeper,
    sum: String,
    pub(super) is_made: bool,
    before: Vec<Assignment>,
    pub(super) keeps: Vec<Assignment>,
}

impl Plan {
    /// The file as it is.
    fn found(shell: &mut dyn Shell, keeper: Keeper) -> Result<Self, RemoteError> {
        let found = keeper.found(shell)?;
        if found.ours.as_ref().is_some_and(|ours| !ours.intact) {
            return Err(keeper.left(shell.host(), EDITED));
        }
        let before = found.ours.map(|ours| ours.keeps).unwrap_or_default();
        let (sum, is_made) = (found.sum, found.is_made);
        Ok(Self { keeper, sum, is_made, keeps: before.clone(), before })
    }

    fn add(&mut self, (setting, value): &Assignment) {
        match self.keeps.iter_mut().find(|(known, _)| known == setting) {
            Some(kept) => kept.1.clone_from(value),
            None => self.keeps.push((setting.clone(), value.clone())),
        }
    }

    fn noted(&self) -> WrittenThere {
        let (path, is_made) = (self.keeper.path.clone(), self.is_made);
        WrittenThere { path, is_made, before: self.before.clone(), keeps: self.keeps.clone() }
    }

    fn write(&self, system: &dyn System, shell: &mut dyn Shell) -> Result<(), RemoteError> {
        self.keeper.write(shell, system, (&self.sum, self.is_made), &self.keeps)
    }

    /// Makes the lines as they were before. If the connection was lost, nobody knows whether they were written.
    fn take_back(&self, system: &dyn System, shell: &mut dyn Shell) -> Result<(), RemoteError> {
        match self.noted().take_back(system, shell)? {
            FileOutcome::ChangedByOther => Err(self.keeper.left(shell.host(), EDITED)),
            _ => Ok(()),
        }
    }
}

/// Makes files as they were before a run wrote them, the last one first. Whatever fails, the rest is put back. What someone
/// has changed since is left alone.
pub(crate) fn take_back(
    system: &dyn System,
    shell: &mut dyn Shell,
    written: &[WrittenThere],
) -> Vec<TakenBack> {
    let back = written.iter().rev().map(|file| {
        let outcome = file.take_back(system, shell);
        let outcome = outcome.unwrap_or_else(|error| FileOutcome::Failed(error.to_string()));
        TakenBack { path: file.path.clone(), outcome }
    });
    back.collect()
}

/// The outcomes if no file can be put back.
pub(crate) fn not_taken_back(written: &[WrittenThere], why: &str) -> Vec<TakenBack> {
    let of = |file: &WrittenThere| TakenBack {
        path: file.path.clone(),
        outcome: FileOutcome::Failed(why.into()),
    };
    written.iter().rev().map(of).collect()
}

impl WrittenThere {
    /// Makes the lines as they were before. The file is looked at whether or not the host lists it.
    fn take_back(
        &self,
        system: &dyn System,
        shell: &mut dyn Shell,
    ) -> Result<FileOutcome, RemoteError> {
        let keeper = system.keeper_at(&self.path);
        let found = match keeper.found(shell) {
            Ok(found) => found,
            // What is there now is not goodput's.
            Err(RemoteError::LeftAlone { .. }) => return Ok(FileOutcome::ChangedByOther),
            Err(error) => return Err(error),
        };
        let ours = found.ours.as_ref();
        let now = ours.map_or(&[][..], |ours| &ours.keeps);
        if ours.is_some_and(|ours| !ours.intact) || (now != self.before && now != self.keeps) {
            return Ok(FileOutcome::ChangedByOther);
        }
        if now == self.before {
            return Ok(match keeper.remove_dangling_link(shell)? {
                true => FileOutcome::PutBack,
                false => FileOutcome::AlreadyBack,
            });
        }
        keeper.write(shell, system, (&found.sum, self.is_made), &self.before)?;
        Ok(FileOutcome::PutBack)
    }
}

pub(super) fn plans(
    system: &dyn System,
    shell: &mut dyn Shell,
    assignments: &[Assignment],
) -> Result<Vec<Plan>, RemoteError> {
    let mut plans: Vec<Plan> = Vec::new();
    for assignment in assignments {
        let keeper = system.keeper(shell, &assignment.0, &assignment.1)?;
        let index = match plans.iter().position(|plan| plan.keeper == keeper) {
            Some(index) => index,
            None => {
                plans.push(Plan::found(shell, keeper)?);
                plans.len() - 1
            }
        };
        plans[index].add(assignment);
    }
    plans.retain(|plan| plan.keeps != plan.before || !plan.sum.is_empty());
    let others = elsewhere(system, shell, assignments, &plans)?;
    plans.extend(others);
    Ok(plans)
}

/// Files other than those of `plans` that keep one of these settings, without it: a value may move to another file if
/// udevd configures its device by now.
fn elsewhere(
    system: &dyn System,
    shell: &mut dyn Shell,
    assignments: &[Assignment],
    plans: &[Plan],
) -> Result<Vec<Plan>, RemoteError> {
    let is_new = |(kept, _): &Assignment| assignments.iter().any(|(setting, _)| setting == kept);
    let mut others = Vec::new();
    for keeper in system.keepers(shell)? {
        if plans.iter().any(|plan| plan.keeper == keeper) {
            continue;
        }
        let keeps = match keeper.found(shell) {
            Ok(found) => found.ours.map(|ours| ours.keeps).unwrap_or_default(),
            // Someone else's file contains nothing of ours.
            Err(RemoteError::LeftAlone { .. }) => continue,
            Err(error) => return Err(error),
        };
        if keeps.iter().any(is_new) {
            let mut plan = Plan::found(shell, keeper)?;
            plan.keeps.retain(|kept| !is_new(kept));
            others.push(plan);
        }
    }
    Ok(others)
}
