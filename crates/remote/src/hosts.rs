//! Which hosts take the place of the ends of a measurement, and which of them this run holds.

use std::path::Path;

use goodput_model::EndName;

use crate::address::Address;
use crate::awaited::Notify;
use crate::changes::RemoteChanges;
use crate::error::RemoteError;
use crate::host::Host;
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

    /// Logs in at the hosts that stand for these ends, and takes none yet. `notify` is told what is waited for there.
    ///
    /// # Errors
    /// When there is no login, or [`RemoteError::BothEnds`].
    pub fn log_in(&self, ends: &[EndName], notify: &Notify) -> Result<InOrder, RemoteError> {
        self.check()?;
        let addresses = ends.iter().filter_map(|end| self.at(*end));
        let hosts = addresses.map(|address| Ok(self.open(address)?.notifying(notify)));
        let hosts: Vec<Host> = hosts.collect::<Result<_, RemoteError>>()?;
        match hosts.is_empty() {
            true => Ok(InOrder::default()),
            false => Ok(InOrder::of(hosts, &goodput_settings::identity_here()?)),
        }
    }

    /// Holds hosts until their turns are dropped: other runs that want to change them are refused. Changes that
    /// [`Hosts::begin`] makes are not. The run holds the `turns` already, which get the new ones.
    ///
    /// # Errors
    /// As for [`RemoteChanges::begin`], and if one host stands for both ends.
    pub fn hold(
        &mut self,
        state_dir: &Path,
        hosts: Vec<Host>,
        turns: &mut Vec<RemoteTurn>,
    ) -> Result<(), RemoteError> {
        for host in hosts {
            let address = host.address.clone();
            let turn = RemoteTurn::take(state_dir, host, turns)?;
            self.held.extend(turn.process().map(|process| (address, process)));
            turns.push(turn);
        }
        Ok(())
    }

    /// A session at a host, which this run may hold.
    ///
    /// # Errors
    /// When there is no login.
    pub fn open(&self, address: &Address) -> Result<Host, RemoteError> {
        let mut host = Host::open(address, &self.access)?;
        let held = self.held.iter().find(|(held, _)| held == address);
        host.held_by = held.map(|(_, process)| process.clone());
        Ok(host)
    }

    /// Begins changes of a host. The run is changing the `others`.
    ///
    /// # Errors
    /// As for [`RemoteChanges::begin`], and if the host is one of the `others` or can't be told from it.
    pub fn begin<'a>(
        state_dir: &Path,
        host: Host,
        others: impl IntoIterator<Item = &'a mut RemoteChanges>,
    ) -> Result<RemoteChanges, RemoteError> {
        RemoteChanges::begin_beside(state_dir, host, others)
    }
}

/// A part of the order in which a run takes hosts.
#[derive(Default)]
pub struct Leg {
    /// Those that are taken first.
    pub before_here: Vec<Host>,
    /// Whether this host is taken next, if the run changes it.
    pub here: bool,
    /// Those that are taken last.
    pub after_here: Vec<Host>,
}

impl From<InOrder> for Leg {
    /// All of them.
    fn from(order: InOrder) -> Self {
        Self { before_here: order.before_here, here: true, after_here: order.after_here }
    }
}

/// Hosts to which this run has logged in, in the order in which every run takes hosts, whichever ends they stand for and
/// whatever names they have. In another order, each of two runs could keep the other from its second host.
#[derive(Default)]
pub struct InOrder {
    /// Those that are taken before this host is.
    pub before_here: Vec<Host>,
    /// Those that are taken after it.
    pub after_here: Vec<Host>,
}

impl InOrder {
    /// Splits off those that are taken after a host that reports `place` about itself, and this host with them if it is one of
    /// them. Returns what is taken before that host, and what after.
    pub fn split(mut self, place: &[String], here: &[String]) -> [Leg; 2] {
        let is_before = |host: &Host| &host.identity[..] < place;
        let of = |before_here, here, after_here| Leg { before_here, here, after_here };
        match place < here {
            true => {
                let behind = self.before_here.partition_point(is_before);
                let behind = self.before_here.split_off(behind);
                [of(self.before_here, false, Vec::new()), of(behind, true, self.after_here)]
            }
            false => {
                let behind = self.after_here.partition_point(is_before);
                let behind = self.after_here.split_off(behind);
                [of(self.before_here, true, self.after_here), of(Vec::new(), false, behind)]
            }
        }
    }

    /// `here` is what this host reports about itself.
    pub(crate) fn of(mut hosts: Vec<Host>, here: &[String]) -> Self {
        hosts.sort_by(|one, other| one.place().cmp(&other.place()));
        let after_here = hosts.split_off(hosts.partition_point(|host| &host.identity[..] < here));
        Self { before_here: hosts, after_here }
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
        let one = hosts("ssh://A.invalid", "ssh://a.invalid");
        let both = [EndName::Near, EndName::Far];
        let error = one.log_in(&both, &Notify::default()).err().unwrap();
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
    fn this_host_comes_before_or_behind_a_host_by_what_both_report() {
        let words = |boot: &str| [boot.to_owned(), "net:[1]".to_owned()];
        let here = words("m");
        let is_first = |place: &str| {
            let [first, then] = InOrder::default().split(&words(place), &here);
            assert!(first.here != then.here, "it is taken once");
            first.here
        };
        assert!(is_first("z") && !is_first("a"));
        assert!(is_first("m"), "it is this host itself");
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
