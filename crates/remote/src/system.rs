//! What goodput has to know about an operating system to change its settings by its own programs.

use goodput_model::{EndName, Permanent, SettingRef};

use crate::command::{Command, Condition};
use crate::counters::Counters;
use crate::error::RemoteError;
use crate::keeper::Keeper;
use crate::polling::PollingRates;
use crate::shell::Shell;

/// A setting that a host has, for lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name as one would type it, `@` and the device included.
    pub setting: String,
    /// The value in effect.
    pub value: String,
    /// What it is, in a few words.
    pub meaning: String,
}

/// What an operating system tells of itself while something is measured. Nothing here changes a host.
pub trait Watch: Sync {
    /// What the host has counted since its start: CPU time, and interrupts and packets of `device`, if it is named.
    ///
    /// # Errors
    /// When the connection is lost. What the host does not tell is missing.
    fn counters(
        &self,
        shell: &mut dyn Shell,
        device: Option<&str>,
    ) -> Result<Counters, RemoteError>;

    /// How the host polls `device` instead of taking interrupts; `None` if it does not, or the system can't.
    ///
    /// # Errors
    /// When the connection is lost, or what the host prints is not understood.
    fn polling(
        &self,
        _shell: &mut dyn Shell,
        _device: &str,
    ) -> Result<Option<PollingRates>, RemoteError> {
        Ok(None)
    }
}

/// One operating system. Nothing here changes a host: what changes it is returned as a command, which is run
/// once the original is noted and the host itself can put it back.
///
/// Settings are named without `far:`; whose end the host is at is the caller's business.
pub trait System: Watch {
    /// Its name, as `uname -s` prints it.
    fn name(&self) -> &'static str;

    /// What can be changed there, with the values now.
    fn list(&self, shell: &mut dyn Shell) -> Result<Vec<Listed>, RemoteError>;

    /// The effective value now, in the form that [`System::normalise`] gives.
    ///
    /// # Errors
    /// When the host has no such setting, the command fails, or what it prints is not understood.
    fn read(&self, shell: &mut dyn Shell, setting: &SettingRef) -> Result<String, RemoteError>;

    /// What `value`, as a person wrote it, reads back as once it is effective; refuses a value that can't be.
    fn normalise(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
        value: &str,
    ) -> Result<String, RemoteError>;

    /// What makes `value`, a normalised one, the effective one. The host also runs these to put back an original,
    /// alone and possibly several times. May look at the state now: for an original it is asked before the change.
    fn write(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
        value: &str,
    ) -> Result<Vec<Command>, RemoteError>;

    /// What the host can ask itself to know whether `value`, a normalised one, is the effective one. All conditions of a
    /// setting ask the same command.
    fn holds(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
        value: &str,
    ) -> Result<Condition, RemoteError>;

    /// Refuses to replace the value now if it would not come back exactly as it is. Asked before the first change
    /// only.
    fn comes_back(&self, _shell: &mut dyn Shell, _setting: &SettingRef) -> Result<(), RemoteError> {
        Ok(())
    }

    /// Other settings that the system may alter along with this one. All of them are noted and put back with it.
    fn coupled(
        &self,
        _shell: &mut dyn Shell,
        _setting: &SettingRef,
    ) -> Result<Vec<SettingRef>, RemoteError> {
        Ok(Vec::new())
    }

    /// Values that a change from one to the other leaves if it is cut short, if any.
    fn half_way(&self, _setting: &SettingRef, _one: &str, _other: &str) -> Vec<String> {
        Vec::new()
    }

    /// In words, that what a setting belongs to is no longer there: its device, its route, its parameter. Whatever was
    /// changed of it is gone as well.
    ///
    /// # Errors
    /// When the connection is lost, or what the host prints is not understood.
    fn gone(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
    ) -> Result<Option<String>, RemoteError>;

    /// Whether a change may cut the connection to the host. Such a change is put back by the host unless it is
    /// confirmed over the connection soon.
    fn may_cut(&self, setting: &SettingRef) -> bool;

    /// Commands that print what differs after a reboot, and in another network namespace or jail of the host. A
    /// reboot has undone every change.
    fn identity(&self) -> Vec<Command>;

    /// A command that prints what tells the machine from every other one and outlives a reboot; nothing if it has no such
    /// thing.
    fn machine(&self) -> Command;

    /// Process ids there whose command line contains `mark`, other than the asking process itself; only those in the
    /// same network namespace or jail.
    fn processes(&self, shell: &mut dyn Shell, mark: &str) -> Result<Vec<u32>, RemoteError>;

    /// The files that may have lines of ours, which keep values over a reboot.
    fn keepers(&self) -> &'static [Keeper];

    /// The files that make `value` of `setting` outlive a reboot there.
    fn permanent(&self, setting: &SettingRef, value: &str) -> Vec<Permanent> {
        // Of another host: what only that one knows, as hardware addresses, is left open.
        let far = SettingRef { end: EndName::Far, ..setting.clone() };
        let files = goodput_settings::permanent(&far, value).unwrap_or_default();
        files.into_iter().filter(|file| !file.file.starts_with("FreeBSD ")).collect()
    }
}
