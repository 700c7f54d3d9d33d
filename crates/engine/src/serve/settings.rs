//! Changes of this host's settings that a client with the token asked for. They last no longer
//! than its session.

use std::path::PathBuf;

use goodput_settings::{Changes, GuardProgram, SettingError};
use goodput_wire::session::{SettingRefusal, SettingRequest};

/// The changes of one session, none so far.
pub struct SessionSettings {
    state_dir: PathBuf,
    changes: Option<Changes>,
}

impl SessionSettings {
    /// Nothing changed yet; the journal will be in `state_dir`.
    pub fn new(state_dir: PathBuf) -> Self {
        Self { state_dir, changes: None }
    }

    /// Carries out a request; the effective value, or a word that it is done.
    pub fn carry_out(&mut self, request: &SettingRequest) -> Result<String, SettingRefusal> {
        let done = match request {
            SettingRequest::Read(setting) => goodput_settings::read(setting),
            SettingRequest::Apply(setting, value) => {
                self.changes().and_then(|changes| changes.apply(setting, value))
            }
            SettingRequest::Restore => return self.restore(),
        };
        done.map_err(|error| SettingRefusal {
            not_permitted: error.not_permitted(),
            why: error.to_string(),
        })
    }

    /// Puts everything back.
    pub fn restore(&mut self) -> Result<String, SettingRefusal> {
        let Some(mut changes) = self.changes.take() else {
            return Ok("nothing was changed".into());
        };
        let report = changes.restore();
        if report.is_clean() {
            return Ok("put back".into());
        }
        Err(SettingRefusal { not_permitted: false, why: report.to_string() })
    }

    fn changes(&mut self) -> Result<&mut Changes, SettingError> {
        if self.changes.is_none() {
            self.changes = Some(Changes::begin(&self.state_dir, GuardProgram::current())?);
        }
        Ok(self.changes.as_mut().expect("was made above where it was not there"))
    }
}
