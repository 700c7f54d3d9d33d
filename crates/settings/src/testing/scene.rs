//! One `test.file` and a place for journals.

use std::fs;
use std::path::PathBuf;

use goodput_model::{EndName, SettingRef};

use super::{SETTING, Victim, folder, guard};
use crate::{Changes, SettingError};

/// A directory with one `test.file`, which holds `a`, and a place for journals.
pub(crate) struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let scene = Self { folder: folder() };
        scene.set("a");
        scene
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("value")
    }

    pub(crate) fn setting(&self) -> SettingRef {
        let scope = Some(self.file().to_str().unwrap().into());
        SettingRef { end: EndName::Near, name: SETTING.id.into(), scope }
    }

    pub(crate) fn set(&self, value: &str) {
        fs::write(self.file(), value).unwrap();
    }

    pub(crate) fn value(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    pub(crate) fn begin(&self) -> Changes {
        self.try_to_begin().unwrap()
    }

    pub(crate) fn try_to_begin(&self) -> Result<Changes, SettingError> {
        Changes::begin(&self.state_dir(), guard())
    }

    /// Names of the journals that are not closed.
    pub(crate) fn journals(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.state_dir()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        // Beside them is the log.
        paths.filter(|path| path.to_string_lossy().ends_with(".journal.jsonl")).collect()
    }

    /// A process that applies `values` one after the other, and kills itself after this many steps.
    pub(crate) fn victim(&self, values: &[&str], kill_after: i64) -> Victim {
        let setting = self.setting();
        let job: Vec<String> = values.iter().map(|value| format!("{setting}={value}")).collect();
        Victim::start(&self.state_dir(), &job, kill_after)
    }

    /// The journal of a run that applied `values` and was then killed with its guard.
    pub(crate) fn journal_of_killed(&self, values: &[&str]) -> PathBuf {
        let mut victim = self.victim(values, -1);
        victim.wait_until_applied();
        victim.kill_with_guard();
        self.journals().pop().unwrap()
    }
}
