//! Which hosts take the place of the ends of a measurement, and which of them this run holds.

use std::path::Path;

use goodput_model::EndName;

use crate::address::Address;
use crate::changes::RemoteChanges;
use crate::error::RemoteError;
use crate::ssh::Access;
use crate::turn::RemoteTurn;

/// Hosts reached by SSH whose settings are changed instead of this host's and the far end's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hosts {
    /// The host whose settings count as the near end's, if not this host.
    pub near: Option<Address>,
    /// The host whose settings count as the far end's, if goodput there does not change them.
    pub far: Option<Address>,
    /// How they are reached.
    pub access: Access,
    /// The process at each host that this run holds.
    held: Vec<(Address, u32)>,
}

impl Hosts {
    /// These hosts, none of which is held.
    pub fn new(near: Option<Address>, far: Option<Address>, access: Access) -> Self {
        Self { near, far, access, held: Vec::new() }
    }

    /// The host that takes the place of an end, if any.
    pub fn at(&self, end: EndName) -> Option<&Address> {
        match end {
            EndName::Near => self.near.as_ref(),
            EndName::Far => self.far.as_ref(),
        }
    }

    /// The same, as commands name it.
    pub fn named(&self, end: EndName) -> Option<String> {
        self.at(end).map(ToString::to_string)
    }

    /// Holds every host until its turn is dropped: other runs that want to change it are refused. Changes that
    /// [`Hosts::begin`] makes are not.
    ///
    /// # Errors
    /// As for [`RemoteChanges::begin`].
    pub fn hold(&mut self, state_dir: &Path) -> Result<Vec<RemoteTurn>, RemoteError> {
        let mut turns = Vec::new();
        for address in self.near.iter().chain(&self.far) {
            if self.held.iter().all(|(held, _)| held != address) {
                let turn = RemoteTurn::take(state_dir, address, &self.access)?;
                self.held.extend(turn.process().map(|process| (address.clone(), process)));
                turns.push(turn);
            }
        }
        Ok(turns)
    }

    /// Begins changes of a host, which this run may hold.
    ///
    /// # Errors
    /// As for [`RemoteChanges::begin`].
    pub fn begin(&self, state_dir: &Path, address: &Address) -> Result<RemoteChanges, RemoteError> {
        let held = self.held.iter().find(|(held, _)| held == address);
        let process = held.map(|(_, process)| *process);
        RemoteChanges::begin_held(state_dir, address, &self.access, process)
    }
}
