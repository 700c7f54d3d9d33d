//! `goodput settings --on ssh://…`: the same on a host without goodput.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use goodput_model::SettingRef;
use goodput_remote::{
    Access, Address, AwaitedThere, Host, Listed, Notify, RemoteChanges, SavedThere,
};
use goodput_settings::UndoRequest;

use super::{explain, rounding, saved};
use crate::exit::Exit;
use crate::report::style;
use crate::screen;

/// Lists the settings that can be changed there, with their present values: the lines that contain `containing`.
pub fn list(address: &Address, access: &Access, containing: Option<&str>) -> Result<Exit> {
    let mut host = Host::open(address, access)?;
    let lines = lines(&host.list()?, containing);
    for line in &lines {
        screen::line(line)?;
    }
    match containing.filter(|_| lines.is_empty()) {
        Some(text) => bail!(
            "{address} has no setting with {text:?} in its line; without it, the list shows all settings there. \
             `goodput settings get {text} --on {address}` says why a setting is missing"
        ),
        None => Ok(Exit::Fine),
    }
}

/// Widest column, characters. A longer value, which comes from another host, moves only what stands behind it.
const WIDEST: usize = 60;

/// The settings in whose words the text is, in columns that fit them.
fn lines(listed: &[Listed], containing: Option<&str>) -> Vec<String> {
    let has = |one: &&Listed| {
        let Listed { setting, value, meaning } = one;
        containing.is_none_or(|text| format!("{setting} {value} {meaning}").contains(text))
    };
    let found: Vec<_> = listed.iter().filter(has).collect();
    let width = |text: &str| text.chars().count().min(WIDEST);
    let widest =
        |of: fn(&Listed) -> &str| found.iter().map(|one| width(of(one))).max().unwrap_or(0);
    let names = widest(|one| &one.setting);
    // Nothing stands behind a value without a meaning, however long it is.
    let values = widest(|one| if one.meaning.is_empty() { "" } else { &one.value });
    let line = |one: &&Listed| {
        let Listed { setting, value, meaning } = one;
        format!("{setting:<names$}  {value:<values$}  {meaning}").trim_end().to_owned()
    };
    found.iter().map(line).collect()
}

/// Prints the value in effect there.
pub fn get(address: &Address, access: &Access, setting: &SettingRef) -> Result<Exit> {
    machine(setting)?;
    screen::line(Host::open(address, access)?.read(setting)?)?;
    Ok(Exit::Fine)
}

/// Prints what a setting does, and its value there.
pub fn show(address: &Address, access: &Access, setting: &SettingRef) -> Result<Exit> {
    machine(setting)?;
    let mut host = Host::open(address, access)?;
    let value = host.read(setting).unwrap_or_else(|why| format!("unknown: {why}"));
    explain::setting_elsewhere(setting, &format!("- {address} has: {value}\n"), host.system())
}

/// Whether a value is also kept after a reboot.
#[derive(Clone, Copy)]
pub struct Saving(pub bool);

/// Changes a setting there until the next boot, or for good.
pub fn set(
    address: &Address,
    access: &Access,
    (setting, value): (&SettingRef, &str),
    Saving(is_saved): Saving,
    state_dir: &Path,
) -> Result<Exit> {
    machine(setting)?;
    let before = Host::open(address, access)?.read(setting)?;
    let mut changes = RemoteChanges::begin(state_dir, address, access, &reporting())?;
    let settled = changes.settled().iter();
    settled.for_each(|report| screen::say(format_args!("left by an interrupted run:\n{report}")));
    let assignment = |value: &str| [(setting.clone(), value.to_owned())];
    if is_saved {
        changes.check_savable(&assignment(value))?;
    }
    let effective = changes.apply(setting, value)?;
    let notes = of_polling(&mut changes, setting)?;
    // If this fails, dropping `changes` restores the old values.
    let kept = match is_saved {
        true => changes.save(&assignment(&effective))?,
        false => Vec::new(),
    };
    let keepable = !is_saved && changes.check_would_save(&assignment(&effective)).is_ok();
    changes.keep()?;
    let paths: Vec<_> = kept.iter().map(|file| file.path.as_str()).collect();
    let until = match is_saved {
        true => format!("kept by {} there", paths.join(", ")),
        false => "until its next boot".into(),
    };
    screen::line(format_args!("{address}: {setting}: {before} → {effective} ({until})"))?;
    rounding::warn(setting, value, &effective);
    warn_of_overruled(address, &kept);
    if keepable {
        let host = address.to_string();
        let command = goodput_settings::command_to_keep(setting, &effective, Some(&host));
        screen::line(format_args!("to keep it there: {}", style::strong(command)))?;
    }
    for note in notes {
        screen::line(note)?;
    }
    Ok(Exit::Fine)
}

