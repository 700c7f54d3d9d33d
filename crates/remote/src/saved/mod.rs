//! Values that survive a reboot of a host: written into its files, listed, and removed again.
//!
//! If a system reads a file of ours beside other files, the whole file is ours. If it reads only one file, ours are
//! marked lines at its end; nothing else in it is ever touched. Lines that someone has edited are left alone.

mod writing;

use goodput_model::SettingRef;
use goodput_settings::keeping::BOOT_UNIT;
use goodput_settings::{Assignment, saved_text};

use crate::command::Command;
use crate::error::RemoteError;
use crate::keeper::Keeper;
use crate::look::Look;
use crate::shell::Shell;
use crate::system::System;
use writing::{Plan, plans};
pub(crate) use writing::{Writing, not_taken_back, take_back};

/// Lines of ours in a file of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedThere {
    /// The file.
    pub path: String,
    /// Whether the file is all goodput's.
    pub whole: bool,
    /// The values that they keep.
    pub keeps: Vec<Assignment>,
    /// Whether they are as goodput wrote them.
    pub intact: bool,
    /// Values that another file overrules at boot, and that file.
    pub overruled: Vec<(SettingRef, String)>,
    /// The link that would put the file to use, if it is not there: then none of the values is set at boot.
    pub lacks: Option<&'static str>,
}

impl SavedThere {
    /// Lines in the file of `keeper`. Whether others overrule them is not known yet.
    fn new(keeper: &Keeper, keeps: Vec<Assignment>, intact: bool) -> Self {
        let (path, whole) = (keeper.path.clone(), keeper.whole);
        Self { path, whole, keeps, intact, overruled: Vec::new(), lacks: None }
    }

    /// The same with what others overrule, and with what is missing. What can't be looked at is not missing.
    fn judged(self, system: &dyn System, shell: &mut dyn Shell, keeper: &Keeper) -> Self {
        let overruled = system.overruled(shell, keeper, &self.keeps);
        let lacks = keeper.link.filter(|_| keeper.is_idle(shell).unwrap_or(false));
        Self { overruled, lacks, ..self }
    }
}

/// Lines that were to be removed, and the outcome.
pub type Removed = (SavedThere, Result<(), RemoteError>);

/// Begins and ends our lines in a file that is not all ours. Also literal patterns of sed(1).
const BEGIN: &str = "# BEGIN goodput";
const END: &str = "# END goodput";
/// Follows the beginning if goodput made the file: without our lines, and if nobody added any, the file then goes, too.
const MADE: &str = "# goodput made this file\n";

/// Prints what is at a path: `none`, `link`, `other`, or `file`, its checksum, how many times our lines begin and end,
/// and then our lines, or all of them.
const SHOW: &str = "f=$1; if [ -L \"$f\" ]; then echo link; elif [ ! -e \"$f\" ]; then echo none; \
    elif [ ! -f \"$f\" ]; then echo other; else echo file; \
    cksum <\"$f\" || exit; if [ \"$2\" = whole ]; then echo 1 1; cat \"$f\"; else \
    echo $(grep -c -x \"$3\" \"$f\") $(grep -c -x \"$4\" \"$f\"); sed -n \"/^$3\\$/,/^$4\\$/p\" \"$f\"; fi; fi";

/// Replaces a file in one step, if it still has the checksum: removes our lines and appends the text to the rest. If
/// `$8` is `goes`, a file that would be empty is removed. A draft on a full disk never takes the file's place; cat(1) says why, a shell
/// may not.
const WRITE: &str = "f=$1; [ \"$(cksum 2>/dev/null <\"$f\")\" = \"$2\" ] || { echo \"$f was changed meanwhile\" >&2; exit 1; }; \
    umask 022; mkdir -p \"${f%/*}\" || exit; t=$f.goodput.$$; trap 'rm -f \"$t\"' EXIT; \
    if [ -e \"$f\" ]; then cp -p \"$f\" \"$t\" || exit; else : >\"$t\" || exit; fi; \
    { if [ \"$3\" = whole ] || [ ! -e \"$f\" ]; then :; else sed \"/^$4\\$/,/^$5\\$/d\" \"$f\" && \
    { [ -z \"$(tail -c 1 \"$f\")\" ] || echo; }; fi && printf '%b' \"$6\"; } >\"$t\" || \
    { printf '%b' \"$6\" | cat >>\"$t\"; exit 1; }; \
    if [ -s \"$t\" ] || [ \"$8\" != goes ]; then { fsync \"$t\" 2>/dev/null || sync \"$t\" 2>/dev/null || sync; } && mv \"$t\" \"$f\"; \
    else rm -f \"$f\"; fi";

