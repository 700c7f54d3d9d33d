//! The changes made at a host, on this host's disk, in case the host can't put them back.

use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use goodput_settings::{
    Durable, Elsewhere, JournalContents, JournalText, ProcessMark, SealedFile, make_own_folder,
};
use serde::{Deserialize, Serialize};

use crate::entry::{Cell, Entry};
use crate::error::RemoteError;
use crate::ssh::{Access, DeadManId};
use crate::written::WrittenThere;

/// Suffix of these journals' names.
const SUFFIX: &str = ".remote.jsonl";

/// The version of the format that is written. The first had neither the machine nor the values that a change under way
/// can leave, the second no [`Line::Writes`].
const FORMAT_VERSION: u32 = 3;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub(crate) enum Line {
    /// The first line.
    Begin(Owner),
    /// A setting is about to be changed.
    Intent {
        /// The setting, with its value before the first change.
        main: Cell,
        /// What may change along with it, with the values before the first change.
        around: Vec<Cell>,
        /// The value that it is about to get.
        to: String,
    },
    /// The last change was carried out.
    Effective {
        /// The setting now.
        main: Cell,
        /// What was changed along with it.
        around: Vec<Cell>,
    },
    /// There is nothing left to do about a setting.
    Settled {
        /// The setting.
        main: Cell,
    },
    /// Files that keep values over a reboot are about to be written there.
    Writes {
        /// The files, in the order in which they are written.
        files: Vec<WrittenThere>,
    },
    /// There is nothing left to do about such files.
    FilesSettled {
        /// How many changes of files that is about, for people.
        changes: usize,
    },
}

/// Which host was changed, from where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// [`FORMAT_VERSION`] of the writer.
    pub(crate) format: u32,
    /// Process id of the run here.
    pub(crate) pid: u32,
    /// What distinguishes that process from others with its number.
    #[serde(flatten)]
    pub(crate) process: ProcessMark,
    /// The host, as `ssh://…`.
    pub(crate) host: String,
    /// How it was reached.
    pub(crate) access: Access,
    /// What the host reported about its boot and the place of the session.
    pub(crate) identity: Vec<String>,
    /// Distinguishes that machine from every other one, if the host reports this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) machine: Option<String>,
    /// Process id of the dead-man there.
    pub(crate) dead_man: u32,
    /// The word of the dead-man's command line that no other session has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mark: Option<String>,
}

impl Owner {
    /// How the dead-man is known there.
    pub(crate) fn dead_man(&self) -> DeadManId {
        DeadManId { pid: self.dead_man, mark: self.mark.clone() }
    }

    /// Whether this process is the run: in another container, another process may have its number.
    pub(crate) fn is_this_process(&self) -> bool {
        self.process.is_this_process(self.pid)
    }
}

/// A journal of changes of a host that was read.
pub(crate) type Text = JournalText<Contents>;

/// What the whole lines of a journal say.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Contents {
    /// The first line, if it can be read.
    pub(crate) owner: Option<Owner>,
    /// The entries to put back, in the order of the changes.
    pub(crate) entries: Vec<Entry>,
    /// The files to put back, in the order of the changes.
    pub(crate) written: Vec<WrittenThere>,
}

impl JournalContents for Contents {
    type Line = Line;

    const KNOWN_FORMATS: RangeInclusive<u32> = 1..=FORMAT_VERSION;
    const NEEDS_FIRST_LINE: bool = true;

    fn add(&mut self, line: Line) {
        match line {
            Line::Begin(owner) => self.owner = Some(owner),
            Line::Intent { main, around, .. } => {
                let entry = Entry { main, around, doubt: true };
                let mut entries = self.entries.iter_mut();
                match entries.find(|known| known.main.setting == entry.main.setting) {
                    Some(known) => *known = entry,
                    None => self.entries.push(entry),
                }
            }
            Line::Effective { main, around } => {
                let found = self.entries.iter_mut().find(|e| e.main.setting == main.setting);
                let Some(entry) = found else { return };
                entry.doubt = false;
                entry.cells_mut().for_each(|cell| cell.made = None);
                for made in std::iter::once(main).chain(around) {
                    let cell = entry.cells_mut().find(|cell| cell.setting == made.setting);
                    cell.into_iter().for_each(|cell| cell.made.clone_from(&made.made));
                }
            }
            Line::Settled { main } => {
                self.entries.retain(|entry| entry.main.setting != main.setting);
                // Later changes found a value of our own making.
                for entry in &mut self.entries {
                    entry.around.retain(|cell| cell.setting != main.setting);
                }
            }
            Line::Writes { files } => self.written.extend(files),
            Line::FilesSettled { .. } => self.written.clear(),
        }
    }