/// Finds out whether a value can be kept there, without keeping it: the places of its files take as much text.
pub fn rehearse(
    address: &Address,
    access: &Access,
    (setting, value): (&SettingRef, &str),
) -> Result<()> {
    Ok(Host::open(address, access)?.rehearse_save(setting, value)?)
}

/// Files that store values, and why some of these won't be in effect after a reboot.
pub struct Kept {
    /// The files, each with its host.
    pub files: Vec<String>,
    /// What other files overrule, in words.
    pub overruled: Vec<String>,
}

/// Values that are in effect and saved at a host, until they are kept or taken back.
pub struct Prepared {
    address: Address,
    /// What is changed there.
    pub changes: RemoteChanges,
    files: Vec<SavedThere>,
}

impl Prepared {
    /// Makes values effective there by `changes`, and after a reboot once they are kept.
    pub fn new(
        address: &Address,
        mut changes: RemoteChanges,
        assignments: &[(SettingRef, String)],
    ) -> Result<Self> {
        match saved_there(&mut changes, assignments) {
            Ok(files) => Ok(Self { address: address.clone(), changes, files }),
            Err(why) => {
                let left = not_back(&mut changes);
                Err(match left {
                    None => why,
                    Some(left) => anyhow!("{why:#}; not everything is back: {left}"),
                })
            }
        }
    }

    /// The host.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Leaves the values in effect. Returns the files that store them.
    pub fn keep(self) -> Result<Kept> {
        let Self { address, changes, files } = self;
        changes.keep()?;
        let overruled = overruled(&address, &files);
        let files = files.iter().map(|file| format!("{address}: {}", file.path)).collect();
        Ok(Kept { files, overruled })
    }

    /// Makes everything as it was before. Returns what is not, in words.
    pub fn take_back(mut self) -> Vec<String> {
        not_back(&mut self.changes).into_iter().collect()
    }
}

/// Makes values effective, and saves them.
fn saved_there(
    changes: &mut RemoteChanges,
    assignments: &[(SettingRef, String)],
) -> Result<Vec<SavedThere>> {
    changes.check_savable(assignments)?;
    for (setting, value) in assignments {
        changes.apply(setting, value)?;
    }
    Ok(changes.save(assignments)?)
}

/// Makes everything as it was before. Returns what is not, in words.
fn not_back(changes: &mut RemoteChanges) -> Option<String> {
    let report = changes.restore();
    let is_back = report.report.is_clean() && report.report.notes.is_empty();
    (!is_back).then(|| report.to_string())
}

fn overruled(address: &Address, files: &[SavedThere]) -> Vec<String> {
    let all = files.iter().flat_map(|file| file.overruled.iter().map(move |one| (file, one)));
    let said = all.map(|(file, (setting, other))| {
        format!("{address}: {}", saved::counts_more(other, setting, &file.path))
    });
    said.collect()
}

fn warn_of_overruled(address: &Address, files: &[SavedThere]) {
    let lacking = files.iter().filter_map(|file| Some((file, file.lacks?)));
    for (file, link) in lacking {
        screen::say(format_args!("warning: {address}: {}", saved::not_started(&file.path, link)));
    }
    for warning in overruled(address, files) {
        screen::say(format_args!("warning: {warning}"));
    }
}