/// The folder of the file, or the nearest one above it that is there.
const PLACE: &str = "d=${f%/*}; while [ ! -d \"$d/\" ]; do d=${d%/*}; done";

/// Removes drafts whose writers were killed: their names end with the number of a process, which is gone.
const REMOVE_LEFT: &str = "for t in \"$d/${f##*/}\".goodput.*; do p=${t##*.}; case $p in *[!0-9]*) continue ;; esac; \
    case $(kill -0 \"$p\" 2>&1) in *'No such process'*) [ ! -f \"$t\" ] || rm -f \"$t\" ;; esac; done";

/// Refuses a link that goodput did not make.
const REFUSE_LINK: &str = "if [ -L \"$l\" ] || [ -e \"$l\" ]; then [ \"$(readlink \"$l\")\" = \"$f\" ] || \
    { echo \"$l is there, which goodput did not make: it is left as it is. Move it away\" >&2; exit 1; }; fi";

/// Makes our link before the file.
const MAKE_LINK: &str =
    "[ -L \"$l\" ] || { umask 022; mkdir -p \"${l%/*}\" && ln -s \"$f\" \"$l\" || exit; }";

/// Writes what would take the place of a file beside it, or where its folder would be, and removes that again. `$2` is the
/// text; the file's own is added unless `$3` is `whole`; `$4` is the path of our link.
const REHEARSE: &str = "umask 077; t=$d/${f##*/}.goodput.$$; trap 'rm -f \"$t\"' EXIT; : >\"$t\" || exit; \
    { [ \"$3\" = whole ] || [ ! -e \"$f\" ] || cat \"$f\"; } >\"$t\" && printf '%b' \"$2\" | cat >>\"$t\" && \
    { fsync \"$t\" 2>/dev/null || sync \"$t\" 2>/dev/null || sync; }";

/// Without the file, removes our link, unless someone made another of it.
const REMOVE_LINK: &str = "[ -e \"$f\" ] || [ \"$(readlink \"$l\")\" != \"$f\" ] || rm -f \"$l\"";

/// The same, and says whether there was one.
const REMOVE_DANGLING: &str = "f=$1; l=$2; [ -e \"$f\" ] || [ -L \"$f\" ] || [ \"$(readlink \"$l\")\" != \"$f\" ] || { rm -f \"$l\" && echo gone; }";

/// Says whether a file has no link of ours, so that nothing puts it to use.
const IS_IDLE: &str = "f=$1; l=$2; [ \"$(readlink \"$l\")\" = \"$f\" ] || echo idle";

/// Without the file, removes its folder if that is empty.
const REMOVE_FOLDER: &str = "[ -e \"$f\" ] || rmdir \"${f%/*}\" 2>/dev/null || :";

