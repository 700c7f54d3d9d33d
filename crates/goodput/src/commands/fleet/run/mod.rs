//! `goodput fleet run`: the coordinator of a fleet. It keeps no state of its own: what is done is on the bus, and whoever
//! has the lease goes on.
//!
//! ```text
//! lease (held) ──▶ turn ──▶ rounds, the pairs of each at the same time (testing) ──▶ task ──▶ outcome ──▶ results
//! ```

mod results;
mod testing;

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use goodput_bus::BusError;
use goodput_engine::{EngineError, Interrupt};
use goodput_fleet::{Mesh, Next, Turn, next};
use goodput_model::plain_char;
use serde_json::{Value, json};
use tokio::time::sleep;

use self::results::Results;
use self::testing::Testing;
use super::held::{Held, Taken};
use super::mesh_file;
use super::places::{BEAT, Places};
use crate::args::FleetRunArgs;
use crate::commands::measured;
use crate::exit::Exit;
use crate::screen;

/// The key of the lease, and that of the newest turn.
const COORDINATOR: &str = "coordinator";
const TURN: &str = "turn";

/// Tests the mesh as often as its file says.
pub(super) fn run(args: &FleetRunArgs) -> Result<Exit> {
    let (mesh, text) = mesh_file::read_with_text(&args.mesh)?;
    check(&args.mesh, &mesh)?;
    let (outcome, _) = measured::block_on(async |interrupt| {
        Ok::<_, EngineError>(coordinate(args, &mesh, text, &interrupt).await)
    })?;
    outcome
}

/// Refuses what agents can't test, before anyone is asked.
fn check(file: &Path, mesh: &Mesh) -> Result<()> {
    for site in &mesh.sites {
        goodput_fleet::word(&site.name).map_err(|why| anyhow!("{}: {why}", file.display()))?;
        if let Some(target) = &site.target {
            target.parse::<goodput_engine::Target>()?;
        }
    }
    Ok(())
}

async fn coordinate(
    args: &FleetRunArgs,
    mesh: &Mesh,
    text: String,
    interrupt: &Interrupt,
) -> Result<Exit> {
    let places = Places::open(&args.nats, "goodput coordinator").await?;
    let held = match lease(&places, interrupt).await? {
        Taken::Held(held) => held,
        // It waits for as long as someone else has it.
        Taken::Rival(_) | Taken::Interrupted => return Ok(Exit::CouldNot),
    };
    let every_s = mesh.every_s.filter(|_| !args.once);
    let coordinator = Coordinator { places: &places, held: &held, mesh, text, every_s, interrupt };
    let ended = tokio::select! {
        lost = held.keep() => Err(lost),
        ended = coordinator.turns() => ended,
    };
    held.release().await;
    ended
}

async fn lease<'a>(places: &'a Places, interrupt: &Interrupt) -> Result<Taken<'a>> {
    let host = goodput_kernel::host().name;
    let session = format!("{:016x}", rand::random::<u64>());
    let own = json!({ "host": host, "session": session, "since": measured::now() });
    let mut has_said = false;
    Held::take(&places.lease, COORDINATOR, own, interrupt, |entry| {
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

/// The process that has the lease.
struct Coordinator<'a> {
    places: &'a Places,
    held: &'a Held<'a>,
    mesh: &'a Mesh,
    text: String,
    every_s: Option<f64>,
    interrupt: &'a Interrupt,
}

impl Coordinator<'_> {
    /// Tests the mesh, turn by turn.
    async fn turns(&self) -> Result<Exit> {
        loop {
            let last = match self.last_turn().await {
                Ok(last) => last,
                Err(why) => {
                    tracing::warn!("{why}; trying again");
                    match self.interrupted_within(BEAT).await {
                        true => return Ok(Exit::CouldNot),
                        false => continue,
                    }
                }
            };
            let now_s = self.held.now_s();
            let turn = match next(last.as_ref(), &self.text, self.every_s, now_s) {
                Next::Wait(seconds) => {
                    match self.interrupted_within(Duration::from_secs_f64(seconds)).await {
                        true => return Ok(Exit::Fine),
                        false => continue,
                    }
                }
                Next::Begin(number) => self.new_turn(number, now_s),
                Next::GoOn => match last {
                    Some(last) => last,
                    None => bail!("the bus has lost the turn that was to go on"),
                },
            };
            if !self.write(&turn).await {
                return Ok(Exit::CouldNot);
            }
            let results = Results::of(self.mesh)?;
            let testing = Testing {
                places: self.places,
                held: self.held,
                mesh: self.mesh,
                results: &results,
                interrupt: self.interrupt,
            };
            if !testing.test(&goodput_fleet::tasks(self.mesh, &turn)).await? {
                return Ok(Exit::CouldNot);
            }
            if !self.write(&Turn { has_ended: true, ..turn }).await {
                return Ok(Exit::CouldNot);
            }
            results.print_matrix(self.held.now_s())?;
            if self.every_s.is_none() {
                return Ok(results.exit());
            }
        }
    }

    fn new_turn(&self, number: u64, began_s: f64) -> Turn {
        let id = format!("{:x}-{:08x}", began_s as u64, rand::random::<u32>());
        Turn { id, number, mesh: self.text.clone(), began_s, has_ended: false }
    }

    /// The newest turn; what can't be one is none.
    async fn last_turn(&self) -> Result<Option<Turn>, BusError> {
        let entry = self.places.turns.entry(TURN).await?;
        Ok(entry.and_then(|entry| Turn::read(&entry.value)))
    }

    /// Writes the newest turn. Whoever is not sure of the lease may have a successor. While the bus is away, tries again.
    /// `false`: the user ended it.
    async fn write(&self, turn: &Turn) -> bool {
        loop {
            tokio::select! {
                () = self.held.wait_until_sure() => {}
                () = self.interrupt.raised() => return false,
            }
            match self.places.turns.put(TURN, turn).await {
                Ok(_) => return true,
                Err(why) => tracing::warn!("{why}; trying again"),
            }
            if self.interrupted_within(BEAT).await {
                return false;
            }
        }
    }

    async fn interrupted_within(&self, time: Duration) -> bool {
        tokio::select! {
            () = sleep(time) => false,
            () = self.interrupt.raised() => true,
        }
    }
}