/// Prints the files there that store values, and the values.
pub fn saved(address: &Address, access: &Access) -> Result<Exit> {
    let files = Host::open(address, access)?.saved()?;
    if files.is_empty() {
        screen::line(format_args!("{address}: goodput keeps no setting after a reboot"))?;
    }
    for file in &files {
        screen::line(format_args!("{address}: {}", described(file)))?;
    }
    warn_of_overruled(address, &files);
    Ok(Exit::Fine)
}

/// Removes goodput's lines from these files. Present values stay in effect until the next boot.
pub fn remove_saved(address: &Address, access: &Access) -> Result<Exit> {
    let removed = Host::open(address, access)?.remove_saved()?;
    if removed.is_empty() {
        screen::line(format_args!(
            "nothing to remove: goodput keeps no setting after a reboot at {address}"
        ))?;
    }
    let mut exit = Exit::Fine;
    for (file, outcome) in removed {
        match outcome {
            Ok(()) => {
                let what = if file.whole { "" } else { "goodput's lines from " };
                screen::line(format_args!("{address}: removed {what}{}", described(&file)))?;
            }
            Err(why) => {
                exit = if why.not_permitted() { Exit::NotPermitted } else { Exit::CouldNot };
                screen::say(format_args!("goodput: {why}"));
            }
        }
    }
    Ok(exit)
}

/// `/etc/rc.conf: polling@em0=on`.
fn described(file: &SavedThere) -> String {
    let keeps = file.keeps.iter().map(|(setting, value)| format!("{setting}={value}"));
    let keeps = keeps.collect::<Vec<_>>().join(", ");
    let edited = if file.intact { "" } else { " (edited since)" };
    format!("{}{edited}: {keeps}", file.path)
}

/// What polling can handle there, and whether the clock is fast enough.
fn of_polling(changes: &mut RemoteChanges, setting: &SettingRef) -> Result<Vec<String>> {
    let Some(device) = setting.scope.as_deref().filter(|_| setting.name == "polling") else {
        return Ok(Vec::new());
    };
    let Some(rates) = changes.polling(device)? else { return Ok(Vec::new()) };
    Ok(rates.bound(device).into_iter().chain(rates.too_slow()).collect())
}

/// Reports what is waited for at a host.
fn reporting() -> Notify {
    fn report(awaited: &AwaitedThere) {
        screen::say(awaited);
    }
    Notify::by(report)
}

/// Restores what interrupted runs left changed at hosts; `None` if they left nothing.
pub fn undo(state_dir: &Path, request: UndoRequest) -> Result<Option<Exit>> {
    let mut exit = None;
    for report in goodput_remote::undo(state_dir, request, &reporting()) {
        screen::line(&report)?;
        let now = if report.report.is_clean() { Exit::Fine } else { Exit::CouldNot };
        exit = Some(if exit == Some(Exit::CouldNot) { Exit::CouldNot } else { now });
    }
    Ok(exit)
}

fn machine(setting: &SettingRef) -> Result<()> {
    // FreeBSD has settings that this host does not know.
    let known = goodput_settings::find_for(&SettingRef {
        end: goodput_model::EndName::Near,
        ..setting.clone()
    });
    if known.is_ok_and(goodput_settings::Setting::is_plan) {
        bail!("{setting} belongs to a measurement, not to a host; give it to test or compare");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_columns_however_long_its_names_are() {
        let listed = |setting: &str, value: &str, meaning: &str| {
            let [setting, value, meaning] = [setting, value, meaning].map(String::from);
            Listed { setting, value, meaning }
        };
        let all = [
            listed("polling@em0", "off", "polls the card"),
            listed("sysctl.kern.polling.residual_burst", "0", "cycles left"),
            listed("sysctl.kern.ostype", "FreeBSD and more", ""),
        ];
        let polling = lines(&all, Some("polling"));
        let columns: Vec<_> = polling.iter().map(|line| line.rfind("  ")).collect();
        assert!(polling.len() == 2 && columns[0] == columns[1], "{polling:?}");
        assert_eq!(lines(&all, Some("kern.ostype")), ["sysctl.kern.ostype  FreeBSD and more"]);
        assert_eq!(lines(&all, Some("nothing")), [""; 0]);
    }
}
