//! A host with a login session, and the system it runs.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use goodput_model::{EndName, SettingRef, Snapshot};

use crate::address::Address;
use crate::awaited::Notify;
use crate::error::RemoteError;
use crate::saved::{self, Removed, SavedThere};
use crate::shell::Shell;
use crate::ssh::{Access, DeadMan, DeadManId, Session};
use crate::system::{Listed, System};
use crate::systems;

/// A host reached by SSH.
pub struct Host {
    pub(crate) session: Session,
    pub(crate) system: &'static dyn System,
    /// Output that differs after a reboot, and in another network namespace or jail there, as far as the host knows.
    pub(crate) identity: Vec<String>,
    /// Distinguishes this machine from another one that answers at the same name, if the host reports this.
    pub(crate) machine: Option<String>,
    pub(crate) address: Address,
    pub(crate) access: Access,
    /// How long it took to log in and to ask the host who it is.
    pub(crate) opened_in: Duration,
    /// The process there that puts back what this session changes, and by which others see it; see [`Host::stand_by`].
    pub(crate) dead_man: Option<DeadMan>,
    /// The process there by which this run holds the host (`RemoteTurn`), if it does.
    pub(crate) held_by: Option<DeadManId>,
    /// Is told what is waited for there.
    pub(crate) notify: Notify,
    /// Logs in once more.
    pub(crate) login: Login,
}

/// Logs in once more.
type Login = Box<dyn Fn() -> Result<Session, RemoteError> + Send>;

impl Host {
    /// Logs in and finds out which system the host runs.
    ///
    /// # Errors
    /// When there is no login, or the system is not one that goodput knows.
    pub fn open(address: &Address, access: &Access) -> Result<Self, RemoteError> {
        let (to, by) = (address.clone(), access.clone());
        Self::through(Box::new(move || Session::open(&to, &by)), address, access)
    }

    /// The host that `login` leads to.
    pub(crate) fn through(
        login: Login,
        address: &Address,
        access: &Access,
    ) -> Result<Self, RemoteError> {
        let began = Instant::now();
        let mut session = login()?;
        let system = systems::of(&mut session)?;
        let identity = system.identity();
        let words = identity.iter().map(|command| session.output(command));
        let words = words.map(|words| words.map(|text| text.trim().to_owned()));
        let identity = words.collect::<Result<_, _>>()?;
        let machine = session.output(&system.machine())?.trim().to_owned();
        let machine = Some(machine).filter(|machine| is_an_id(machine));
        let (address, access) = (address.clone(), access.clone());
        let opened_in = began.elapsed();
        let (dead_man, held_by) = (None, None);
        Ok(Self {
            session,
            system,
            identity,
            machine,
            address,
            access,
            opened_in,
            dead_man,
            held_by,
            notify: Notify::default(),
            login,
        })
    }

    /// From now on, tells what is waited for there.
    #[must_use]
    pub fn notifying(self, notify: &Notify) -> Self {
        Self { notify: notify.clone(), ..self }
    }

    /// Its place in the order in which every run takes hosts, under whatever names: that of what they report about themselves.
    /// Names tell hosts apart that report the same.
    pub(crate) fn place(&self) -> (&[String], Option<&str>, &Address) {
        (&self.identity[..], self.machine.as_deref(), &self.address)
    }

    /// Another session at the same host.
    pub(crate) fn again(&self) -> Result<Session, RemoteError> {
        (self.login)()
    }

    /// Goes on with another session.
    pub(crate) fn renew(&mut self) -> Result<(), RemoteError> {
        self.session = self.again()?;
        self.dead_man = None;
        Ok(())
    }

    /// Starts the process there that puts back what this session changes, if it is not there yet. Whoever is about to
    /// change the host starts it before it looks for others, so that they see it, too.
    pub(crate) fn stand_by(&mut self) -> Result<DeadMan, RemoteError> {
        if let Some(known) = &self.dead_man {
            return Ok(known.clone());
        }
        let dead_man = DeadMan::start(&mut self.session)?;
        Ok(self.dead_man.insert(dead_man).clone())
    }

    /// How the user names it.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The name of its system.
    pub fn system(&self) -> &'static str {
        self.system.name()
    }

    /// The effective value of a setting now.
    ///
    /// # Errors
    /// When the host has no such setting, or what it prints is not understood.
    pub fn read(&mut self, setting: &SettingRef) -> Result<String, RemoteError> {
        self.system.read(&mut self.session, &its_own(setting)?)
    }

    /// The queueing discipline of the device through which packets leave it `towards` an address.
    ///
    /// # Errors
    /// As for [`crate::Watch::shaper`].
    pub fn shaper(&mut self, towards: IpAddr) -> Result<Snapshot, RemoteError> {
        self.system.shaper(&mut self.session, towards)
    }

    /// Its settings, and those of the device through which packets leave it `towards` an address, as facts.
    ///
    /// # Errors
    /// As for [`crate::Watch::facts`].
    pub fn facts(&mut self, towards: Option<IpAddr>) -> Result<Snapshot, RemoteError> {
        self.system.facts(&mut self.session, towards)
    }

    /// Refuses a value that no file there can keep, or whose file can't be written: the disk is full, or read-only.
    ///
    /// # Errors
    /// With the reason, and what to do.
    pub fn rehearse_save(&mut self, setting: &SettingRef, value: &str) -> Result<(), RemoteError> {
        let assignment = (its_own(setting)?, value.to_owned());
        saved::rehearse(self.system, &mut self.session, &[assignment])
    }

    /// The lines of ours there that keep values over a reboot, including edited ones.
    ///
    /// # Errors
    /// When the connection is lost, or a file can't be read.
    pub fn saved(&mut self) -> Result<Vec<SavedThere>, RemoteError> {
        saved::saved(self.system, &mut self.session)
    }

    /// Removes the lines that nobody has edited. Returns all of our lines with the outcome for each.
    ///
    /// # Errors
    /// When the connection is lost, or a file can't be read.
    pub fn remove_saved(&mut self) -> Result<Vec<Removed>, RemoteError> {
        saved::remove(self.system, &mut self.session)
    }

    /// What can be changed there, with the values now.
    ///
    /// # Errors
    /// When the connection is lost, or what the host prints is not understood.
    pub fn list(&mut self) -> Result<Vec<Listed>, RemoteError> {
        self.system.list(&mut crate::look::Look::new(&mut self.session))
    }
}

/// Whether it tells machines apart: a jail without an id of its own has zeros (jail(8), `host.hostuuid`), and a machine that
/// starts for the first time has no id yet (machine-id(5)).
pub(crate) fn is_an_id(machine: &str) -> bool {
    machine != "uninitialized" && machine.chars().any(|c| c != '0' && c != '-')
}

/// On the host itself, its own settings belong to the near end.
///
/// # Errors
/// If the setting lacks the device, class or route that it needs.
pub(crate) fn its_own(setting: &SettingRef) -> Result<SettingRef, RemoteError> {
    goodput_settings::check_scope(setting)?;
    Ok(SettingRef { end: EndName::Near, ..setting.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_has_no_id_is_told_from_no_other_one() {
        for none in ["", "uninitialized", "00000000-0000-0000-0000-000000000000", "0"] {
            assert!(!is_an_id(none), "{none}");
        }
        for id in ["564d1f4a-0000-0000-0000-000000000001", "0b2f61c7e1b84a3aa45a4a9d3c6a7e21"] {
            assert!(is_an_id(id), "{id}");
        }
    }
}
