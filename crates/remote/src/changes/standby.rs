//! Who can put back what is changed at a host: a journal on this host, and the dead-man on the other one. Both know
//! everything before it is changed.

use std::path::Path;
use std::time::Duration;

use goodput_settings::ProcessMark;

use crate::command::Command;
use crate::entry::Entry;
use crate::error::RemoteError;
use crate::host::Host;
use crate::journal::{Journal, Line, Owner};
use crate::look::Look;
use crate::others::{check_hold, refuse_others};
use crate::script::script;
use crate::shell::Shell;
use crate::ssh::{DeadMan, Session};

/// How long a change that could cut the connection may go unconfirmed, seconds, on a host that answers quickly.
const CONFIRM_S: u32 = 10;
/// The same on a host that answers slowly, in times of what opening it took: a confirmation logs in once more and runs
/// about as many commands.
const CONFIRM_OPENINGS: u32 = 5;

/// Bytes that cross the connection in both directions to confirm a change: several full segments of any MTU.
const CHECK_BYTES: usize = 48 << 10;

/// The journal here, and the process there.
pub(super) struct Standby {
    pub(super) journal: Journal,
    pub(super) dead_man: DeadMan,
}

impl Standby {
    /// Starts the dead-man, and the journal in `state_dir` if no other goodput is changing the host.
    pub(super) fn begin(host: &mut Host, state_dir: &Path) -> Result<Self, RemoteError> {
        let dead_man = host.stand_by()?;
        refuse_others(host)?;
        check_hold(host)?;
        let journal = Journal::create(state_dir, |format, pid| Owner {
            format,
            pid,
            host: host.address.to_string(),
            access: host.access.clone(),
            identity: host.identity.clone(),
            machine: host.machine.clone(),
            process: ProcessMark::own(),
            dead_man: dead_man.id.pid,
            mark: dead_man.id.mark.clone(),
        })?;
        Ok(Self { journal, dead_man })
    }

    /// Announces to both that the setting of the entry at `index` is about to become `to`.
    pub(super) fn announce(
        &mut self,
        host: &mut Host,
        entries: &mut [Entry],
        index: usize,
        to: &str,
    ) -> Result<(), RemoteError> {
        let entry = &mut entries[index];
        let (main, around) = (entry.main.clone(), entry.around.clone());
        self.journal.note(&Line::Intent { main, around, to: to.into() })?;
        entry.doubt = true;
        self.arm(host, entries, index)
    }

    /// Gives the dead-man the current script of an entry.
    fn arm(&self, host: &mut Host, entries: &[Entry], index: usize) -> Result<(), RemoteError> {
        let script = script(host.system, &mut Look::new(&mut host.session), entries, index)?;
        self.dead_man.arm(&mut host.session, index + 1, &script)
    }

    /// Makes the host put the change back soon unless it is confirmed.
    pub(super) fn expect(&self, host: &mut Host, index: usize) -> Result<(), RemoteError> {
        self.dead_man.expect(&mut host.session, index + 1, confirm_s(host.opened_in))
    }

    /// Confirms a change if full packets still get through in both directions, on this connection and on a new one.
    pub(super) fn confirm(
        &self,
        host: &mut Host,
        entries: &[Entry],
        index: usize,
    ) -> Result<(), RemoteError> {
        let setting = entries[index].main.setting.to_string();
        let cut = |why: String| RemoteError::CutOff { setting: setting.clone(), why };
        // Packets that a change keeps away do not close a connection: whoever did that did not change the setting.
        let cut_if = |is_cut: bool, error: RemoteError| match is_cut {
            true => cut(error.to_string()),
            false => error,
        };
        get_through(&mut host.session)
            .map_err(|error| cut_if(host.session.fell_silent(), error))?;
        let mut fresh = host.again().map_err(|error| cut_if(is_out_of_reach(&error), error))?;
        get_through(&mut fresh).map_err(|error| cut_if(fresh.fell_silent(), error))?;
        match self.dead_man.confirm(&mut host.session, index + 1)? {
            true => Ok(()),
            false => {
                let within_s = confirm_s(host.opened_in);
                Err(cut(format!("no packet got through for {within_s} s")))
            }
        }
    }

    /// Lets both know how the change of the entry at `index` ended, and what it did to those that it `touched`.
    pub(super) fn settle(
        &mut self,
        host: &mut Host,
        entries: &mut [Entry],
        index: usize,
        touched: Vec<usize>,
    ) -> Result<(), RemoteError> {
        entries[index].doubt = false;
        let others = touched.into_iter().filter(|other| *other != index);
        for index in std::iter::once(index).chain(others) {
            let entry = &entries[index];
            // If an entry's outcome is unknown, any value can be ours as it is.
            if !entry.doubt {
                let changed = entry.around.iter().filter(|cell| cell.made.is_some());
                let (main, around) = (entry.main.clone(), changed.cloned().collect());
                self.journal.note(&Line::Effective { main, around })?;
            }
            self.arm(host, entries, index)?;
        }
        Ok(())
    }
}

/// How long a change may go unconfirmed on a host that was opened in this time, seconds.
fn confirm_s(opened_in: Duration) -> u32 {
    let patient_s = (opened_in * CONFIRM_OPENINGS).as_secs();
    u32::try_from(patient_s).unwrap_or(u32::MAX).max(CONFIRM_S)
}

/// Whether a login failed because packets do not get through, as far as anyone can tell.
fn is_out_of_reach(error: &RemoteError) -> bool {
    matches!(error, RemoteError::Unreachable { .. } | RemoteError::NoLogin { .. })
}

/// What [`get_through`] does, in words.
const GET_THROUGH: &str = "send full packets there and back";

/// Sends many full packets there and back.
fn get_through(session: &mut Session) -> Result<(), RemoteError> {
    let bytes = "x".repeat(CHECK_BYTES);
    let back = session.output(&Command::new("printf", ["%s", &bytes]).to(GET_THROUGH))?;
    match back == bytes {
        true => Ok(()),
        false => Err(RemoteError::Unexpected {
            host: session.host().into(),
            doing: GET_THROUGH.into(),
            words: format!("{} bytes instead of {CHECK_BYTES}", back.len()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_answers_slowly_has_longer_to_confirm() {
        assert_eq!(confirm_s(Duration::from_millis(300)), 10);
        assert_eq!(confirm_s(Duration::from_secs(6)), 30);
    }
}
