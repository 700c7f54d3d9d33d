//! Values that survive a reboot, in files of ours. A file lists the values it keeps, and is written anew from that list
//! whenever a value is added, so that no value is ever there twice. Files of others, and files of ours that someone
//! has edited, are left alone.

mod boot_unit;
pub mod contents;
mod earlier;
mod files;
mod host;
pub mod keeping;
mod link;
mod mount;
mod namespace;
mod network;
mod overruled;
mod place;
mod root;
mod systemd;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use goodput_model::{EndName, Permanent, SettingRef};

use crate::error::SettingError;
use crate::lookup::permanent;
use crate::written::Written;
use contents::{Assignment, Contents};
use files::{NewFile, remove};
use host::Here;

pub use mount::{is_of_mount, of_mount};
use root::{below, seen_from};

/// Why values were not saved. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// There is no such setting, or not with this scope.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// No file of this host can keep the value.
    #[error("{0} can't be saved here: {1}")]
    NotHere(SettingRef, &'static str),
    /// The files of this host are about another network namespace.
    #[error(
        "{0} can't be saved from this network namespace: /etc describes the devices and parameters of the host's own; \
         save it there, or set it without saving"
    )]
    OtherNamespace(SettingRef),
    /// The file exists and is not ours.
    #[error(
        "{} is not goodput's file; it is left as it is. Move it away, or write these lines into it:\n{lines}", path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The lines that would keep the values.
        lines: String,
    },
    /// A link is there, which goodput never makes.
    #[error("{} is a link to {}, which goodput did not make; it is left as it is. Move it away", path.display(), to.display())]
    Link {
        /// The link.
        path: PathBuf,
        /// Where it leads.
        to: PathBuf,
    },
    /// The file is ours, and someone has edited it.
    #[error(
        "{0} was edited after goodput wrote it; it is left as it is. Move the file away, or change it by hand"
    )]
    Edited(PathBuf),
    /// The unit would run a program that a user other than root can replace.
    #[error("{} would run as root at every boot, but others than root can change {exposed}; install goodput where only root can write", program.display())]
    Program {
        /// What it would run.
        program: PathBuf,
        /// The file or folder that others can change.
        exposed: String,
    },
    /// The system refused.
    #[error("can't {operation} {}: {cause}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's answer.
        #[source]
        cause: io::Error,
    },
}

impl SaveError {
    /// Whether a missing permission is the reason.
    pub fn not_permitted(&self) -> bool {
        match self {
            Self::Setting(error) => error.not_permitted(),
            Self::Io { cause, .. } => cause.kind() == io::ErrorKind::PermissionDenied,
            _ => false,
        }
    }
}

/// A file of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedFile {
    /// Where it is.
    pub path: PathBuf,
    /// The values that it keeps.
    pub keeps: Vec<(SettingRef, String)>,
    /// Whether the file is as goodput wrote it.
    pub intact: bool,
    /// Values in it that another file overrules at boot, and that file.
    pub overruled: Vec<(SettingRef, PathBuf)>,
}

impl SavedFile {
    fn new(root: &Path, path: PathBuf, keeps: Vec<Assignment>, intact: bool) -> Self {
        let found = keeping::overruled(&mut Here(root), &seen_from(root, &path), &keeps);
        let overruled = found.into_iter().map(|(of, by)| (of, below(root, &by))).collect();
        Self { path, keeps, intact, overruled }
    }
}

/// The files that [`Changes::save`](crate::Changes::save) would write, with all of their text. Nothing is written.
///
/// # Errors
/// If a value can't be kept by a file of ours, or one of the files is not as goodput wrote it.
pub fn would_save(
    assignments: &[(SettingRef, String)],
    program: &Path,
) -> Result<Vec<Permanent>, SaveError> {
    Ok(shown(to_write(Path::new("/"), assignments, program)?))
}

/// The same, if saving would not refuse it. Whether the files can be written only shows when they are.
///
/// # Errors
/// As those of [`Changes::save`](crate::Changes::save), before anything is written.
pub fn check_would_save(
    assignments: &[(SettingRef, String)],
    program: &Path,
) -> Result<Vec<Permanent>, SaveError> {
    assignments.iter().try_for_each(|(setting, _)| check_savable(setting))?;
    let to_write = to_write(Path::new("/"), assignments, program)?;
    to_write.check_program(Path::new("/"), program)?;
    Ok(shown(to_write))
}

fn shown(to_write: ToWrite) -> Vec<Permanent> {
    let shown = |file: NewFile| Permanent {
        file: file.saved.path.display().to_string(),
        lines: file.text.trim_end().into(),
    };
    to_write.files.into_iter().map(shown).collect()
}