    fn format(&self) -> Option<u32> {
        self.owner.as_ref().map(|owner| owner.format)
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.written.is_empty()
    }
}

/// An open journal, locked as long as this value lives.
#[derive(Debug)]
pub(crate) struct Journal(SealedFile);

impl Journal {
    /// Begins a journal in `state_dir`, and removes what writers left there that died before their journal began.
    pub(crate) fn create(
        state_dir: &Path,
        owner: impl FnOnce(u32, u32) -> Owner,
    ) -> Result<Self, RemoteError> {
        let first = Line::Begin(owner(FORMAT_VERSION, std::process::id()));
        let failed = |cause| RemoteError::Journal { path: state_dir.into(), cause };
        make_own_folder(state_dir).map_err(failed)?;
        // A later run may be in another directory.
        let state_dir = state_dir.canonicalize().map_err(failed)?;
        let begun = SealedFile::begin_in(&state_dir, SUFFIX, &first).map(Self).map_err(failed)?;
        elsewhere(&state_dir).inspect(|links| links.remember(begun.path()));
        Ok(begun)
    }

    /// Adds a line, which is on disk when this returns.
    pub(crate) fn note(&mut self, line: &Line) -> Result<(), RemoteError> {
        let written = self.0.append(line, Durable::Yes);
        written.map_err(|cause| self.failed(cause))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// What a person should know about it once it was used.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.0.notes()
    }

    /// Removes the journal: nothing is left to put back. A damaged one is set aside.
    pub(crate) fn close(&self) -> Result<(), RemoteError> {
        self.0.close().map_err(|cause| self.failed(cause))?;
        let links = self.path().parent().and_then(elsewhere);
        links.inspect(|links| links.forget(self.path()));
        Ok(())
    }

    fn failed(&self, cause: io::Error) -> RemoteError {
        RemoteError::Journal { path: self.path().into(), cause }
    }
}

/// A journal in a directory.
pub(crate) struct Found {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// What it says.
    pub(crate) text: Text,
    /// The journal itself, unless a live run holds it.
    pub(crate) journal: Option<Journal>,
}

impl Found {
    /// Why nothing is put back by this journal unless a person asks for that, if so.
    pub(crate) fn problem(&self) -> Option<String> {
        self.text.problem(&self.path)
    }
}

/// Removes what writers of such journals left in `state_dir` when they died before the first line was on disk. It has
/// changed nothing, so what can't be removed does no harm.
pub(crate) fn remove_unfinished(state_dir: &Path) {
    let _ = SealedFile::remove_unfinished(state_dir, SUFFIX);
}

/// Links to the journals in other directories. Tests have a usual directory of their own beside theirs, or none.
fn elsewhere(state_dir: &Path) -> Option<Elsewhere> {
    match cfg!(test) {
        true => {
            let usual = state_dir.parent()?.join("usual");
            usual.is_dir().then(|| Elsewhere::beside(usual))?
        }
        false => Elsewhere::here(),
    }
}

/// The journals in `state_dir`, and those in other directories that have to be looked at as well, the last one first. A journal that can't be read is an error in its place. Each is
/// opened and locked only when its turn comes: others may need the rest meanwhile.
pub(crate) fn all(
    state_dir: &Path,
) -> impl Iterator<Item = Result<Found, (PathBuf, io::Error)>> + use<> {
    let entries = fs::read_dir(state_dir).into_iter().flatten().flatten();
    let ours = |path: &PathBuf| path.to_str().is_some_and(|path| path.ends_with(SUFFIX));
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).filter(ours).collect();
    let links = elsewhere(state_dir).map(|links| links.journals(state_dir, SUFFIX));
    paths.extend(links.unwrap_or_default());
    paths.sort_by(|one, other| (one.file_name(), one).cmp(&(other.file_name(), other)));
    let open = |path: PathBuf| match open(&path) {
        Ok(found) => found.map(Ok),
        Err(error) => Some(Err((path, error))),
    };
    paths.into_iter().rev().filter_map(open)
}

