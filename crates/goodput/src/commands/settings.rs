//! `goodput settings`: read and change settings of this host; undo leftovers.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use goodput_model::{EndName, Permanent, SettingRef};
use goodput_settings::allowlist::AllowedSettings;
use goodput_settings::{
    Awaited, Changes, Forget, GuardProgram, Leftover, Outcome, Patience, RestoreReport, Restored,
    Setting, UndoRequest, Whereabouts, is_of_mount,
};
use rustix::process::geteuid;

use super::remote_settings::Saving;
use super::{explain, list, remote_settings, rounding, saved};
use crate::args::{AtArgs, Settings, spelled};
use crate::data_dirs::state_dir;
use crate::exit::Exit;
use crate::file_servers;
use crate::screen;

/// Carries out one of the subcommands.
pub fn run(what: Settings, state: Option<PathBuf>) -> Result<Exit> {
    match what {
        Settings::List { narrowed, at: AtArgs { on: Some(host), access } } => {
            remote_settings::list(&host, &access.access(), narrowed.containing.as_deref())
        }
        Settings::List { narrowed, .. } => {
            list::settings(&narrowed)?;
            Ok(Exit::Fine)
        }
        Settings::Get { setting, at: AtArgs { on: Some(host), access } } => {
            remote_settings::get(&host, &access.access(), &setting)
        }
        Settings::Get { setting, .. } => get(&setting),
        Settings::Show { setting, at: AtArgs { on: Some(host), access } } => {
            remote_settings::show(&host, &access.access(), &setting)
        }
        Settings::Show { setting, .. } => explain::setting(&setting),
        Settings::Set { assignment, save, at: AtArgs { on: Some(host), access } } => {
            let (setting, value) = assigned(&assignment)?;
            let (state_dir, save) = (state_dir(state)?, Saving(save));
            remote_settings::set(&host, &access.access(), (&setting, &value), save, &state_dir)
        }
        Settings::Set { assignment, save, .. } => set(&assignment, save, &state_dir(state)?),
        Settings::Saved { at: AtArgs { on: Some(host), access } } => {
            remote_settings::saved(&host, &access.access())
        }
        Settings::Saved { .. } => saved::list(),
        Settings::Undo { saved: true, at: AtArgs { on: Some(host), access }, .. } => {
            remote_settings::remove_saved(&host, &access.access())
        }
        Settings::Undo { saved: true, .. } => saved::remove(),
        Settings::ShowFiles { assignments } => show_files(&assignments),
        Settings::Undo { at: AtArgs { on: Some(_), .. }, .. } => {
            bail!(
                "`goodput settings undo` puts back at every host what interrupted runs left; --on only goes with --saved"
            )
        }
        Settings::Undo { forget, forget_unseen, damaged, saved: false, .. } => {
            let forget = match (forget, forget_unseen) {
                (_, true) => Forget::Unseen,
                (true, false) => Forget::Gone,
                (false, false) => Forget::Nothing,
            };
            undo_all(&state_dir(state)?, UndoRequest { forget, use_damaged: damaged })
        }
        Settings::Guard { journal } => match goodput_settings::guard_main(&journal) {
            0 => Ok(Exit::Fine),
            _ => Ok(Exit::CouldNot),
        },
        Settings::Helper { state_dir, allowed } => {
            let allowed = AllowedSettings::new(allowed);
            match goodput_settings::helper::helper_main(&state_dir, &allowed) {
                0 => Ok(Exit::Fine),
                _ => Ok(Exit::CouldNot),
            }
        }
    }
}

fn get(setting: &SettingRef) -> Result<Exit> {
    let known = on_this_host(setting)?;
    if known.is_plan() {
        bail!(
            "{setting} belongs to a measurement, not to this host; it has no value outside a measurement"
        );
    }
    screen::line(goodput_settings::read(setting)?)?;
    Ok(Exit::Fine)
}

