//! What goodput needs to know about an operating system to change its settings with the system's own programs.

use std::net::IpAddr;

use goodput_model::{EndName, Permanent, SettingRef, Snapshot};
use goodput_settings::Assignment;

use crate::awaited::Whose;
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
    /// What the setting is, in a few words.
    pub meaning: String,
}

/// A process at a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Whether root or the user of the login started it: anybody can give a process any command line.
    pub trusted: bool,
    /// When it began, in whatever the host counts: of two, the smaller number is the earlier one. `None` if it is unknown.
    pub started: Option<u64>,
}

impl Process {
    /// Its place among the processes of its host in the order in which they began. Everyone there sees the same order.
    pub(crate) fn place(&self) -> (Option<u64>, u32) {
        (self.started, self.pid)
    }
}

/// What an operating system reports about itself during a measurement. Nothing here changes a host.
pub trait Watch: Sync {
    /// The host's counts since its start: CPU time, and, if `device` is named, its interrupts and packets.
    ///
    /// # Errors
    /// When the connection is lost. Counts that the host does not report are missing.
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

    /// The queueing discipline of the device through which packets leave `towards` an address, with its classes and
    /// counters. The facts have the names of those that goodput reads on its own host.
    ///
    /// # Errors
    /// When the connection is lost, a program is missing or not permitted, what it prints is not understood, or goodput
    /// does not know the disciplines of this system.
    fn shaper(&self, shell: &mut dyn Shell, _towards: IpAddr) -> Result<Snapshot, RemoteError> {
        Err(RemoteError::NoShaper { host: shell.host().to_owned() })
    }

    /// The settings of the host, and of the device through which packets leave `towards` an address, with the names of the
    /// facts that goodput reads on its own host. What can't be read is missing, with the reason. There are no counters
    /// among them.
    ///
    /// # Errors
    /// When the connection is lost.
    fn facts(
        &self,
        shell: &mut dyn Shell,
        towards: Option<IpAddr>,
    ) -> Result<Snapshot, RemoteError>;
}