/// Refuses a setting of a network namespace that the host's files are not about.
///
/// # Errors
/// With the situation, and what to do.
pub fn check_savable(setting: &SettingRef) -> Result<(), SaveError> {
    match keeping::is_elsewhere(&mut Here(Path::new("/")), setting) {
        true => Err(SaveError::OtherNamespace(setting.clone())),
        false => Ok(()),
    }
}

/// The files of ours, including edited ones.
pub fn saved() -> Vec<SavedFile> {
    saved_below(Path::new("/"))
}

/// Whether the unit of ours, if it is there, is started at boot.
pub fn is_started_at_boot() -> bool {
    files::is_enabled(Path::new("/"))
}

/// Removes the files of ours that nobody has edited. Returns all of our files with the outcome for each.
pub fn remove_saved() -> Vec<(SavedFile, Result<(), SaveError>)> {
    remove_below(Path::new("/"))
}

/// Writes files that keep these values after a reboot, and returns them. Values that are saved already stay. `program` is
/// goodput, for the unit that sets at boot what no other file can keep. `note` learns what is about to be written.
///
/// # Errors
/// If a value can't be kept by a file of ours, or a file can't be written, or that of `note`. Nothing has changed then.
pub(crate) fn save_below(
    root: &Path,
    assignments: &[Assignment],
    program: &Path,
    note: impl FnOnce(&Written) -> Result<(), SettingError>,
) -> Result<Vec<SavedFile>, SaveError> {
    let to_write = to_write(root, assignments, program)?;
    to_write.check_program(root, program)?;
    let ToWrite { saved, files, needless } = to_write;
    let written = Written::planned(root, &files, &needless);
    note(&written)?;
    written.carry_out()?;
    Ok(saved)
}

/// What saving would write.
struct ToWrite {
    /// The files with the new values.
    saved: Vec<SavedFile>,
    /// These, and those that lose a value.
    files: Vec<NewFile>,
    /// The files that would keep nothing any more.
    needless: Vec<PathBuf>,
}

impl ToWrite {
    /// The unit that sets values at boot runs goodput as root.
    fn check_program(&self, root: &Path, program: &Path) -> Result<(), SaveError> {
        match self.saved.iter().any(|file| file.path == below(root, boot_unit::FILE)) {
            true => check_program(program),
            false => Ok(()),
        }
    }
}

fn to_write(root: &Path, assignments: &[Assignment], program: &Path) -> Result<ToWrite, SaveError> {
    let mut wanted: BTreeMap<String, Vec<Assignment>> = BTreeMap::new();
    for (setting, value) in assignments {
        if setting.end == EndName::Far {
            return Err(SaveError::NotHere(setting.clone(), "it belongs to the far end"));
        }
        let forms = forms(setting, value)?;
        if !is_of_mount(setting) && crate::find_for(setting)?.is_plan() {
            return Err(SaveError::NotHere(
                setting.clone(),
                "it belongs to a measurement: the application must do the same",
            ));
        }
        let path = keeping::file(&mut Here(root), setting, &forms);
        wanted.entry(path).or_default().push((setting.clone(), value.clone()));
    }
    let (mut files, needless) = without(root, assignments, program, |path| {
        wanted.keys().any(|wanted| below(root, wanted) == path)
    })?;
    let new: Vec<NewFile> = wanted
        .into_iter()
        .map(|(path, more)| Plan::found(root, &path, program, more)?.render(root, &path, program))
        .collect::<Result<_, _>>()?;
    let saved = new.iter().map(|file| file.saved.clone()).collect();
    files.extend(new);
    Ok(ToWrite { saved, files, needless })
}

/// The files that keep a value. For a mount point, its options.
fn forms(setting: &SettingRef, value: &str) -> Result<Vec<Permanent>, SaveError> {
    if !is_of_mount(setting) {
        return Ok(permanent(setting, value)?);
    }
    let form = mount::form(setting, value).ok_or_else(|| {
        SaveError::NotHere(setting.clone(), "nfsmount.conf can't name this mount point")
    });
    form.map(|form| vec![form])
}

/// The files of ours, except those `written` anyway, that keep one of these settings: rewritten without it, or empty.
/// A value may move to another file if udevd configures its device by now.
fn without(
    root: &Path,
    assignments: &[Assignment],
    program: &Path,
    written: impl Fn(&Path) -> bool,
) -> Result<(Vec<NewFile>, Vec<PathBuf>), SaveError> {
    let is_new = |(kept, _): &Assignment| assignments.iter().any(|(setting, _)| setting == kept);
    let (mut files, mut needless) = (Vec::new(), Vec::new());
    for file in saved_below(root).into_iter().filter(|file| !written(&file.path)) {
        let keeps: Vec<Assignment> =
            file.keeps.iter().filter(|one| !is_new(one)).cloned().collect();
        match (keeps.len() < file.keeps.len(), file.intact, keeps.is_empty()) {
            (false, ..) => {}
            (true, false, _) => return Err(SaveError::Edited(file.path)),
            (true, true, true) => needless.push(file.path),
            (true, true, false) => {
                let path = seen_from(root, &file.path);
                files.push(Plan { keeps }.render(root, &path, program)?);
            }
        }
    }
    Ok((files, needless))
}