fn set(assignment: &str, save: bool, state_dir: &Path) -> Result<Exit> {
    let (setting, value) = assigned(assignment)?;
    if on_this_host(&setting)?.is_plan() {
        bail!("{setting} belongs to a measurement, not to this host; give it to test or compare");
    }
    settle_leftovers(state_dir);
    let before = goodput_settings::read(&setting)?;
    if save {
        let files = saved::keep(&[(setting.clone(), value.clone())], state_dir)?;
        let paths: Vec<_> = files.iter().map(|file| file.path.display().to_string()).collect();
        let (effective, paths) = (goodput_settings::read(&setting)?, paths.join(", "));
        screen::line(format_args!("{setting}: {before} → {effective} (kept by {paths})"))?;
        rounding::warn(&setting, &value, &effective);
        for warning in saved::overruled(&files) {
            screen::say(format_args!("warning: {warning}"));
        }
        return Ok(Exit::Fine);
    }
    let mut changes = Changes::begin(state_dir, GuardProgram::current())?;
    let effective = changes.apply(&setting, &value)?;
    changes.keep()?;
    screen::line(format_args!("{setting}: {before} → {effective} (until the next boot)"))?;
    rounding::warn(&setting, &value, &effective);
    Ok(Exit::Fine)
}

/// Restores what dead runs left changed according to the journals in `state_dir`, before any new change, and reports
/// it; warns of anything that remains.
pub fn settle_leftovers(state_dir: &Path) {
    // The same error comes again, and is reported, when the changes begin.
    let settled = goodput_settings::settle_before(state_dir, Patience::for_a_guard(report_awaited));
    let mut settled = settled.unwrap_or_default();
    // A journal that may not be used is a leftover.
    settled.retain(|report| report.entries.iter().any(is_settled) || !report.files.is_empty());
    for report in settled {
        screen::say(format_args!(
            "left changed by an interrupted run, settled before anything else:\n{report}"
        ));
    }
    warn_of_leftovers(state_dir);
}

fn is_settled(entry: &Restored) -> bool {
    !matches!(entry.outcome, Outcome::Untouched { .. })
}

/// Warns of what dead runs left changed, before anything is measured or changed on top of it.
pub fn warn_of_leftovers(state_dir: &Path) {
    for leftover in goodput_settings::leftovers(state_dir) {
        screen::say(format_args!("warning: {leftover}"));
    }
}

/// The files that `--save` would write, with all of their text. What it can't save here belongs to an application or to
/// the far end, and is shown with what to do there.
fn show_files(assignments: &[String]) -> Result<Exit> {
    let assigned: Vec<_> = assignments.iter().map(|text| assigned(text)).collect::<Result<_>>()?;
    for (setting, value) in assigned.iter().filter(|(setting, _)| !is_of_mount(setting)) {
        goodput_settings::check_value(setting, value)?;
        is_here(setting)?;
    }
    let is_ours = |(setting, _): &&(SettingRef, String)| {
        let is_plan = goodput_settings::find_for(setting).is_ok_and(Setting::is_plan);
        is_of_mount(setting) || setting.end == EndName::Near && !is_plan
    };
    let (ours, others): (Vec<_>, Vec<_>) = assigned.iter().partition(is_ours);
    let ours: Vec<_> = ours.into_iter().cloned().collect();
    let program = std::env::current_exe().context("can't find the program that runs")?;
    let files = goodput_settings::would_save(&ours, &program)?;
    let elsewhere = others.into_iter().map(|(setting, value)| (setting, value.as_str()));
    for Permanent { file, lines } in
        files.into_iter().chain(goodput_settings::to_keep(elsewhere, |_| None))
    {
        screen::line(format_args!("# {file}\n{lines}\n"))?;
    }
    Ok(Exit::Fine)
}

/// Refuses a setting that this host lacks, of which no file of this host can be. What the user may not read is judged when
/// it is saved.
fn is_here(setting: &SettingRef) -> Result<()> {
    let is_plan = goodput_settings::find_for(setting)?.is_plan();
    match goodput_settings::read(setting) {
        Err(why) if setting.end == EndName::Near && !is_plan && !why.not_permitted() => bail!(
            "{why}; at a host reached by SSH, `goodput settings set --save {setting}=VALUE --on ssh://root@HOST` keeps it"
        ),
        _ => Ok(()),
    }
}

/// `SETTING=VALUE`, with the value as the setting prints it.
fn assigned(text: &str) -> Result<(SettingRef, String)> {
    let Some((setting, value)) = text.split_once('=') else {
        bail!("{text:?} has no value; write SETTING=VALUE");
    };
    let setting: SettingRef = setting.parse()?;
    let value = spelled(&setting, value).map_err(|why| anyhow!("{setting}: {why}"))?;
    Ok((setting, value))
}

