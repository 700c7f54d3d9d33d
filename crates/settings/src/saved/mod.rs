//! Values that outlive a reboot, in files of ours. A file says which values it keeps, and is made anew from them
//! whenever one is added: so a value is never there twice. A file of someone else, and one of ours that someone
//! has edited, is left alone.

mod boot_unit;
mod contents;
mod place;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use goodput_model::{EndName, SettingRef};

use crate::error::SettingError;
use crate::lookup::permanent;
use crate::permanent::merged;
use contents::{Assignment, Contents};
use place::{FOLDERS, below, is_ours, own_file};

/// Everyone may read what is saved.
const FILE_MODE: u32 = 0o644;

/// Why values were not saved. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// There is no such setting, or not with this scope.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A value that no file of this host keeps.
    #[error("{0} can't be saved here: {1}")]
    NotHere(SettingRef, &'static str),
    /// The file is there and is not ours.
    #[error(
        "{0} is not goodput's file; it is left as it is. Move it away, or write these lines into it:\n{1}"
    )]
    Foreign(PathBuf, String),
    /// The file is ours, and someone has edited it.
    #[error(
        "{0} was edited after goodput wrote it; it is left as it is. Move it away, or edit it yourself"
    )]
    Edited(PathBuf),
    /// The unit would run a program that another user than root can replace.
    #[error("{} would run as root at every boot, but others than root can change {exposed}; install goodput where only root can write", program.display())]
    Program {
        /// What it would run.
        program: PathBuf,
        /// The file or folder that others can change.
        exposed: String,
    },
    /// The system did not let us.
    #[error("cannot {operation} {}: {cause}", path.display())]
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
    /// Whether a permission is what lacks.
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
    /// Whether it is as goodput wrote it.
    pub intact: bool,
}

/// Writes files that keep these values after a reboot; the files. Values that are saved already stay. `program` is
/// goodput, for the unit that sets at boot what no other file can keep.
///
/// # Errors
/// If a value can't be kept by a file of ours, or a file can't be written. Nothing has changed then.
pub fn save(
    assignments: &[(SettingRef, String)],
    program: &Path,
) -> Result<Vec<SavedFile>, SaveError> {
    save_below(Path::new("/"), assignments, program)
}

/// The files of ours, edited ones among them.
pub fn saved() -> Vec<SavedFile> {
    saved_below(Path::new("/"))
}

/// Removes the files of ours that nobody has edited; all of them, with what became of each.
pub fn remove_saved() -> Vec<(SavedFile, Result<(), SaveError>)> {
    remove_below(Path::new("/"))
}

fn save_below(
    root: &Path,
    assignments: &[Assignment],
    program: &Path,
) -> Result<Vec<SavedFile>, SaveError> {
    let mut plans: BTreeMap<&str, Plan> = BTreeMap::new();
    for (setting, value) in assignments {
        if setting.end == EndName::Far {
            return Err(SaveError::NotHere(setting.clone(), "it belongs to the far end"));
        }
        let forms = permanent(setting, value)?;
        if crate::find_for(setting)?.is_plan() {
            return Err(SaveError::NotHere(
                setting.clone(),
                "it belongs to a measurement: the application must do the same",
            ));
        }
        let path = own_file(&forms).unwrap_or(boot_unit::FILE);
        let plan = match plans.remove(path) {
            Some(plan) => plan,
            None => Plan::found(root, path)?,
        };
        plans.insert(path, plan.with(setting, value));
    }
    if plans.contains_key(boot_unit::FILE) {
        check_program(program)?;
    }
    let files: Vec<NewFile> = plans
        .iter()
        .map(|(path, plan)| plan.render(root, path, program))
        .collect::<Result<_, _>>()?;
    write_all(root, &files)?;
    Ok(files.into_iter().map(|file| file.saved).collect())
}

/// What a file is to keep.
struct Plan {
    keeps: Vec<Assignment>,
}

impl Plan {
    /// With what the file keeps already.
    fn found(root: &Path, path: &str) -> Result<Self, SaveError> {
        let path = below(root, path);
        let keeps = match read(&path)? {
            None => Vec::new(),
            Some((text, None)) => return Err(SaveError::Foreign(path, text)),
            Some((_, Some(Contents { intact: false, .. }))) => return Err(SaveError::Edited(path)),
            Some((_, Some(contents))) => contents.keeps,
        };
        Ok(Self { keeps })
    }

    /// With a value at the end: what was set last holds, also at boot.
    fn with(mut self, setting: &SettingRef, value: &str) -> Self {
        self.keeps.retain(|(known, _)| known != setting);
        self.keeps.push((setting.clone(), value.into()));
        self
    }