/// What a file should keep.
struct Plan {
    keeps: Vec<Assignment>,
}

impl Plan {
    /// `more` with the values that the file keeps already.
    fn found(
        root: &Path,
        path: &str,
        program: &Path,
        more: Vec<Assignment>,
    ) -> Result<Self, SaveError> {
        let own = below(root, path);
        let keeps = match read(&own)? {
            Found::Nothing => Vec::new(),
            Found::Foreign => {
                let lines = Self { keeps: more }.lines(root, path, program)?;
                return Err(SaveError::Foreign { path: own, lines });
            }
            Found::Ours(Contents { intact: false, .. }) => return Err(SaveError::Edited(own)),
            Found::Ours(contents) => contents.keeps,
        };
        let add = |plan: Self, (setting, value): (SettingRef, String)| plan.with(&setting, &value);
        Ok(more.into_iter().fold(Self { keeps }, add))
    }

    /// With a value at the end: the last value set wins, also at boot.
    fn with(mut self, setting: &SettingRef, value: &str) -> Self {
        self.keeps.retain(|(known, _)| known != setting);
        self.keeps.push((setting.clone(), value.into()));
        self
    }

    fn render(&self, root: &Path, path: &str, program: &Path) -> Result<NewFile, SaveError> {
        let text = contents::render(&self.keeps, &self.lines(root, path, program)?);
        let saved = SavedFile::new(root, below(root, path), self.keeps.clone(), true);
        Ok(NewFile { saved, text })
    }

    /// The lines that keep the values in this file.
    fn lines(&self, root: &Path, path: &str, program: &Path) -> Result<String, SaveError> {
        if path == boot_unit::FILE {
            return Ok(boot_unit::lines(&self.keeps, program));
        }
        keeping::lines(&mut Here(root), path, &self.keeps)?.ok_or_else(|| SaveError::Io {
            operation: "read what udevd applies in place of",
            path: below(root, path),
            cause: io::ErrorKind::NotFound.into(),
        })
    }
}

/// Refuses a program that a user other than root could replace: the unit runs it as root.
fn check_program(program: &Path) -> Result<(), SaveError> {
    for path in program.ancestors() {
        let meta = fs::metadata(path).map_err(|cause| SaveError::Io {
            operation: "look at",
            path: path.into(),
            cause,
        })?;
        // In a folder with the sticky bit, others can replace only their own files (inode(7)).
        let is_shared = meta.mode() & 0o022 != 0 && meta.mode() & 0o1000 == 0;
        if meta.uid() != 0 || is_shared {
            let exposed = path.display().to_string();
            return Err(SaveError::Program { program: program.into(), exposed });
        }
    }
    Ok(())
}

fn saved_below(root: &Path) -> Vec<SavedFile> {
    // A folder that is missing, or that this user may not list, has no files of ours to show.
    let paths = place::files(&mut Here(root)).into_iter().map(|path| below(root, &path));
    let ours = paths.filter_map(|path| {
        let Ok(Found::Ours(Contents { keeps, intact })) = read(&path) else { return None };
        Some(SavedFile::new(root, path, keeps, intact))
    });
    ours.collect()
}

fn remove_below(root: &Path) -> Vec<(SavedFile, Result<(), SaveError>)> {
    let files = saved_below(root).into_iter();
    let removed = files.map(|file| {
        let path = file.path.clone();
        let outcome = match file.intact {
            true => remove(root, &path).map_err(|cause| SaveError::Io {
                operation: "remove",
                path,
                cause,
            }),
            false => Err(SaveError::Edited(path)),
        };
        (file, outcome)
    });
    removed.collect()
}

/// What is at the path of a file of ours.
enum Found {
    Nothing,
    Ours(Contents),
    Foreign,
}

/// # Errors
/// If a link is there, even one that leads nowhere: writing the file would replace it.
fn read(path: &Path) -> Result<Found, SaveError> {
    if let Ok(to) = fs::read_link(path) {
        return Err(SaveError::Link { path: path.into(), to });
    }
    match fs::read(path) {
        Ok(bytes) => {
            let contents = contents::parse(&String::from_utf8_lossy(&bytes));
            Ok(contents.map_or(Found::Foreign, Found::Ours))
        }
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(Found::Nothing),
        Err(cause) => Err(SaveError::Io { operation: "read", path: path.into(), cause }),
    }
}

#[cfg(test)]
mod tests;