fn on_this_host(setting: &SettingRef) -> Result<&'static goodput_settings::Setting> {
    let known = goodput_settings::find_for(setting)?;
    if setting.end == EndName::Far && !known.is_plan() {
        bail!("{setting} is at the far end; `goodput compare` can change it there, with a token");
    }
    Ok(known)
}

/// Reports what the program waits for.
fn report_awaited(awaited: &Awaited) {
    screen::say(awaited);
}

/// Removes files that dead runs left at file servers and on mounts, and reports it; `None` if they left nothing.
fn undo_uploads(state_dir: &Path, forget: bool) -> Result<Option<Exit>> {
    let notes = file_servers::uploads(state_dir);
    let mut exit = None;
    for left in goodput_engine::undo_uploads(&notes, file_servers::left_target, forget)? {
        exit.get_or_insert(Exit::Fine);
        let place = left.place;
        match left.removed {
            Ok(true) => screen::line(format_args!("removed {place}"))?,
            Ok(false) => screen::line(format_args!("{place} was already gone"))?,
            Err(why) if forget => {
                screen::line(format_args!("{place} is forgotten, and may still be there: {why}"))?;
            }
            Err(why) => {
                exit = Some(Exit::CouldNot);
                screen::say(format_args!(
                    "warning: {place}, which an interrupted run stored, can't be removed: {why}; --forget forgets it"
                ));
            }
        }
    }
    Ok(exit)
}

/// Undoes everything that dead runs left: first the settings of this host, then those of other hosts and the files at
/// file servers, which may be out of reach. A failure doesn't stop the rest; the first error is returned, the others
/// are printed.
fn undo_all(state_dir: &Path, request: UndoRequest) -> Result<Exit> {
    let settings = undo(state_dir, request);
    let hosts = remote_settings::undo(state_dir, request);
    let uploads = undo_uploads(state_dir, request.forget != Forget::Nothing);
    let said = [&hosts, &uploads].iter().any(|undone| !matches!(undone, Ok(None)));
    if let (Ok((_, Some(nothing))), false) = (&settings, said) {
        screen::line(nothing)?;
    }
    let all = [settings.map(|(exit, _)| Some(exit)), hosts, uploads];
    let (mut exit, mut error) = (Exit::Fine, None);
    for undone in all {
        match undone {
            Ok(Some(failed)) if exit == Exit::Fine => exit = failed,
            Ok(_) => {}
            Err(why) if error.is_none() => error = Some(why),
            Err(why) => screen::say(format_args!("error: {why:#}")),
        }
    }
    error.map_or(Ok(exit), Err)
}

/// Restores what dead runs left changed, and reports it; if there is nothing, returns the message for this.
fn undo(state_dir: &Path, request: UndoRequest) -> Result<(Exit, Option<&'static str>)> {
    let reports =
        goodput_settings::undo_as_asked(state_dir, request, Patience::for_a_guard(report_awaited))?;
    let mut left = goodput_settings::leftovers(state_dir);
    left.retain(|leftover| reports.iter().all(|report| report.journal != leftover.journal));
    let nothing = match (reports.is_empty(), left.is_empty()) {
        (true, true) if geteuid().is_root() => {
            Some("nothing to undo: no interrupted run left anything changed")
        }
        (true, true) => Some(
            "nothing to undo: no interrupted run of this user left anything changed; only root sees \
             what others left",
        ),
        _ => None,
    };
    if reports.is_empty() && !left.is_empty() {
        screen::line("nothing to undo here")?;
    }
    for report in &reports {
        screen::line(report)?;
    }
    left.iter().for_each(|leftover| screen::say(format_args!("warning: {leftover}")));
    // Settings of another network namespace are unchanged in this one.
    let is_left = |leftover: &Leftover| {
        matches!(leftover.place, Whereabouts::Here | Whereabouts::Damaged | Whereabouts::NoFolder)
    };
    let is_back = !left.iter().any(is_left) && reports.iter().all(RestoreReport::is_clean_here);
    Ok((if is_back { Exit::Fine } else { Exit::CouldNot }, nothing))
}
