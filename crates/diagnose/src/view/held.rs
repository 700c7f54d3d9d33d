//! The limits of an operator that held this side's flows.

use goodput_model::{HeldTo, Missing};

use super::{Side, positive};

impl<'a> Side<'a> {
    /// The limit that held this side's flows longest, and for which share of the time, the mean of all flows;
    /// `None` if none held them.
    pub fn held_to(&self) -> Result<Option<(&'a HeldTo, f64)>, Missing> {
        let end = self.end()?;
        let untold =
            || Missing::because(format!("the {} end does not report its limits", self.name));
        let held = end.held_to.as_ref().ok_or_else(untold)?;
        let own = held.iter().filter(|held| held.role == self.role);
        let Some(longest) = own.max_by_key(|held| held.held_us) else { return Ok(None) };
        let lasted_s = positive(end.last_sample().map_or(0.0, |last| last.at_s), "the duration")?;
        let share =
            longest.held_us as f64 / 1e6 / positive(self.flow_count()?, "flows")? / lasted_s;
        Ok(Some((longest, share)))
    }
}
