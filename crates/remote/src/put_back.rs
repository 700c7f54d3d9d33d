//! Puts back the changes made at a host, over a session.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

use goodput_settings::Outcome;

use crate::entry::{Cell, Entry, maker, originals};
use crate::error::RemoteError;
use crate::look::Look;
use crate::shell::Shell;
use crate::system::System;

/// How often an unrestored value is written: a value may drag others along, and a device that restarts refuses for a
/// moment.
const MAX_WRITE_ATTEMPTS: u32 = 6;

/// Pause before a value is written again after a failed attempt.
const RETRY_PAUSE: Duration = Duration::from_millis(300);

/// How we judge a value.
#[derive(Debug, PartialEq, Eq)]
enum State {
    /// It is the original, or ours.
    Ours,
    /// Someone else made this of it.
    Theirs(String),
    /// The object that it belongs to is gone, and our change with it.
    Gone(String),
    /// It can't be read.
    Unknown(String),
}

/// A value that is put back.
struct Sheet<'a> {
    cell: &'a Cell,
    /// What makes its object, if this run made it.
    maker: Option<&'a Cell>,
    state: State,
    wrote: bool,
    /// Why it is not back after the last round.
    left: Option<String>,
}

/// Puts back every entry with everything that changed along with it. Returns the outcomes, in the order of the entries.
///
/// All values are judged before any is written: a write drags others along, and these must not pass for someone else's
/// changes.
pub(crate) fn put_back(
    system: &dyn System,
    shell: &mut dyn Shell,
    entries: &[Entry],
) -> Vec<Outcome> {
    let mut sheets = judge(system, shell, entries);
    let mut failures = BTreeMap::new();
    let mut before = Vec::new();
    for _ in 0..MAX_WRITE_ATTEMPTS {
        let wrong = wrong(system, shell, &mut sheets);
        if wrong.is_empty() {
            break;
        }
        if wrong == before {
            sleep(RETRY_PAUSE);
        }
        for index in wrong.iter().copied() {
            let sheet = &mut sheets[index];
            sheet.wrote = true;
            match sheet.cell.back.iter().find_map(|command| shell.output(command).err()) {
                Some(error) => failures.insert(index, error.to_string()),
                None => failures.remove(&index),
            };
        }
        before = wrong;
    }
    for index in wrong(system, shell, &mut sheets) {
        let failed = failures.remove(&index);
        let sheet = &mut sheets[index];
        sheet.left = failed.or(sheet.left.take());
    }
    entries.iter().map(|entry| outcome(entry, &sheets)).collect()
}

fn judge<'a>(system: &dyn System, shell: &mut dyn Shell, entries: &'a [Entry]) -> Vec<Sheet<'a>> {
    let mut look = Look::new(shell);
    let mut sheets = Vec::new();
    // The last change first, each setting before what it dragged along.
    let in_order = originals(entries);
    let mut originals = in_order.clone();
    originals.sort_by_key(|(of, _)| std::cmp::Reverse(*of));
    for (_, cell) in originals {
        let maker = maker(system, &in_order, cell);
        let state = match is_back(system, &mut look, maker) {
            true => Ok(State::Ours),
            false => state(system, &mut look, entries, cell),
        };
        let state = state.unwrap_or_else(|error| State::Unknown(error.to_string()));
        sheets.push(Sheet { cell, maker, state, wrote: false, left: None });
    }
    sheets
}

/// Whether what makes the object of a value has its original, so that nothing of ours is left of that value.
fn is_back(system: &dyn System, look: &mut Look<'_>, maker: Option<&Cell>) -> bool {
    maker.is_some_and(|maker| {
        system.read(look, &maker.setting).is_ok_and(|now| now == maker.original)
    })
}

