//! The script with which a host puts back an entry on its own.
//!
//! It has two phases: first it judges all values, then it writes those that are ours in rounds, because writing one
//! may drag others along.

use crate::command::{Command, Condition};
use crate::entry::{Cell, Entry, maker, originals};
use crate::error::RemoteError;
use crate::shell::Shell;
use crate::system::System;

/// The script for the entry at `index`, from the entries as they are now.
pub(crate) fn script(
    system: &dyn System,
    shell: &mut dyn Shell,
    entries: &[Entry],
    index: usize,
) -> Result<String, RemoteError> {
    let entry = &entries[index];
    let originals = originals(entries);
    let (mut judge, mut back) = (String::new(), String::new());
    for (place, cell) in entry.cells().enumerate() {
        let known = originals.iter().position(|(_, first)| first.setting == cell.setting);
        let Some(number) = known else { continue };
        let (of, first) = originals[number];
        // Whether the value is ours, according to any of the entries that have it.
        let variable = format!("ours_{number}");
        let is_ours = condition(system, shell, entry, cell, place == 0)?;
        let sets =
            if place == 0 { format!("{variable}=1 itself=1") } else { format!("{variable}=1") };
        judge += &match is_ours {
            Ours::If(condition) => format!("if {{ {condition}; }}; then {sets}; fi; "),
            Ours::WithMain => format!("[ -z \"$itself\" ] || {sets}; "),
            Ours::Always => format!("{sets}; "),
        };
        if of == index {
            back += &write(first, &variable, maker(system, &originals, first));
        }
    }
    Ok(format!("case $phase in judge) itself=; {judge};; back) {back};; esac")
        .replace("; ;;", ";;"))
}

/// When a value is ours to put back.
enum Ours {
    If(Condition),
    /// If the setting that drags it along is ours.
    WithMain,
    Always,
}

fn condition(
    system: &dyn System,
    shell: &mut dyn Shell,
    entry: &Entry,
    cell: &Cell,
    is_main: bool,
) -> Result<Ours, RemoteError> {
    Ok(match (&cell.made, &cell.under_way) {
        _ if entry.doubt && !is_main && !cell.theirs => Ours::WithMain,
        (_, Some(under_way)) if entry.doubt && is_main => Ours::If(under_way.clone()),
        (_, None) if entry.doubt && is_main => Ours::Always,
        (Some(made), _) if *made != cell.original => {
            let is_made = system.holds(shell, &cell.setting, made)?;
            Ours::If(cell.is_original.clone().or(is_made))
        }
        // Putting back another value may drag it along.
        _ => Ours::If(cell.is_original.clone()),
    })
}

/// Writes an original that is not back. Once `maker` is back, nothing of ours is left to write.
fn write(cell: &Cell, variable: &str, maker: Option<&Cell>) -> String {
    let is_original = &cell.is_original;
    let back: Vec<_> = cell.back.iter().map(Command::to_string).collect();
    let back = back.join(" && ");
    let done = maker.map(|maker| format!(" && ! {{ {}; }}", maker.is_original));
    let done = done.unwrap_or_default();
    format!(
        "if [ -n \"${variable}\" ] && ! {{ {is_original}; }}{done}; then wrote=1; {back} && {{ {is_original}; }} || bad=1; fi; "
    )
}
