//! Values that outlive a reboot: written, listed and removed.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use goodput_model::SettingRef;
use goodput_settings::{Changes, GuardProgram, SavedFile, keeping};

use crate::exit::Exit;
use crate::screen;

/// Values that are in effect and saved here, until they are kept or taken back.
pub struct Prepared {
    changes: Changes,
    files: Vec<SavedFile>,
}

impl Prepared {
    /// Makes values effective now, and after a reboot once they are kept. Options of a mount are in effect from the next mount
    /// on.
    pub fn new(assignments: &[(SettingRef, String)], state_dir: &Path) -> Result<Self> {
        assignments.iter().try_for_each(|(setting, _)| goodput_settings::check_savable(setting))?;
        let mut changes = Changes::begin(state_dir, GuardProgram::current())?;
        for (setting, value) in assignments {
            if !goodput_settings::is_of_mount(setting) {
                changes.apply(setting, value)?;
            }
        }
        let program = std::env::current_exe().context("can't find the program that runs")?;
        // If this fails, dropping `changes` restores the old values.
        let files = changes.save(assignments, &program)?;
        Ok(Self { changes, files })
    }

    /// Leaves the values in effect. Returns the files that store them.
    pub fn keep(self) -> Result<Vec<SavedFile>> {
        // If this fails, the values and the files are put back.
        self.changes.keep()?;
        Ok(self.files)
    }

    /// Makes everything as it was before. Returns what is not, in words.
    pub fn take_back(self) -> Vec<String> {
        let Self { mut changes, .. } = self;
        let report = changes.restore();
        (!report.is_clean()).then(|| report.to_string()).into_iter().collect()
    }
}

/// Makes values effective now and after a reboot, all of them or none; returns the files that store
/// them.
pub fn keep(assignments: &[(SettingRef, String)], state_dir: &Path) -> Result<Vec<SavedFile>> {
    Prepared::new(assignments, state_dir)?.keep()
}

/// Finds out whether a value can be kept here, without keeping it: the places of its files take as much text.
pub fn rehearse(setting: &SettingRef, value: &str) -> Result<()> {
    let program = std::env::current_exe().context("can't find the program that runs")?;
    let assignment = [(setting.clone(), value.to_owned())];
    let files = goodput_settings::check_would_save(&assignment, &program)?;
    files.iter().try_for_each(|file| {
        takes(Path::new(&file.file), &file.lines)
            .with_context(|| format!("can't write {}", file.file))
    })
}

/// Writes the text beside `path`, into a file without a name: whatever happens, nothing is left.
fn takes(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.ancestors().skip(1).find(|folder| folder.is_dir());
    let mut file = tempfile::tempfile_in(folder.unwrap_or(Path::new("/")))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Where systemd keeps its state if it runs the host (sd_booted(3)).
const SYSTEMD: &str = "/run/systemd/system";

/// Describes saved values that won't be in effect after a reboot.
pub fn overruled(files: &[SavedFile]) -> Vec<String> {
    let is_booted = Path::new(SYSTEMD).is_dir();
    let unread =
        files.iter().filter(|file| !is_booted && file.path == Path::new(keeping::BOOT_UNIT));
    let unread = unread.map(|file| without_systemd(&file.path));
    let idle = files.iter().filter(|file| {
        file.path == Path::new(keeping::BOOT_UNIT) && !goodput_settings::is_started_at_boot()
    });
    let idle = idle.map(|file| not_started(&file.path.to_string_lossy(), keeping::BOOT_LINK));
    let all = files.iter().flat_map(|file| file.overruled.iter().map(move |one| (file, one)));
    let said = all.map(|(file, (setting, other))| {
        counts_more(&other.to_string_lossy(), setting, &file.path.to_string_lossy())
    });
    unread.chain(idle).chain(said).collect()
}

/// Why a unit sets none of its values at boot, and what to do.
pub fn not_started(unit: &str, link: &str) -> String {
    format!(
        "nothing starts {unit} at boot, because {link} is missing; `systemctl enable` makes it again, or save a value once more"
    )
}

fn without_systemd(unit: &Path) -> String {
    format!(
        "{} sets its values only if systemd starts this host, and systemd does not run here now (no {SYSTEMD})",
        unit.display()
    )
}

/// Why the file `path` does not decide about a saved value.
pub fn counts_more(other: &str, setting: &SettingRef, path: &str) -> String {
    format!("{other} also sets {setting} and overrides {path} at boot; change it in {other}")
}

/// Prints the files that store values, and the values.
pub fn list() -> Result<Exit> {
    let files = goodput_settings::saved();
    if files.is_empty() {
        screen::line("goodput keeps no setting after a reboot")?;
    }
    for file in &files {
        screen::line(described(file))?;
    }
    for warning in overruled(&files) {
        screen::say(format_args!("warning: {warning}"));
    }
    Ok(Exit::Fine)
}

/// Removes these files. Present values stay in effect until the next boot.
pub fn remove() -> Result<Exit> {
    let removed = goodput_settings::remove_saved();
    if removed.is_empty() {
        screen::line("nothing to remove: goodput keeps no setting after a reboot")?;
    }
    let mut exit = Exit::Fine;
    for (file, outcome) in removed {
        match outcome {
            Ok(()) => screen::line(format_args!("removed {}", described(&file)))?,
            Err(why) => {
                let permitted = !why.not_permitted();
                exit = if permitted { Exit::CouldNot } else { Exit::NotPermitted };
                screen::say(format_args!("goodput: {why}"));
            }
        }
    }
    Ok(exit)
}

/// `/etc/sysctl.d/90-goodput.conf: net.core.somaxconn=4096`.
pub fn described(file: &SavedFile) -> String {
    let keeps = file.keeps.iter().map(|(setting, value)| format!("{setting}={value}"));
    let keeps = keeps.collect::<Vec<_>>().join(", ");
    let edited = if file.intact { "" } else { " (edited since)" };
    format!("{}{edited}: {keeps}", file.path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_tried_leaves_nothing_and_what_is_no_place_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sysctl.d/90-goodput.conf");
        takes(&path, "net.ipv4.tcp_sack = 1").unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        assert!(takes(Path::new("/proc/sys/net/90-goodput.conf"), "x").is_err());
    }
}
