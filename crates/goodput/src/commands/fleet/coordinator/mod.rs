//! Whoever has the lease: gives out tasks, and waits for their outcomes.
//!
//! ```text
//! lease (held) ──▶ fence ──▶ testing: task, signed ──▶ outcome ──▶ results: history, lines, metrics
//!                               ▲ agents: do they heed this coordinator, does the task fit them
//!                               ▲ demand: what someone asks for in between
//! ```

mod agents;
mod demand;
mod metrics;
mod results;
mod testing;

use anyhow::Result;
use goodput_engine::Interrupt;
use goodput_fleet::places::COORDINATOR;
use goodput_model::plain_char;
use serde_json::{Value, json};

use super::fence::Fence;
use super::held::{Held, Taken};
use super::places::Desk;
use crate::commands::measured;
use crate::screen;

pub(super) use agents::Agents;
pub(super) use demand::Demand;
pub(super) use metrics::FleetMetrics;
pub(super) use results::{Results, said};
pub(super) use testing::Testing;

/// The lease of one process.
pub(super) struct Lease {
    session: String,
    value: Value,
}

impl Lease {
    /// For this process, which does not have it yet.
    pub fn new() -> Self {
        let host = goodput_kernel::host().name;
        let session = format!("{:016x}", rand::random::<u64>());
        let value = json!({ "host": host, "session": session, "since": measured::now() });
        Self { session, value }
    }

    /// Waits until it is free, and takes it; `has_said`: whether the user knows that it waits.
    pub async fn take<'a>(
        &self,
        desk: &'a Desk,
        interrupt: &Interrupt,
        mut has_said: bool,
    ) -> Result<Taken<'a>> {
        Held::take(&desk.lease, COORDINATOR, self.value.clone(), interrupt, |entry| {
            if !std::mem::replace(&mut has_said, true) {
                let other: Value = serde_json::from_slice(&entry.value).unwrap_or_default();
                let host: String =
                    other["host"].as_str().unwrap_or("?").chars().map(plain_char).collect();
                screen::say(format_args!("goodput: waiting: a coordinator runs on host {host}"));
            }
            true
        })
        .await
    }

    /// Raises the fence for whoever holds the lease now.
    pub async fn fence<'a>(&self, desk: &'a Desk, held: &Held<'_>) -> Result<Fence<'a>> {
        Fence::raise(&desk.places.turns, held, &self.session).await
    }
}
