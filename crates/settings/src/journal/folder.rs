//! The journals of one directory that nobody holds any more, and the journals of all other runs.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use goodput_model::SettingRef;

use super::asker::Asker;
use super::contents::{Contents, Owner, Text};
use super::elsewhere::Elsewhere;
use super::entry::Entry;
use super::file::{JournalFile, SUFFIX};
use super::list::List;
use super::own_folder::{FolderLock, check_folder, lock_folder};
use super::sealed_file::remove_unnamed;
use super::text::JournalContents;
use crate::error::{self, SettingError};
use crate::footprint::Footprint;
use crate::guard::runs as guard_runs;
use crate::holder::Holder;
use crate::lookup;
use crate::place::Place;
use crate::setting::Machine;

/// A journal whose owner is dead.
#[derive(Debug)]
pub(crate) struct Found {
    /// Its path.
    pub(crate) path: PathBuf,
    /// What it says, or why it can't be read.
    pub(crate) text: io::Result<Text>,
}

/// A journal, open unless somebody holds it or it is closed.
type Opened = (PathBuf, io::Result<Option<JournalFile>>);

/// Opens every journal in `state_dir`, oldest first.
pub(crate) fn abandoned(state_dir: &Path) -> Result<Vec<Opened>, SettingError> {
    list(state_dir).or_else(|cause| match cause.kind() {
        io::ErrorKind::NotFound => Ok(Vec::new()),
        _ => Err(error::of_journal("read", state_dir, cause)),
    })
}

/// The journals in other directories than `state_dir` that runs of this boot list, or that earlier ones left, oldest first.
pub(crate) fn listed_elsewhere(state_dir: &Path) -> Vec<PathBuf> {
    let state_dir = state_dir.canonicalize().unwrap_or_else(|_| state_dir.into());
    let mut paths = List::of(&state_dir).map(|list| list.peek()).unwrap_or_default();
    paths.retain(|path| path.parent() != Some(&state_dir));
    let links = Elsewhere::of(&state_dir);
    paths.extend(links.map(|links| links.journals(&state_dir, SUFFIX)).unwrap_or_default());
    paths.sort_by(|one, other| (one.file_name(), one).cmp(&(other.file_name(), other)));
    paths.dedup();
    paths
}

/// The journals that earlier boots left, of this host or of hosts by SSH, whose whole directory is missing.
pub(crate) fn missing(state_dir: &Path) -> Vec<PathBuf> {
    Elsewhere::of(state_dir).map(|links| links.missing()).unwrap_or_default()
}

/// Gives up such a journal.
pub(crate) fn forget_missing(state_dir: &Path, journal: &Path) {
    Elsewhere::of(state_dir).inspect(|links| links.forget(journal));
}

/// Opens one journal, unless somebody holds it or it is closed.
pub(crate) fn open_one(path: &Path) -> io::Result<Option<JournalFile>> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    check_folder(folder)?;
    let _busy = lock_folder(folder)?;
    JournalFile::open_abandoned(path)
}

/// The journals of dead owners in `state_dir` and on the list; nothing is changed.
pub(crate) fn left(state_dir: &Path) -> Vec<Found> {
    let state_dir = state_dir.canonicalize().unwrap_or_else(|_| state_dir.into());
    let mut paths = journals(&state_dir).unwrap_or_default();
    paths.extend(listed_elsewhere(&state_dir));
    paths.sort();
    paths.dedup();
    let dead = |path: PathBuf| match JournalFile::peek(&path) {
        Ok(None | Some((_, true))) => None,
        Ok(Some((text, false))) => Some(Found { path, text: Ok(text) }),
        Err(error) => Some(Found { path, text: Err(error) }),
    };
    paths.into_iter().filter_map(dead).collect()
}

/// Begins the journal of this process in `state_dir`, which is created if need be.
///
/// # Errors
/// If it can't be written, or another run changes this namespace now, or the guard of a dead one.
pub(crate) fn begin(
    state_dir: &Path,
    place: &Place,
    asker: Asker,
) -> Result<JournalFile, SettingError> {
    let others = |folder: &Path, list: &List| in_the_way(folder, list, place, asker);
    JournalFile::create(state_dir, place, asker, others)
}

/// Why a run for `asker` must not begin, if so: another run changes this namespace now, or somebody puts back there what
/// a run left.
fn in_the_way(
    folder: &Path,
    list: &List,
    place: &Place,
    asker: Asker,
) -> io::Result<Option<SettingError>> {
    let mut others = journals(folder)?;
    others.extend(list.journals());
    let found = others.iter().find_map(|path| {
        // A journal that can't be read is someone else's.
        let (text, held) = JournalFile::peek(path).ok()??;
        let owner = text.says.owner.as_ref()?;
        if !owner.place.same_namespace(place) {
            return None;
        }
        let journal = path.clone();
        if held {
            return refused(text.says.holder(), owner, asker, journal);
        }
        // Between the end of a run and the first step of its guard, nobody holds the journal.
        let is_guarded = !text.says.is_empty() && guard_runs(path);
        let holder = text.says.successor(owner);
        is_guarded.then_some(SettingError::GuardAtWork { holder, journal })
    });
    Ok(found)
}

