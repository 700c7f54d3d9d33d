//! Settings that a run has read but not changed yet. Another setting of the run may drag them along first; their values
//! are then no originals.

use goodput_model::SettingRef;

use crate::beside::Values;

/// A setting as it was when the run first looked at it.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) setting: SettingRef,
    /// Its value.
    pub(super) value: String,
    /// The same with everything needed to restore it exactly.
    pub(super) exact: String,
    /// Values that other settings of the run have given it since.
    dragged: Vec<Option<String>>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct AllWatched(Vec<Watched>);

impl AllWatched {
    /// Watches a setting from now on; a setting that is already watched keeps its first value.
    pub(super) fn add(&mut self, setting: &SettingRef, value: &str, exact: String) {
        if self.0.iter().all(|watched| watched.setting != *setting) {
            let (setting, value, dragged) = (setting.clone(), value.into(), Vec::new());
            self.0.push(Watched { setting, value, exact, dragged });
        }
    }

    /// The settings.
    pub(super) fn settings(&self) -> impl Iterator<Item = &SettingRef> {
        self.0.iter().map(|watched| &watched.setting)
    }

    /// The value of a setting when the run first looked at it.
    pub(super) fn first(&self, setting: &SettingRef) -> Option<&str> {
        let watched = self.0.iter().find(|watched| watched.setting == *setting)?;
        Some(&watched.value)
    }

    /// Notes the values that other settings of the run gave to some of them.
    pub(super) fn drag(&mut self, altered: &Values) {
        for (setting, value) in altered {
            let watched = self.0.iter_mut().find(|watched| watched.setting == *setting);
            watched.into_iter().for_each(|watched| watched.dragged.push(value.clone()));
        }
    }

    /// How a setting was before the run, if nobody else has changed it since: `now` is the value that this run made.
    pub(super) fn before(&self, setting: &SettingRef, now: &str) -> Option<&Watched> {
        let watched = self.0.iter().find(|watched| watched.setting == *setting)?;
        let is_ours = watched.dragged.iter().any(|value| value.as_deref() == Some(now));
        is_ours.then_some(watched)
    }
}