/// Opens a journal. `None`: it was closed meanwhile.
fn open(path: &Path) -> io::Result<Option<Found>> {
    let opened = SealedFile::open(path)?;
    Ok(opened.map(|opened| Found {
        path: path.into(),
        text: opened.text,
        journal: opened.file.map(Journal),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::awaited::Notify;
    use crate::scripted::Scripted;
    use crate::systems;
    use goodput_settings::UndoRequest;
    use proptest::prelude::*;
    use std::os::unix::fs::MetadataExt;

    fn cell(made: Option<&str>) -> Cell {
        let show = "ip -j -p link show dev eth0";
        let mut shell = Scripted::default().prints(show, "[{\"mtu\":1500}]");
        let system = systems::of(&mut Scripted::default().prints("uname -s", "Linux")).unwrap();
        let setting = "link.mtu@eth0".parse().unwrap();
        let mut cell = Cell::found(system, &mut shell, setting).unwrap();
        cell.made = made.map(Into::into);
        cell
    }

    fn owner(format: u32, pid: u32) -> Owner {
        let (host, identity) = ("ssh://b".into(), vec!["boot".into()]);
        let machine = Some("m".into());
        let (access, process, dead_man, mark) = (Access::default(), ProcessMark::own(), 7, None);
        Owner { format, pid, process, host, access, identity, machine, dead_man, mark }
    }

    #[test]
    fn the_first_line_tells_the_run_from_another_one_with_its_number() {
        let read = |owner: &Owner| -> Owner {
            serde_json::from_str(&serde_json::to_string(owner).unwrap()).unwrap()
        };
        let this = read(&owner(FORMAT_VERSION, std::process::id()));
        assert_eq!(this.process, ProcessMark::own());
        let earlier = Owner { process: ProcessMark::default(), ..this.clone() };
        assert!(this.is_this_process() && read(&earlier).is_this_process());
        let process = ProcessMark { process_namespace: Some(1), ..ProcessMark::own() };
        let contained = Owner { process, ..this.clone() };
        assert!(!contained.is_this_process(), "both are process 1 of a container");
    }

    #[test]
    fn a_journal_says_what_is_to_be_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(folder.path(), owner).unwrap();
        let intent = Line::Intent { main: cell(None), around: Vec::new(), to: "9000".into() };
        journal.note(&intent).unwrap();
        let contents = || all(folder.path()).next().unwrap().ok().unwrap().text.says;
        assert!(contents().entries[0].doubt);
        journal.note(&Line::Effective { main: cell(Some("9000")), around: Vec::new() }).unwrap();
        assert_eq!(contents().entries[0].main, cell(Some("9000")));
        let found = all(folder.path()).next().unwrap().ok().unwrap();
        assert!(found.journal.is_none(), "its run lives");
        journal.note(&Line::Settled { main: cell(None) }).unwrap();
        assert!(contents().entries.is_empty());
        journal.close().unwrap();
        assert_eq!(all(folder.path()).count(), 0);
    }

    #[test]
    fn what_a_writer_left_that_died_early_is_removed_and_what_is_being_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (left, writes) = (folder.path().join("1-1.remote.new"), "2-2.remote.new");
        let writes = fs::File::create(folder.path().join(writes)).unwrap();
        writes.lock().unwrap();
        let is_removed_by = |remove: &dyn Fn()| {
            fs::write(&left, "{\"line\":\"be").unwrap();
            remove();
            !left.exists() && writes.metadata().unwrap().nlink() == 1
        };
        assert!(is_removed_by(&|| Journal::create(folder.path(), owner).unwrap().close().unwrap()));
        let nothing = UndoRequest::default();
        assert!(is_removed_by(&|| assert_eq!(
            crate::undo(folder.path(), nothing, &Notify::default()),
            []
        )));
        assert!(is_removed_by(&|| remove_unfinished(folder.path())));
    }

    #[test]
    fn a_journal_holds_up_no_other_one() {
        let folder = tempfile::tempdir().unwrap();
        drop(Journal::create(folder.path(), owner).unwrap());
        drop(Journal::create(folder.path(), owner).unwrap());
        // A process started by another test also holds the locks until its program begins.
        goodput_testing::wait_for("both to be free at once", || {
            let mut found = all(folder.path());
            let first = found.next().unwrap().ok().unwrap();
            let second = all(folder.path()).nth(1).unwrap().ok().unwrap();
            first.journal.is_some() && second.journal.is_some()
        });
    }

    #[test]
    fn a_journal_in_another_directory_is_found_from_the_usual_one() {
        let folder = tempfile::tempdir().unwrap();
        let [usual, other] = ["usual", "other"].map(|name| folder.path().join(name));
        make_own_folder(&usual).unwrap();
        let journal = Journal::create(&other, owner).unwrap();
        assert_eq!([&usual, &other].map(|state_dir| all(state_dir).count()), [1, 1]);
        journal.close().unwrap();
        assert_eq!([&usual, &other].map(|state_dir| all(state_dir).count()), [0, 0]);
    }

    #[test]
    fn a_journal_of_the_second_format_is_read() {
        const JOURNAL: &str = concat!(
            r#"{"line":"begin","format":2,"pid":9,"host":"ssh://b","access":{"config":null},"identity":["boot"],"#,
            r#""machine":"m","dead_man":7,"mark":"goodput-1"}"#,
            "\n",
            r#"{"line":"intent","main":{"setting":{"end":"near","name":"link.mtu","scope":"eth0"},"original":"1500","is_original":{"command":{"program":"ip","#,
            r#""args":["-j","-p","link","show","dev","eth0"]},"from":null,"line":".*\"mtu\": 1500,"},"#,
            r#""back":[{"program":"ip","args":["link","set","dev","eth0","mtu","1500"]}],"#,
            r#""under_way":{"command":{"program":"ip","args":["-j","-p","link","show","dev","eth0"]},"from":null,"#,
            r#""line":".*\"mtu\": 9000,"}},"around":[],"to":"9000"}"#,
            "\n",
        );
        let text = Text::read(JOURNAL.as_bytes());
        assert_eq!(text.problem(Path::new("/state/1")), None);
        let Contents { owner, entries, written } = text.says;
        let owner = owner.unwrap();
        assert_eq!((owner.format, owner.dead_man, &*owner.host), (2, 7, "ssh://b"));
        let [entry] = &entries[..] else { panic!("{entries:?}") };
        assert_eq!(entry.main.original, "1500");
        assert!(entry.doubt && entry.main.under_way.is_some() && written.is_empty());
    }

    #[test]
    fn damage_is_reported_and_a_torn_line_is_none() {
        let problem = |text: &[u8]| Text::read(text).problem(Path::new("/state/1"));
        let line = serde_json::to_string(&Line::Begin(owner(FORMAT_VERSION, 1))).unwrap();
        assert_eq!(problem(format!("{line}\n{{\"li").as_bytes()), None);
        assert!(problem(format!("{line}\nx\n").as_bytes()).unwrap().contains("2"));
        let overwritten = format!("{line}\n{line}x");
        assert!(problem(overwritten.as_bytes()).unwrap().contains("line 2"));
        let newer = line.replace("\"format\":3", "\"format\":4") + "\n";
        assert!(problem(newer.as_bytes()).unwrap().contains("format is 4"));
        let older = line.replace("\"format\":3", "\"format\":1").replace(",\"machine\":\"m\"", "");
        assert_eq!(problem((older + "\n").as_bytes()), None);
        let undo = "`goodput --state-dir /state settings undo --damaged`";
        assert!(problem(overwritten.as_bytes()).unwrap().contains(undo), "as for this host");
        for damaged in [&b""[..], b"\n", &[0; 300], &line.as_bytes()[..60]] {
            assert!(problem(damaged).unwrap().contains("first line"));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_contents(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            Text::read(&bytes);
        }
    }
}
