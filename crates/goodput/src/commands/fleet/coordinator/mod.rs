//! Whoever has the lease: gives out tasks, and waits for their outcomes.
//!
//! ```text
//! lease (held) ──▶ fence ──▶ testing: task, signed ──▶ outcome ──▶ results: history (folder: while it is away), lines, metrics
//!                               │                       printed: how far, for a successor
//!                               ▲ agents: do they heed this coordinator, does the task fit them
//!                               ▲ demand: what someone asks for in between
//! ```

mod agents;
mod demand;
mod folder;
mod metrics;
mod printed;
mod results;
mod room;
mod testing;

use std::cell::RefCell;

use anyhow::Result;
use goodput_bus::BusError;
use goodput_engine::Interrupt;
use goodput_fleet::places::COORDINATOR;
use serde_json::{Value, json};

use super::fence::Fence;
use super::held::{Held, Taken, holder};
use super::places::Desk;
use crate::commands::measured;
use crate::screen;

pub(super) use agents::Agents;
pub(super) use demand::Demand;
pub(super) use folder::Folder;
pub(super) use metrics::FleetMetrics;
pub(super) use printed::Printed;
pub(super) use results::{Results, said};
pub(super) use room::OutcomesRoom;
pub(super) use testing::Testing;

/// The lease of one process.
pub(super) struct Lease {
    session: String,
    value: Value,
    /// Who had it while this one waited.
    before: RefCell<Option<String>>,
}

impl Lease {
    /// For this process, which does not have it yet.
    pub fn new() -> Self {
        let host = goodput_kernel::host().name;
        let session = format!("{:016x}", rand::random::<u64>());
        let value = json!({ "host": host, "session": session, "since": measured::now() });
        Self { session, value, before: RefCell::default() }
    }

    /// Who has it, if someone does.
    pub async fn holder(desk: &Desk) -> Result<Option<String>, BusError> {
        Ok(desk.lease.entry(COORDINATOR).await?.map(|entry| holder(&entry)))
    }

    /// What there is to say once it is taken; `has_predecessor`: another process had it before.
    pub fn taken_over(&self, has_predecessor: bool) -> String {
        match (&*self.before.borrow(), has_predecessor) {
            (Some(before), _) => {
                format!("this process is now the coordinator; its predecessor ran {before}")
            }
            (None, true) => "this process is now the coordinator; its predecessor has ended".into(),
            (None, false) => "this process is now the coordinator".into(),
        }
    }

    /// Waits until it is free, and takes it; `has_said`: whether the user knows that it waits.
    pub async fn take<'a>(
        &self,
        desk: &'a Desk,
        interrupt: &Interrupt,
        mut has_said: bool,
    ) -> Result<Taken<'a>> {
        Held::take(&desk.lease, COORDINATOR, self.value.clone(), interrupt, |entry| {
            let other = holder(entry);
            if !std::mem::replace(&mut has_said, true) {
                screen::say(format_args!("goodput: waiting: a coordinator runs {other}"));
            }
            self.before.replace(Some(other));
            true
        })
        .await
    }

    /// Raises the fence for whoever holds the lease now.
    pub async fn fence<'a>(&self, desk: &'a Desk, held: &Held<'_>) -> Result<Fence<'a>> {
        Fence::raise(&desk.places.turns, held, &self.session).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_over_says_from_whom() {
        let lease = Lease::new();
        assert_eq!(lease.taken_over(false), "this process is now the coordinator");
        assert!(lease.taken_over(true).ends_with("; its predecessor has ended"));
        lease.before.replace(Some("on host h".into()));
        assert!(lease.taken_over(true).ends_with("; its predecessor ran on host h"));
    }
}
