//! What every setting of Linux must define.

use goodput_model::SettingRef;
use goodput_settings::Assignment;

use crate::command::{Command, Condition};
use crate::error::RemoteError;
use crate::shell::Shell;

/// A setting at a host.
pub(super) struct At<'a> {
    /// The host.
    pub(super) shell: &'a mut dyn Shell,
    /// The setting; its name is the row's.
    pub(super) setting: &'a SettingRef,
}

impl At<'_> {
    /// The part after the `@`.
    pub(super) fn scope(&self) -> &str {
        self.setting.scope.as_deref().unwrap_or_default()
    }

    /// A line that is not as expected.
    pub(super) fn misread(&self, command: &Command, line: &str, expected: &str) -> RemoteError {
        misread(self.shell.host(), command, line, expected)
    }

    /// A setting that can't be changed there.
    pub(super) fn refused(&self, why: &str) -> RemoteError {
        refused(self.shell.host(), self.setting, why)
    }
}

/// The exit code of a script that reads a parameter, if the discipline that has it is not there.
pub(super) const NO_DISCIPLINE: i32 = 3;

/// One setting, or several that differ only in their names. The contract is that of [`crate::System`].
pub(super) trait Row: Sync {
    /// See [`crate::System::read`].
    fn read(&self, at: &mut At<'_>) -> Result<String, RemoteError>;
    /// See [`crate::System::normalise`].
    fn normalise(&self, at: &mut At<'_>, value: &str) -> Result<String, RemoteError>;
    /// See [`crate::System::write`].
    fn write(&self, at: &mut At<'_>, value: &str) -> Result<Vec<Command>, RemoteError>;
    /// See [`crate::System::holds`].
    fn holds(&self, at: &mut At<'_>, value: &str) -> Result<Condition, RemoteError>;

    /// See [`crate::System::check_new`].
    fn check_new(
        &self,
        _at: &mut At<'_>,
        _value: &str,
        _earlier: &[Assignment],
    ) -> Result<(), RemoteError> {
        Ok(())
    }

    /// See [`crate::System::comes_back`].
    fn comes_back(&self, _at: &mut At<'_>) -> Result<(), RemoteError> {
        Ok(())
    }

    /// See [`crate::System::starts_anew`].
    fn starts_anew(&self) -> bool {
        false
    }

    /// The command that reads a parameter of a discipline, and ends with [`NO_DISCIPLINE`] if that is not there; `None`
    /// for other settings.
    fn read_of_discipline(&self, _at: &At<'_>) -> Option<Command> {
        None
    }

    /// See [`crate::System::half_way`].
    fn half_way(&self, _one: &str, _other: &str) -> Vec<String> {
        Vec::new()
    }

    /// The files there that have its value, if other settings may be in them as well.
    fn files(&self, _setting: &SettingRef) -> Vec<String> {
        Vec::new()
    }

    /// Whether it belongs to a network device.
    fn of_device(&self) -> bool {
        false
    }

    /// Whether another setting of its device may change it.
    fn is_drawn(&self) -> bool {
        self.of_device()
    }

    /// Whether it may change other settings of its device.
    fn draws(&self) -> bool {
        self.of_device()
    }

    /// What the setting is, in a few words, from the registry of settings.
    fn meaning(&self, setting: &SettingRef) -> String {
        let far = SettingRef { end: goodput_model::EndName::Far, ..setting.clone() };
        goodput_settings::find_for(&far).map(|known| known.title.into()).unwrap_or_default()
    }
}

/// A line that is not as expected.
pub(super) fn misread(host: &str, command: &Command, line: &str, expected: &str) -> RemoteError {
    RemoteError::NotUnderstood {
        host: host.into(),
        command: command.shown(),
        line: line.into(),
        why: format!("goodput expected {expected}"),
    }
}

/// A setting that can't be changed at a host.
pub(super) fn refused(host: &str, setting: &SettingRef, why: &str) -> RemoteError {
    RemoteError::NoSuchSetting { host: host.into(), setting: setting.to_string(), why: why.into() }
}