fn state(
    system: &dyn System,
    look: &mut Look<'_>,
    entries: &[Entry],
    cell: &Cell,
) -> Result<State, RemoteError> {
    if let Some(why) = system.gone(look, &cell.setting)? {
        let is_our_doing = is_removed_by_us(system, look, entries, cell)?;
        return Ok(if is_our_doing { State::Ours } else { State::Gone(why) });
    }
    let now = system.read(look, &cell.setting)?;
    if now == cell.original {
        return Ok(State::Ours);
    }
    for entry in entries {
        let is_main = entry.main.setting == cell.setting;
        for own in entry.cells().filter(|own| own.setting == cell.setting) {
            let is_ours = match entry.doubt {
                true if is_main || !own.theirs => can_be_ours(system, look, &entry.main)?,
                _ => own.made.as_deref() == Some(&now),
            };
            if is_ours {
                return Ok(State::Ours);
            }
        }
    }
    Ok(State::Theirs(now))
}

/// Whether this run removed the object of a value, by changing what makes it.
fn is_removed_by_us(
    system: &dyn System,
    look: &mut Look<'_>,
    entries: &[Entry],
    cell: &Cell,
) -> Result<bool, RemoteError> {
    let made_by = system.made_by(&cell.setting);
    let maker =
        originals(entries).into_iter().find(|(_, cell)| Some(&cell.setting) == made_by.as_ref());
    match maker {
        Some((_, maker)) => Ok(state(system, look, entries, maker)? == State::Ours),
        None => Ok(false),
    }
}

/// Whether a setting has a value that the change under way may have left.
fn can_be_ours(system: &dyn System, look: &mut Look<'_>, main: &Cell) -> Result<bool, RemoteError> {
    let Some(under_way) = &main.under_way else { return Ok(true) };
    if look.run(&under_way.command())?.status == 0 {
        return Ok(true);
    }
    Ok(main.asked.is_some() && main.may_have_become(&system.read(look, &main.setting)?))
}

/// Which of our values are not back.
fn wrong(system: &dyn System, shell: &mut dyn Shell, sheets: &mut [Sheet<'_>]) -> Vec<usize> {
    let mut look = Look::new(shell);
    let mut wrong = Vec::new();
    for (index, sheet) in sheets.iter_mut().enumerate() {
        if sheet.state != State::Ours {
            continue;
        }
        if is_back(system, &mut look, sheet.maker) {
            sheet.left = None;
            continue;
        }
        sheet.left = match system.read(&mut look, &sheet.cell.setting) {
            Ok(now) if now == sheet.cell.original => None,
            Ok(now) => Some(format!("the kernel made it {now}")),
            Err(error) => Some(error.to_string()),
        };
        if sheet.left.is_some() {
            wrong.push(index);
        }
    }
    wrong
}

fn outcome(entry: &Entry, sheets: &[Sheet<'_>]) -> Outcome {
    let of = |cell: &Cell| sheets.iter().find(|sheet| sheet.cell.setting == cell.setting);
    let Some(main) = of(&entry.main) else { return Outcome::AlreadyBack };
    let why = |sheet: &Sheet<'_>| match &sheet.state {
        State::Unknown(why) => Some(why.clone()),
        _ => sheet.left.clone(),
    };
    if let Some(why) = why(main) {
        return Outcome::Failed(why);
    }
    let around: Vec<_> = entry.around.iter().filter_map(of).collect();
    let left =
        around.iter().filter_map(|sheet| Some(format!("{}: {}", sheet.cell.setting, why(sheet)?)));
    let left: Vec<_> = left.collect();
    if !left.is_empty() {
        let left = left.join("; ");
        return Outcome::Failed(format!("the value is back, but not what changed with it: {left}"));
    }
    let ours = entry.main.made.clone().unwrap_or_default();
    match &main.state {
        State::Theirs(now) => Outcome::ChangedByOther { now: now.clone(), ours },
        State::Gone(why) => Outcome::Gone { why: why.clone() },
        _ if main.wrote || around.iter().any(|sheet| sheet.wrote) => {
            Outcome::PutBack { to: main.cell.original.clone() }
        }
        _ => Outcome::AlreadyBack,
    }
}
