//! What dead runs left changed at hosts, as far as the journals here say. Nobody logs in for it.

use std::fmt;
use std::path::Path;

use goodput_model::SettingRef;
use goodput_settings::JournalContents;

use crate::journal::{Found, all};

/// What a dead run may have left changed at a host: that host puts it back by itself if it can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftThere {
    /// The host, as `ssh://…`; `None` if the journal is damaged and does not name it.
    pub host: Option<String>,
    /// The settings that the journal would put back; empty if it can't be read, or is only about files.
    pub settings: Vec<SettingRef>,
    /// Why the journal can't be used, if so.
    pub problem: Option<String>,
}

impl fmt::Display for LeftThere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings: Vec<_> = self.settings.iter().map(ToString::to_string).collect();
        let what = if settings.is_empty() { "something".into() } else { settings.join(", ") };
        let host = self.host.as_deref().unwrap_or("a host reached by SSH");
        write!(f, "{host}: an interrupted run may have left {what} changed")?;
        match &self.problem {
            Some(problem) => write!(f, ", and its journal can't be used: {problem}"),
            None => Ok(()),
        }
    }
}

/// What dead runs may have left changed at hosts, by the journals in `state_dir`. Changes nothing. Journals of live runs,
/// and those without a change, are left out.
pub fn leftovers(state_dir: &Path) -> Vec<LeftThere> {
    let left = all(state_dir).filter_map(|found| match found {
        Ok(found) => of(&found),
        Err((path, cause)) => {
            let problem = Some(format!("{}: {cause}", path.display()));
            Some(LeftThere { host: None, settings: Vec::new(), problem })
        }
    });
    left.collect()
}

fn of(found: &Found) -> Option<LeftThere> {
    let contents = &found.text.says;
    let problem = found.problem().map(|why| format!("{}: {why}", found.path.display()));
    let settings: Vec<_> =
        contents.entries.iter().map(|entry| entry.main.setting.clone()).collect();
    let is_over = found.journal.is_none() || contents.is_empty() && problem.is_none();
    let host = contents.owner.as_ref().map(|owner| owner.host.clone());
    (!is_over).then_some(LeftThere { host, settings, problem })
}
