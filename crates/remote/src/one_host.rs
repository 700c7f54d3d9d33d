//! Whether two logins lead to one place of one running host, whatever names they went by.

use std::process;

use crate::command::Command;
use crate::error::RemoteError;
use crate::host::Host;
use crate::shell::Shell;
use crate::system::System;

/// Refuses a host that stands for the other end already, under another name, or that can't be told from it.
///
/// What hosts report about themselves may be the same on two of them: on jails of one machine, or on machines that were
/// resumed from one snapshot. Then it counts whether the second login sees the process by which the first one is held.
///
/// # Errors
/// [`RemoteError::BothEnds`], or when a connection is lost.
pub(crate) fn refuse(first: &mut Host, second: &mut Host) -> Result<(), RemoteError> {
    if first.identity != second.identity {
        return Ok(());
    }
    let mark = first.session.mark().to_owned();
    let names = [&first.address, &second.address].map(ToString::to_string).join(" is ");
    if sees(second, &mark)? {
        return Err(RemoteError::BothEnds { names });
    }
    // A login that could not see it anyway proves nothing.
    if sees(first, &mark)? && viewpoint(first)? == viewpoint(second)? {
        return Ok(());
    }
    let names = format!(
        "perhaps {names} (log in to both as the same user, and outside of containers, to tell them apart)"
    );
    Err(RemoteError::BothEnds { names })
}

/// Whether a login sees the process of goodput with this mark.
fn sees(host: &mut Host, mark: &str) -> Result<bool, RemoteError> {
    Ok(!host.system.processes(&mut host.session, mark)?.is_empty())
}

fn viewpoint(host: &mut Host) -> Result<String, RemoteError> {
    host.session.output(&host.system.viewpoint())
}

impl Host {
    /// Whether it is the host that goodput runs on, in the same network namespace.
    pub fn is_this_host(&self) -> bool {
        is_here(self.system, &self.identity)
    }
}

/// Whether a host of this system and identity is the one that this thread runs on: its shell says the same.
pub(crate) fn is_here(system: &dyn System, identity: &[String]) -> bool {
    let here: Option<Vec<String>> = system.identity().iter().map(printed_here).collect();
    here.is_some_and(|here| here == identity)
}

/// What a command prints on this host; `None` if it fails.
fn printed_here(command: &Command) -> Option<String> {
    let shell = process::Command::new("sh").args(["-c", &command.to_string()]).output().ok()?;
    let printed = shell.status.success().then_some(shell.stdout)?;
    Some(String::from_utf8(printed).ok()?.trim().to_owned())
}