impl Keeper {
    fn kind(&self) -> &'static str {
        if self.whole { "whole" } else { "lines" }
    }

    fn found(&self, shell: &mut dyn Shell) -> Result<Found, RemoteError> {
        let purpose = format!("read {}", self.path);
        let words = [&*self.path, self.kind(), BEGIN, END];
        let command = Command::script(purpose, SHOW, words);
        let printed = shell.output(&command)?;
        let (what, rest) = printed.split_once('\n').unwrap_or((&printed, ""));
        match what {
            "none" => Ok(Found { sum: String::new(), is_made: true, ours: None }),
            "file" => {
                let (sum, rest) = rest.split_once('\n').unwrap_or((rest, ""));
                let (times, text) = rest.split_once('\n').unwrap_or((rest, ""));
                let is_made = text.strip_prefix(BEGIN).and_then(|rest| rest.strip_prefix('\n'));
                let is_made = self.whole || is_made.is_some_and(|rest| rest.starts_with(MADE));
                let ours = self.ours(shell.host(), times, text)?;
                Ok(Found { sum: sum.into(), is_made, ours })
            }
            "link" => Err(self.left(shell.host(), "it is a link, which goodput never makes")),
            "other" => Err(self.left(shell.host(), "it is no file")),
            _ => Err(RemoteError::NotUnderstood {
                host: shell.host().into(),
                command: command.shown(),
                line: what.into(),
                why: "goodput expected none, link, other or file".into(),
            }),
        }
    }

    /// The contents of our lines; `None` if there are none.
    fn ours(&self, host: &str, times: &str, text: &str) -> Result<Option<SavedThere>, RemoteError> {
        let inner = match (self.whole, times) {
            (true, _) => Some(text),
            (false, "0 0") => return Ok(None),
            (false, "1 1") => text
                .strip_prefix(BEGIN)
                .and_then(|rest| rest.strip_prefix('\n')?.strip_suffix(&format!("{END}\n"))),
            (false, _) => None,
        };
        let inner = inner.map(|text| text.strip_prefix(MADE).unwrap_or(text));
        match inner.and_then(saved_text::parse) {
            Some(saved_text::Contents { keeps, intact }) => {
                Ok(Some(SavedThere::new(self, keeps, intact)))
            }
            None if self.whole => Err(self.left(host, "it is not goodput's")),
            None => Ok(Some(SavedThere::new(self, Vec::new(), false))),
        }
    }

    /// Removes our link if its file is not there: a run that was cut off makes the link first, and someone may have removed the
    /// file alone. Returns whether it was there.
    fn remove_dangling_link(&self, shell: &mut dyn Shell) -> Result<bool, RemoteError> {
        let Some(link) = self.link else { return Ok(false) };
        let purpose = format!("remove {link}");
        let printed =
            shell.output(&Command::script(purpose, REMOVE_DANGLING, [&*self.path, link]))?;
        Ok(!printed.trim().is_empty())
    }

    /// Whether the file is there without the link that puts it to use.
    fn is_idle(&self, shell: &mut dyn Shell) -> Result<bool, RemoteError> {
        let Some(link) = self.link else { return Ok(false) };
        let purpose = format!("look at {link}");
        let printed = shell.output(&Command::script(purpose, IS_IDLE, [&*self.path, link]))?;
        Ok(!printed.trim().is_empty())
    }

    fn left(&self, host: &str, why: &str) -> RemoteError {
        RemoteError::LeftAlone { host: host.into(), path: self.path.clone(), why: why.into() }
    }

    /// Makes our lines keep these values, or removes the lines. `is_made` as in [`Found`].
    fn write(
        &self,
        shell: &mut dyn Shell,
        system: &dyn System,
        (sum, is_made): (&str, bool),
        keeps: &[Assignment],
    ) -> Result<(), RemoteError> {
        let text = self.text(shell, system, is_made, keeps)?;
        let link = self.link.unwrap_or("");
        let end = if is_made { "goes" } else { "stays" };
        let words = [&*self.path, sum, self.kind(), BEGIN, END, &text, link, end];
        let purpose = format!("write {}", self.path);
        shell.output(&Command::script(purpose, &self.script(), words)).map(drop)
    }

    /// Refuses what [`Self::write`] would fail at, and leaves nothing.
    fn rehearse(
        &self,
        shell: &mut dyn Shell,
        system: &dyn System,
        is_made: bool,
        keeps: &[Assignment],
    ) -> Result<(), RemoteError> {
        let text = self.text(shell, system, is_made, keeps)?;
        let words = [&*self.path, &text, self.kind(), self.link.unwrap_or("")];
        let script = match self.link {
            Some(_) => format!("f=$1; l=$4; {PLACE}; {REMOVE_LEFT}; {REFUSE_LINK}; {REHEARSE}"),
            None => format!("f=$1; {PLACE}; {REMOVE_LEFT}; {REHEARSE}"),
        };
        let purpose = format!("write {}", self.path);
        shell.output(&Command::script(purpose, &script, words)).map(drop)
    }

    /// What our lines are then, for printf(1), which restores the line breaks.
    fn text(
        &self,
        shell: &mut dyn Shell,
        system: &dyn System,
        is_made: bool,
        keeps: &[Assignment],
    ) -> Result<String, RemoteError> {
        let text = match keeps {
            [] => String::new(),
            _ => saved_text::render(keeps, &system.lines(shell, self, keeps)?),
        };
        let text = match self.whole || text.is_empty() {
            true => text,
            false => format!("{BEGIN}\n{}{text}{END}\n", if is_made { MADE } else { "" }),
        };
        Ok(text.replace('\\', r"\\").replace('\n', r"\n"))
    }

    /// The script that replaces this file.
    fn script(&self) -> String {
        let link = format!("l=$7; if [ -n \"$6\" ]; then {REFUSE_LINK}; {MAKE_LINK}; fi");
        let (before, after) = match (self.link, self.folder) {
            (Some(_), _) => (&*link, REMOVE_LINK),
            (None, true) => (":", REMOVE_FOLDER),
            (None, false) => return format!("f=$1; {PLACE}; {REMOVE_LEFT}; {WRITE}"),
        };
        format!("f=$1; {PLACE}; {REMOVE_LEFT}; {before}; ( {WRITE} ); s=$?; {after}; exit $s")
    }
}

