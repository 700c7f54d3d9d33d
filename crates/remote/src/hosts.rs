//! Which hosts take the place of the ends of a measurement, and which of them this run holds.

use std::path::Path;

use goodput_model::EndName;

use crate::address::Address;
use crate::changes::RemoteChanges;
use crate::error::RemoteError;
use crate::ssh::{Access, DeadManId};
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
    held: Vec<(Address, DeadManId)>,
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

    /// The hosts of a run that changes settings of these ends. If one name stands for both ends, it stands only for the end
    /// that is changed: nothing is changed there for the other end, and what the host counts would count twice.
    ///
    /// # Errors
    /// [`RemoteError::BothEnds`] if one name stands for both, and both are changed. Nobody logs in for it.
    pub fn of_changes(&self, ends: &[EndName]) -> Result<Self, RemoteError> {
        let mut hosts = self.clone();
        if self.check().is_err() {
            match ends {
                [EndName::Near] => hosts.far = None,
                [EndName::Far] => hosts.near = None,
                [] => {}
                _ => self.check()?,
            }
        }
        Ok(hosts)
    }

    /// Refuses one name for both ends. Nobody logs in for it.
    ///
    /// # Errors
    /// [`RemoteError::BothEnds`].
    pub fn check(&self) -> Result<(), RemoteError> {
        match (&self.near, &self.far) {
            (Some(near), Some(far)) if near.is_same(far) => {
                Err(RemoteError::BothEnds { names: format!("--near and --far name {far}") })
            }
            _ => Ok(()),
        }
    }

    /// Holds every host until its turn is dropped: other runs that want to change it are refused. Changes that
    /// [`Hosts::begin`] makes are not.
    ///
    /// # Errors
    /// As for [`RemoteChanges::begin`], and if both ends are one host.
    pub fn hold(&mut self, state_dir: &Path) -> Result<Vec<RemoteTurn>, RemoteError> {
        self.check()?;
        let mut turns: Vec<RemoteTurn> = Vec::new();
        // Whichever ends they stand for, all runs take hosts in one order: each of two would keep the other from its second.
        let mut addresses: Vec<_> = self.near.iter().chain(&self.far).collect();
        addresses.sort();
        for address in addresses {
            let turn = RemoteTurn::take(state_dir, address, &self.access, &mut turns)?;
            self.held.extend(turn.process().map(|process| (address.clone(), process)));
            turns.push(turn);
        }
        Ok(turns)
    }

    /// Begins changes of a host, which this run may hold. The run is changing the `others`.
    ///
    /// # Errors
    /// As for [`RemoteChanges::begin`], and if the host is one of the `others` or can't be told from it.
    pub fn begin<'a>(
        &self,
        state_dir: &Path,
        address: &Address,
        others: impl IntoIterator<Item = &'a mut RemoteChanges>,
    ) -> Result<RemoteChanges, RemoteError> {
        let held = self.held.iter().find(|(held, _)| held == address);
        let process = held.map(|(_, process)| process.clone());
        RemoteChanges::begin_held(state_dir, address, &self.access, process, others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_for_both_ends_is_refused_without_a_login() {
        let folder = tempfile::tempdir().unwrap();
        let at = |text: &str| Some(text.parse().unwrap());
        let hosts = |near, far| Hosts::new(at(near), at(far), Access::default());
        // No login is possible there (RFC 6761, section 6.4).
        let error = hosts("ssh://A.invalid", "ssh://a.invalid").hold(folder.path()).err().unwrap();
        assert!(matches!(error, RemoteError::BothEnds { .. }), "{error}");
        let said = error.to_string();
        assert!(said.contains("ssh://a.invalid") && said.contains("leave out --near"), "{said}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        for far in ["ssh://b", "ssh://root@a", "ssh://a:2222"] {
            hosts("ssh://a", far).check().unwrap();
        }
        Hosts::new(at("ssh://a"), None, Access::default()).check().unwrap();
    }

    #[test]
    fn one_name_for_both_ends_is_fine_if_only_one_of_them_is_changed() {
        let at = |text: &str| Some(text.parse().unwrap());
        let [near, far] = [EndName::Near, EndName::Far];
        let one = Hosts::new(at("ssh://a"), at("ssh://a"), Access::default());
        assert!(matches!(one.of_changes(&[near, far]), Err(RemoteError::BothEnds { .. })));
        let named = |hosts: Hosts| [near, far].map(|end| hosts.named(end));
        let a = || Some("ssh://a".to_owned());
        assert_eq!(named(one.of_changes(&[near]).unwrap()), [a(), None]);
        assert_eq!(named(one.of_changes(&[far]).unwrap()), [None, a()]);
        let two = Hosts::new(at("ssh://a"), at("ssh://b"), Access::default());
        for ends in [&[near, far][..], &[near], &[]] {
            assert_eq!(two.of_changes(ends).unwrap(), two);
        }
    }
}
