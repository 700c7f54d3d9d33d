//! For tests: scenes in which to change things, and processes that are killed while they do.

mod file;
mod folder;
mod made_up;
mod netns;
mod scene;
mod tmpfs;
mod victim;
mod whole;

pub(crate) use file::{SETTING, noted, step, waiting, when_noted, when_waiting};
pub(crate) use folder::folder;
pub(crate) use goodput_testing::wait_for;
pub(crate) use made_up::{MadeUp, made_up_root};
pub(crate) use netns::{build, in_scene};
pub(crate) use scene::Scene;
pub(crate) use tmpfs::Tmpfs;
pub(crate) use victim::{Victim, guard};
pub(crate) use whole::Whole;
