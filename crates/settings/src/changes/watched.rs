//! Settings that a run has looked at and not changed yet. Another one of the run may drag them along before; what they
//! are then is no original.

use goodput_model::SettingRef;

use crate::beside::Values;

/// A setting as it was when the run first looked at it.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) setting: SettingRef,
    /// Its value.
    pub(super) value: String,
    /// The same with everything it takes to make it exactly so again.
    pub(super) exact: String,
    /// What other settings of the run made of it since.
    dragged: Vec<Option<String>>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct AllWatched(Vec<Watched>);

impl AllWatched {
    /// Watches a setting from now on; one that is watched stays as it was first.
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

    /// Other settings of the run made this of some of them.
    pub(super) fn drag(&mut self, altered: &Values) {
        for (setting, value) in altered {
            let watched = self.0.iter_mut().find(|watched| watched.setting == *setting);
            watched.into_iter().for_each(|watched| watched.dragged.push(value.clone()));
        }
    }

    /// How a setting was before the run, if nobody else has changed it since: it is `now` as this run made it.
    pub(super) fn before(&self, setting: &SettingRef, now: &str) -> Option<&Watched> {
        let watched = self.0.iter().find(|watched| watched.setting == *setting)?;
        let is_ours = watched.dragged.iter().any(|value| value.as_deref() == Some(now));
        is_ours.then_some(watched)
    }
}
