//! One end in its role, and its samples within the measured window.

use std::cell::OnceCell;

use goodput_model::{End, EndName, Evidence, Fact, Missing, Role, Sample};

use super::Episodes;

/// One end in its role.
#[derive(Debug, Clone)]
pub struct Side<'a> {
    /// Which end it is.
    pub name: EndName,
    /// Its role.
    pub role: Role,
    end: Result<&'a End, Missing>,
    from_s: f64,
    to_s: f64,
    /// Whether its connections are the measurement's own, and not older.
    pub(super) is_fresh: bool,
    episodes: OnceCell<Result<Episodes<'a>, Missing>>,
}

impl<'a> Side<'a> {
    /// `window`: start and end of the measured time on this end's own samples, seconds.
    pub(super) fn new(
        evidence: &'a Evidence,
        name: EndName,
        role: Role,
        (from_s, to_s): (f64, f64),
    ) -> Self {
        let end = evidence.end(name);
        let is_fresh = !evidence.plan.only_watches();
        Self { name, role, end, from_s, to_s, is_fresh, episodes: OnceCell::new() }
    }

    /// The end's evidence.
    pub fn end(&self) -> Result<&'a End, Missing> {
        self.end.clone()
    }

    /// The episodes of loss, which `make` gives when they are first asked for.
    ///
    /// # Errors
    /// Those of `make`.
    pub(super) fn episodes_by(
        &self,
        make: impl FnOnce() -> Result<Episodes<'a>, Missing>,
    ) -> Result<&Episodes<'a>, Missing> {
        self.episodes.get_or_init(make).as_ref().map_err(Missing::clone)
    }

    /// Whether the end counted anything during the measurement. Of a host that serves by another program, only the settings
    /// may be known.
    pub fn is_sampled(&self) -> bool {
        self.end.as_ref().is_ok_and(|end| !end.samples.is_empty())
    }

    /// A whole number from before the first payload byte.
    pub fn count(&self, name: &str) -> Result<f64, Missing> {
        Ok(self.end()?.before.count(name)? as f64)
    }

    /// A number from before the first payload byte.
    pub fn number(&self, name: &str) -> Result<f64, Missing> {
        self.end()?.before.number(name)
    }

    /// A text from before the first payload byte.
    pub fn text(&self, name: &str) -> Result<&'a str, Missing> {
        self.end()?.before.text(name)
    }

    /// A fact in words, if it is known.
    pub fn words(&self, name: &str) -> Option<String> {
        match self.end().ok()?.before.get(name).ok()? {
            Fact::Count(count) => Some(count.to_string()),
            Fact::Real(real) => Some(real.to_string()),
            Fact::Text(text) => Some(text.clone()),
        }
    }

    /// How far a counter moved from before to after the measurement.
    pub fn grown(&self, name: &str) -> Result<u64, Missing> {
        let end = self.end()?;
        end.before.grown(&end.after, name)
    }

    /// Every sample of the window.
    pub(super) fn samples(&self) -> Result<impl Iterator<Item = &'a Sample> + use<'a>, Missing> {
        let (from_s, to_s) = (self.from_s, self.to_s);
        Ok(self.end()?.samples.iter().filter(move |s| s.at_s >= from_s && s.at_s <= to_s))
    }

    /// Whether an instant, seconds, is within the measured window.
    pub fn is_measured(&self, at_s: f64) -> bool {
        at_s >= self.from_s && at_s <= self.to_s
    }

    /// Start and end of the measured window, seconds.
    pub fn window_s(&self) -> (f64, f64) {
        (self.from_s, self.to_s)
    }

    /// The detailed samples nearest to the two ends of the window.
    pub(super) fn edges(&self) -> Result<(&'a Sample, &'a Sample), Missing> {
        let detailed = || self.detailed();
        let nearest = |at: f64| {
            detailed().map(|samples| {
                samples.min_by(|a, b| (a.at_s - at).abs().total_cmp(&(b.at_s - at).abs()))
            })
        };
        match (nearest(self.from_s)?, nearest(self.to_s)?) {
            (Some(first), Some(last)) if last.at_s > first.at_s => Ok((first, last)),
            _ => Err(Missing::because(format!(
                "the {} end has fewer than two detailed samples of its flows",
                self.name
            ))),
        }
    }

    fn detailed(&self) -> Result<impl Iterator<Item = &'a Sample> + use<'a>, Missing> {
        Ok(self.end()?.samples.iter().filter(|s| !s.flows.is_empty() && s.at_s.is_finite()))
    }
}