/// One operating system. Nothing here changes a host: changes are returned as commands, which are run
/// once the original is noted and the host itself can put it back.
///
/// Settings are named without `far:`; the caller knows which end the host is at.
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

    /// What `value`, as a person wrote it, reads back as once it is effective; refuses an invalid value.
    fn normalise(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
        value: &str,
    ) -> Result<String, RemoteError>;

    /// The commands that make the normalised `value` effective. The host also runs them to put back an original,
    /// alone and possibly several times. May read the present state: for an original, this is called before the change.
    fn write(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
        value: &str,
    ) -> Result<Vec<Command>, RemoteError>;

    /// The condition by which the host itself can check whether the normalised `value` is effective. All conditions of
    /// a setting ask the same command.
    fn holds(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
        value: &str,
    ) -> Result<Condition, RemoteError>;

    /// Refuses a value, as a person wrote it, that the kernel there would refuse once `earlier` is in effect, as far as
    /// that can be tried without a change. Asked once for each value, and not about the value from before the run.
    ///
    /// # Errors
    /// With the values that the kernel takes, if they are known, or when the connection is lost.
    fn check_new(
        &self,
        _shell: &mut dyn Shell,
        _setting: &SettingRef,
        _value: &str,
        _earlier: &[Assignment],
    ) -> Result<(), RemoteError> {
        Ok(())
    }

    /// Whether writing the value that is in effect still changes something that packets meet, like the tokens in a
    /// bucket.
    fn starts_anew(
        &self,
        _shell: &mut dyn Shell,
        _setting: &SettingRef,
    ) -> Result<bool, RemoteError> {
        Ok(false)
    }

    /// Refuses to replace the present value if it could not be put back exactly. Asked only before the first
    /// change.
    fn comes_back(&self, _shell: &mut dyn Shell, _setting: &SettingRef) -> Result<(), RemoteError> {
        Ok(())
    }

    /// What the host said when it refused `value`, with what this means if that is known.
    fn explained(
        &self,
        _shell: &mut dyn Shell,
        _setting: &SettingRef,
        _value: &str,
        refusal: RemoteError,
    ) -> RemoteError {
        refusal
    }

    /// Other settings that the system may alter along with this one. All of them are noted and put back with it.
    fn coupled(
        &self,
        _shell: &mut dyn Shell,
        _setting: &SettingRef,
    ) -> Result<Vec<SettingRef>, RemoteError> {
        Ok(Vec::new())
    }

    /// Values that an interrupted change from one to the other may leave, if any.
    fn half_way(&self, _setting: &SettingRef, _one: &str, _other: &str) -> Vec<String> {
        Vec::new()
    }

    /// The setting that makes or removes the object of this one: the parameters of a discipline come and go with its kind.
    /// What this run has made needs no putting back once that setting is back.
    fn made_by(&self, _setting: &SettingRef) -> Option<SettingRef> {
        None
    }

    /// Why the object of a setting (its device, route, discipline or parameter) is gone, in words. Changes of it
    /// are gone as well.
    ///
    /// # Errors
    /// When the connection is lost, or what the host prints is not understood.
    fn gone(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
    ) -> Result<Option<String>, RemoteError>;

    /// Whether a change may cut the connection to the host. The host puts such a change back unless it is
    /// soon confirmed over the connection.
    fn may_cut(&self, setting: &SettingRef) -> bool;

    /// Commands whose output differs after a reboot, and in another network namespace or jail of the host, as far as the
    /// system knows. A reboot has undone every change. Later versions of goodput may ask for more, at the end.
    fn identity(&self) -> Vec<Command>;

    /// A command that prints which processes a login sees: two logins at one place of a host for which it prints the same see
    /// the same.
    fn viewpoint(&self) -> Command;

    /// A command that prints an identity of the machine, unique and the same after a reboot; nothing if the system has
    /// none.
    fn machine(&self) -> Command;

    /// Processes there whose command line contains `mark`, other than the asking process itself; only those in the same
    /// network namespace or jail.
    fn processes(&self, shell: &mut dyn Shell, mark: &str) -> Result<Vec<Process>, RemoteError>;

    /// Whether a guard or a dead-man there puts back what a run left: the run is over, or has said so in its journal. No if
    /// that is unknown.
    fn is_putting_back(&self, _shell: &mut dyn Shell, _pid: u32) -> Result<bool, RemoteError> {
        Ok(false)
    }

    /// Who started a process there, and when; `None` if it has ended, or if that is unknown.
    fn whose(&self, _shell: &mut dyn Shell, _pid: u32) -> Result<Option<Whose>, RemoteError> {
        Ok(None)
    }

    /// The files there that may contain lines of ours, which keep values over a reboot.
    ///
    /// # Errors
    /// If that can't be found out.
    fn keepers(&self, shell: &mut dyn Shell) -> Result<Vec<Keeper>, RemoteError>;

    /// The file at a path that [`Self::keeper`] has named, whether or not it is there.
    fn keeper_at(&self, path: &str) -> Keeper;

    /// Refuses a setting that no file there is about.
    ///
    /// # Errors
    /// With the reason, and what to do.
    fn check_savable(
        &self,
        _shell: &mut dyn Shell,
        _setting: &SettingRef,
    ) -> Result<(), RemoteError> {
        Ok(())
    }

    /// The values that our lines in a file keep and another file overrules at boot, with that file. What can't be read
    /// does not overrule.
    fn overruled(
        &self,
        _shell: &mut dyn Shell,
        _keeper: &Keeper,
        _keeps: &[(SettingRef, String)],
    ) -> Vec<(SettingRef, String)> {
        Vec::new()
    }

    /// The file that keeps all of `value` over a reboot.
    ///
    /// # Errors
    /// When the connection is lost, or no file there can.
    fn keeper(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
        value: &str,
    ) -> Result<Keeper, RemoteError>;

    /// The lines of that file that keep these values.
    ///
    /// # Errors
    /// When the connection is lost, or what the lines depend on is gone.
    fn lines(
        &self,
        shell: &mut dyn Shell,
        keeper: &Keeper,
        keeps: &[(SettingRef, String)],
    ) -> Result<String, RemoteError>;

    /// The files that make `value` of `setting` survive a reboot there.
    fn permanent(&self, setting: &SettingRef, value: &str) -> Vec<Permanent> {
        // For another host: what only that host knows, such as hardware addresses, is left open.
        let far = SettingRef { end: EndName::Far, ..setting.clone() };
        goodput_settings::permanent(&far, value).unwrap_or_default()
    }
}