/// What a file contains.
struct Found {
    /// Its checksum (cksum(1)); empty if there is no file.
    sum: String,
    /// Whether goodput made the file, or would make it.
    is_made: bool,
    ours: Option<SavedThere>,
}

/// The lines of ours on a host, including edited ones.
pub(crate) fn saved(
    system: &dyn System,
    shell: &mut dyn Shell,
) -> Result<Vec<SavedThere>, RemoteError> {
    let (mut all, mut look) = (Vec::new(), Look::new(shell));
    for keeper in system.keepers(&mut look)? {
        match keeper.found(&mut look) {
            Ok(found) => {
                all.extend(found.ours.map(|ours| ours.judged(system, &mut look, &keeper)));
            }
            // Someone else's file contains nothing of ours.
            Err(RemoteError::LeftAlone { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// Refuses settings that no file there is about.
pub(crate) fn check(
    system: &dyn System,
    shell: &mut dyn Shell,
    assignments: &[Assignment],
) -> Result<(), RemoteError> {
    let mut look = Look::new(shell);
    assignments.iter().try_for_each(|(setting, _)| system.check_savable(&mut look, setting))
}

/// Refuses what [`Writing`] would refuse before it writes.
pub(crate) fn check_would_save(
    system: &dyn System,
    shell: &mut dyn Shell,
    assignments: &[Assignment],
) -> Result<(), RemoteError> {
    check(system, shell, assignments)?;
    plans(system, shell, assignments).map(drop)
}

/// Refuses what [`Writing`] would refuse or fail at: the files are written in full beside their places, and removed again.
pub(crate) fn rehearse(
    system: &dyn System,
    shell: &mut dyn Shell,
    assignments: &[Assignment],
) -> Result<(), RemoteError> {
    check(system, shell, assignments)?;
    let plans = plans(system, shell, assignments)?;
    plans.iter().try_for_each(|Plan { keeper, is_made, keeps, .. }| {
        keeper.rehearse(shell, system, *is_made, keeps)
    })
}

const EDITED: &str =
    "someone has edited goodput's lines in it. Remove these lines, or change the file by hand";

/// Removes the lines of ours that nobody has edited. Returns all of our lines with the outcome for each.
pub(crate) fn remove(
    system: &dyn System,
    shell: &mut dyn Shell,
) -> Result<Vec<Removed>, RemoteError> {
    let mut all = Vec::new();
    for keeper in system.keepers(shell)? {
        let found = match keeper.found(shell) {
            Ok(found) => found,
            Err(RemoteError::LeftAlone { .. }) => continue,
            Err(error) => return Err(error),
        };
        let Some(ours) = found.ours else { continue };
        let removed = match ours.intact {
            true => keeper.write(shell, system, (&found.sum, found.is_made), &[]),
            false => Err(keeper.left(shell.host(), EDITED)),
        };
        all.push((ours, removed));
    }
    let unit = system.keeper_at(BOOT_UNIT);
    if let Some(link) = unit.link
        && unit.remove_dangling_link(shell)?
    {
        let link = Keeper { link: None, ..Keeper::whole(link) };
        all.push((SavedThere::new(&link, Vec::new(), true), Ok(())));
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