    fn render(&self, root: &Path, path: &str, program: &Path) -> Result<NewFile, SaveError> {
        let lines = match path {
            boot_unit::FILE => boot_unit::lines(&self.keeps, program),
            _ => self.own_lines(path)?,
        };
        let saved = SavedFile { path: below(root, path), keeps: self.keeps.clone(), intact: true };
        let text = contents::render(&self.keeps, &lines);
        Ok(NewFile { saved, text })
    }

    /// What all the values need of this file.
    fn own_lines(&self, path: &str) -> Result<String, SaveError> {
        let mut forms = Vec::new();
        for (setting, value) in &self.keeps {
            forms.extend(permanent(setting, value)?.into_iter().filter(|form| form.file == path));
        }
        Ok(merged(forms).into_iter().map(|form| form.lines).collect::<Vec<_>>().join("\n"))
    }
}

/// Refuses a program that another user than root could replace: the unit runs it as root.
fn check_program(program: &Path) -> Result<(), SaveError> {
    for path in program.ancestors() {
        let meta = fs::metadata(path).map_err(|cause| SaveError::Io {
            operation: "look at",
            path: path.into(),
            cause,
        })?;
        // A folder with the sticky bit lets others replace only what is theirs (inode(7)).
        let is_shared = meta.mode() & 0o022 != 0 && meta.mode() & 0o1000 == 0;
        if meta.uid() != 0 || is_shared {
            let exposed = path.display().to_string();
            return Err(SaveError::Program { program: program.into(), exposed });
        }
    }
    Ok(())
}

struct NewFile {
    saved: SavedFile,
    text: String,
}

/// Writes all of them, or leaves all as they were.
fn write_all(root: &Path, files: &[NewFile]) -> Result<(), SaveError> {
    let mut before: Vec<(&NewFile, Option<Vec<u8>>)> = Vec::new();
    for file in files {
        let old = fs::read(&file.saved.path).ok();
        before.push((file, old));
        if let Err(failure) = write(root, file) {
            for (file, old) in before.into_iter().rev() {
                // What failed first is what is reported.
                let _ = put_back(root, &file.saved.path, old);
            }
            return Err(failure);
        }
    }
    Ok(())
}

/// Replaces the file in one step, so that nobody ever reads half of it.
fn write(root: &Path, file: &NewFile) -> Result<(), SaveError> {
    let path = &file.saved.path;
    let failed = |operation| move |cause| SaveError::Io { operation, path: path.clone(), cause };
    let folder = path.parent().unwrap_or(root);
    fs::create_dir_all(folder).map_err(failed("make the folder of"))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = folder.join(format!(".{name}.{}", std::process::id()));
    let written = (|| {
        let mut out = fs::File::create(&draft)?;
        out.write_all(file.text.as_bytes())?;
        out.set_permissions(fs::Permissions::from_mode(FILE_MODE))?;
        out.sync_all()?;
        fs::rename(&draft, path)?;
        fs::File::open(folder)?.sync_all()
    })();
    if written.is_err() {
        // It may never have been made.
        let _ = fs::remove_file(&draft);
    }
    written.map_err(failed("write"))?;
    if *path == below(root, boot_unit::FILE) { enable(root) } else { Ok(()) }
}

/// Has the unit started at boot.
fn enable(root: &Path) -> Result<(), SaveError> {
    let path = below(root, boot_unit::WANTED);
    let failed = |cause| SaveError::Io { operation: "enable", path: path.clone(), cause };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    match symlink(boot_unit::FILE, &path) {
        Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => Err(failed(cause)),
        _ => Ok(()),
    }
}

fn put_back(root: &Path, path: &Path, old: Option<Vec<u8>>) -> io::Result<()> {
    match old {
        Some(old) => fs::write(path, old),
        None => remove(root, path),
    }
}

fn remove(root: &Path, path: &Path) -> io::Result<()> {
    if path == below(root, boot_unit::FILE) {
        match fs::remove_file(below(root, boot_unit::WANTED)) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
            _ => {}
        }
    }
    fs::remove_file(path)
}

fn saved_below(root: &Path) -> Vec<SavedFile> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        // A folder that is not there, or that this user may not list, has nothing of ours to show.
        let entries = fs::read_dir(below(root, folder)).into_iter().flatten().flatten();
        let named = entries.filter(|entry| is_ours(&entry.file_name().to_string_lossy()));
        files.extend(named.filter_map(|entry| {
            let path = entry.path();
            let (_, contents) = read(&path).ok()??;
            let Contents { keeps, intact } = contents?;
            Some(SavedFile { path, keeps, intact })
        }));
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
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

/// A file's text, and what it says if it is ours; `None` if there is no such file.
fn read(path: &Path) -> Result<Option<(String, Option<Contents>)>, SaveError> {
    match fs::read(path) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let contents = contents::parse(&text);
            Ok(Some((text, contents)))
        }
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(SaveError::Io { operation: "read", path: path.into(), cause }),
    }
}

#[cfg(test)]
mod tests;
