//! Putting back what was changed at a host, over a session.

use std::thread::sleep;
use std::time::Duration;

use goodput_settings::Outcome;

use crate::entry::{Cell, Entry};
use crate::error::RemoteError;
use crate::shell::Shell;
use crate::system::System;

/// How often a value is written that does not come back at once: a device that starts anew refuses for a moment.
const TRIES: u32 = 5;

/// Puts back a setting and what was changed along with it.
pub(crate) fn put_back(system: &dyn System, shell: &mut dyn Shell, entry: &Entry) -> Outcome {
    let main = outcome(system, shell, &entry.main, entry.doubt);
    let around = entry.around.iter().filter(|cell| entry.doubt || cell.made.is_some());
    let mut left = Vec::new();
    for cell in around {
        if let Outcome::Failed(why) = outcome(system, shell, cell, entry.doubt) {
            left.push(format!("{}: {why}", cell.setting));
        }
    }
    match main {
        Outcome::Failed(why) => Outcome::Failed(why),
        main if left.is_empty() => main,
        _ => Outcome::Failed(format!(
            "the value is back, but not what changed with it: {}",
            left.join("; ")
        )),
    }
}

fn outcome(system: &dyn System, shell: &mut dyn Shell, cell: &Cell, doubt: bool) -> Outcome {
    attempt(system, shell, cell, doubt).unwrap_or_else(|error| Outcome::Failed(error.to_string()))
}

fn attempt(
    system: &dyn System,
    shell: &mut dyn Shell,
    cell: &Cell,
    doubt: bool,
) -> Result<Outcome, RemoteError> {
    let setting = &cell.setting;
    let mut now = system.read(shell, setting)?;
    if now == cell.original {
        return Ok(Outcome::AlreadyBack);
    }
    if !cell.is_ours(&now, doubt) {
        let ours = cell.made.clone().unwrap_or_default();
        return Ok(Outcome::ChangedByOther { now, ours });
    }
    let mut failure = None;
    for _ in 0..TRIES {
        failure = cell.back.iter().find_map(|command| shell.output(command).err());
        now = system.read(shell, setting)?;
        if now == cell.original {
            return Ok(Outcome::PutBack { to: now });
        }
        sleep(Duration::from_millis(300));
    }
    Ok(Outcome::Failed(match failure {
        Some(error) => error.to_string(),
        None => format!("the kernel made it {now}"),
    }))
}
