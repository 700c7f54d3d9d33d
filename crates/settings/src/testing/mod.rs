//! For tests: scenes to change things in, and processes that are killed while they do.

mod file;
mod netns;
mod promise;
mod scene;
mod victim;
mod whole;

pub(crate) use file::{SETTING, noted, step, when_noted};
pub(crate) use netns::{build, everything_required, in_scene};
pub(crate) use promise::{folder, wait_for};
pub(crate) use scene::Scene;
pub(crate) use victim::{Victim, guard};
pub(crate) use whole::Whole;