/// Why a run for `asker` must not begin beside the holder of a locked journal, if so. Runs of one process that its user
/// asked for count as one. A guard is in everyone's way: it takes what changes meanwhile for what came along with its
/// run's changes.
fn refused(holder: Holder, owner: &Owner, asker: Asker, journal: PathBuf) -> Option<SettingError> {
    let excludes = asker.excludes(owner.asker);
    match holder {
        Holder::Run { pid } => {
            let is_this_run = owner.is_this_process() && asker.is_user() && owner.asker.is_user();
            (excludes && !is_this_run).then_some(SettingError::Busy { pid })
        }
        Holder::RunElsewhere { pid } => {
            excludes.then_some(SettingError::BusyElsewhere { pid, journal })
        }
        holder => Some(SettingError::GuardAtWork { holder, journal }),
    }
}

/// The right to change a setting: while it is held, no other run begins to change anything.
#[derive(Debug)]
pub(crate) struct Claim {
    /// The cells that other runs have changed and will put back.
    pub(crate) theirs: BTreeSet<String>,
    _list: FolderLock,
    _folder: FolderLock,
}

/// Makes sure that no other run, live or dead, in this directory or in another, has changed `setting` or
/// anything that the kernel alters along with it: the two runs would take each other's values for
/// originals.
pub(crate) fn claim(
    own: &Path,
    place: &Place,
    machine: &dyn Machine,
    setting: &SettingRef,
) -> Result<Claim, SettingError> {
    let folder = own.parent().unwrap_or(Path::new("/"));
    let fail = |cause| error::of_journal("look next to", own, cause);
    let list = List::of(folder)?;
    let (_list, _folder) = (list.lock()?, lock_folder(folder).map_err(fail)?);
    let mut claim = Claim { theirs: BTreeSet::new(), _list, _folder };
    let wanted = cells(machine, setting);
    let mut others = journals(folder).map_err(fail)?;
    others.extend(list.journals());
    for path in others.iter().filter(|path| *path != own) {
        // A journal that vanishes meanwhile holds nothing; one that can't be read is someone else's.
        let Ok(Some((text, alive))) = JournalFile::peek(path) else {
            continue;
        };
        let Contents { owner, entries, .. } = &text.says;
        // A journal whose first line is damaged may belong to any place.
        let here = owner.as_ref().is_none_or(|owner| owner.place.same_namespace(place));
        if let Some(why) = text.damaged(path).filter(|_| here && !alive) {
            let report = format!("{}: {why}", path.display());
            return Err(SettingError::Unreadable { report });
        }
        let same_boot = owner.as_ref().is_none_or(|owner| owner.place.same_boot(place));
        let shared = |entry: &&Entry| {
            let namespaced = lookup::machine(&entry.setting).map(|m| m.namespaced(&entry.setting));
            same_boot && namespaced.is_ok_and(|namespaced| !namespaced)
        };
        for entry in entries.iter().filter(|entry| here || shared(entry)) {
            let theirs = changed_cells(entry);
            if entry.setting != *setting && theirs.is_disjoint(&wanted) {
                claim.theirs.extend(theirs);
                continue;
            }
            let setting = entry.setting.clone();
            let journal = path.clone();
            return Err(match alive.then(|| text.says.holder()) {
                None => SettingError::LeftChanged { setting, journal },
                Some(Holder::Run { pid }) => SettingError::InUse { setting, pid },
                Some(holder) => SettingError::Held { setting, holder, journal },
            });
        }
    }
    Ok(claim)
}

/// The cells that a change of `setting` is certain to alter: its own, and the parameters coupled with it.
fn cells(machine: &dyn Machine, setting: &SettingRef) -> BTreeSet<String> {
    let footprint: Footprint = machine.footprint(setting);
    footprint.parameters().chain(machine.cell(setting)).collect()
}

/// The cells that an entry of a journal has changed or is about to change.
fn changed_cells(entry: &Entry) -> BTreeSet<String> {
    let certain = lookup::machine(&entry.setting).map(|machine| cells(machine, &entry.setting));
    certain.into_iter().flatten().chain(entry.touched.iter().cloned()).collect()
}

fn list(state_dir: &Path) -> io::Result<Vec<Opened>> {
    check_folder(state_dir)?;
    let state_dir = state_dir.canonicalize()?;
    let _busy = lock_folder(&state_dir)?;
    remove_unnamed(&state_dir, SUFFIX)?;
    let open = |path: PathBuf| {
        let opened = JournalFile::open_abandoned(&path);
        (path, opened)
    };
    Ok(journals(&state_dir)?.into_iter().map(open).collect())
}

/// The journals in a folder, oldest first.
fn journals(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_str().is_some_and(|name| name.ends_with(SUFFIX)) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
