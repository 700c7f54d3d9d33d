//! Which files of a host keep values over a reboot, and their lines: those that goodput writes on its own host, but the
//! unit for what no other file can say runs the host's own programs.

use goodput_model::{EndName, Permanent, SettingRef};
use goodput_settings::keeping::{self, BOOT_LINK, BOOT_UNIT, Device};
use goodput_settings::{Assignment, saved_text};

use super::row::{At, misread, refused};
use super::{link, row};
use crate::command::Command;
use crate::error::RemoteError;
use crate::keeper::Keeper;
use crate::shell::Shell;

/// The files there, as far as goodput must know them to choose. What can't be read is as if it were not there: then the
/// unit is chosen.
struct There<'a> {
    shell: &'a mut dyn Shell,
    /// Why a command could not be run there, if so: then nothing follows from what was not seen.
    trouble: Option<RemoteError>,
}

impl<'a> There<'a> {
    fn at(shell: &'a mut dyn Shell) -> Self {
        Self { shell, trouble: None }
    }

    fn printed(&mut self, command: &Command) -> Option<String> {
        let output = self.shell.run(command);
        let output = output.map_err(|error| self.trouble = Some(error)).ok()?;
        (output.status == 0).then_some(output.stdout)
    }

    /// What was found out, unless a command could not be run.
    fn seen<T>(self, found: T) -> Result<T, RemoteError> {
        self.trouble.map_or(Ok(found), Err)
    }
}

impl keeping::Host for There<'_> {
    fn read(&mut self, path: &str) -> Option<String> {
        self.printed(&Command::new("cat", [path])).filter(|_| path.starts_with('/'))
    }

    fn list(&mut self, folder: &str) -> Vec<String> {
        let printed = self.printed(&Command::new("ls", [folder])).unwrap_or_default();
        printed.lines().map(String::from).collect()
    }

    fn device(&mut self, name: &str) -> Option<Device> {
        match link::device(self.shell, name) {
            Ok(device) => device,
            Err(lost @ (RemoteError::Lost { .. } | RemoteError::Closed)) => {
                self.trouble = Some(lost);
                None
            }
            Err(_) => None,
        }
    }

    fn identity(&mut self, path: &str) -> Option<String> {
        let printed = self.printed(&Command::new("stat", ["-L", "-c", "%d:%i", path]))?;
        Some(printed.trim().to_owned())
    }

    fn udev_version(&mut self) -> Option<String> {
        self.printed(&Command::new("udevadm", ["--version"]))
    }
}

/// Refuses a setting of another network namespace than the one that the files there are about.
pub(super) fn check(shell: &mut dyn Shell, setting: &SettingRef) -> Result<(), RemoteError> {
    let mut there = There::at(shell);
    let is_elsewhere = keeping::is_elsewhere(&mut there, setting);
    if !there.seen(is_elsewhere)? {
        return Ok(());
    }
    let why = "the login leads into a network namespace of its own, and /etc describes the devices and parameters of \
               the host's; save it there, or set it without saving";
    Err(refused(shell.host(), setting, why))
}

/// The values of a file there that another file overrules, with that file.
pub(super) fn overruled(
    shell: &mut dyn Shell,
    keeper: &Keeper,
    keeps: &[(SettingRef, String)],
) -> Vec<(SettingRef, String)> {
    keeping::overruled(&mut There::at(shell), &keeper.path, keeps)
}

/// The file at a path that goodput writes to.
pub(super) fn keeper_at(path: String) -> Keeper {
    let link = (path == BOOT_UNIT).then_some(BOOT_LINK);
    let folder = keeping::is_drop_in(&path);
    Keeper { link, folder, ..Keeper::whole(path) }
}

/// The files there that may be ours.
pub(super) fn keepers(shell: &mut dyn Shell) -> Result<Vec<Keeper>, RemoteError> {
    let mut there = There::at(shell);
    let files = keeping::files(&mut there);
    Ok(there.seen(files)?.into_iter().map(keeper_at).collect())
}

/// The file that keeps all of a value, whose permanent `forms` are these.
pub(super) fn keeper(
    shell: &mut dyn Shell,
    setting: &SettingRef,
    forms: &[Permanent],
) -> Result<Keeper, RemoteError> {
    let mut there = There::at(shell);
    let file = keeping::file(&mut there, setting, forms);
    let keeper = keeper_at(there.seen(file)?);
    // sd_booted(3)
    let systemd = Command::new("test", ["-d", "/run/systemd/system"]);
    if keeper.link.is_some() && shell.run(&systemd)?.status != 0 {
        let why = "only a unit of systemd could set it at boot, and systemd does not run there";
        return Err(refused(shell.host(), setting, why));
    }
    Ok(keeper)
}

/// The lines of a file that keep these values.
pub(super) fn lines(
    shell: &mut dyn Shell,
    keeper: &Keeper,
    keeps: &[(SettingRef, String)],
) -> Result<String, RemoteError> {
    if keeper.link.is_some() {
        let lines = keeps.iter().map(|kept| at_boot_or_as_before(shell, keeper, kept));
        let lines = lines.collect::<Result<Vec<_>, _>>()?;
        return Ok(keeping::unit_lines(lines.iter().map(String::as_str)));
    }
    let far = |(setting, value): &(SettingRef, String)| {
        (SettingRef { end: EndName::Far, ..setting.clone() }, value.clone())
    };
    let keeps: Vec<_> = keeps.iter().map(far).collect();
    let lines = keeping::lines(&mut There::at(shell), &keeper.path, &keeps)?;
    lines.ok_or_else(|| RemoteError::LeftAlone {
        host: shell.host().into(),
        path: keeper.path.clone(),
        why: "what udevd applies in its place can't be read".into(),
    })
}

/// The line of a shell that sets a value when the host has started. The device or route of a value that the unit keeps already
/// may be gone by now: its line stays as it is, as a value of a device that is gone stays in every other file.
fn at_boot_or_as_before(
    shell: &mut dyn Shell,
    keeper: &Keeper,
    kept: &Assignment,
) -> Result<String, RemoteError> {
    let why = match at_boot(shell, &kept.0, &kept.1) {
        Ok(line) => return Ok(line),
        Err(lost @ (RemoteError::Lost { .. } | RemoteError::Closed)) => return Err(lost),
        Err(why) => why,
    };
    let text = keeping::Host::read(&mut There::at(shell), &keeper.path).unwrap_or_default();
    let keeps = saved_text::parse(&text).map(|ours| ours.keeps).unwrap_or_default();
    let lines = keeping::lines_in_unit(&text);
    // Each value has one line, in the same order.
    let place = keeps.iter().position(|one| one == kept).filter(|_| lines.len() == keeps.len());
    place.and_then(|place| lines.get(place).cloned()).ok_or(why)
}

/// The line of a shell that sets a value when the host has started.
fn at_boot(
    shell: &mut dyn Shell,
    setting: &SettingRef,
    value: &str,
) -> Result<String, RemoteError> {
    let commands = row(shell, setting)?.write(&mut At { shell, setting }, value)?;
    if let Some(odd) = commands.iter().find(|command| !command.is_one_line()) {
        return Err(misread(shell.host(), odd, value, "a value without line breaks"));
    }
    Ok(commands.iter().map(Command::to_string).collect::<Vec<_>>().join(" && "))
}
