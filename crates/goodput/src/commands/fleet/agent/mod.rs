//! `goodput fleet agent`: one site of a fleet.
//!
//! ```text
//! name (held) ──▶ tasks: queue ──▶ near (calls the far agent, measures) ──▶ outbox ──▶ outcome ──▶ done
//!             └─▶ calls: a near agent asks ──▶ listener (one server, one key) ──▶ closed
//! ```

mod calls;
mod here;
mod listener;
mod near;
mod outbox;
mod tasks;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use goodput_bus::Entry;
use goodput_engine::{EngineError, Interrupt};
use goodput_fleet::{Announcement, FORMAT};

use self::here::Here;
use self::outbox::Outbox;
use super::held::{Held, Taken};
use super::places::{EXPIRY, Places, calls_of};
use crate::args::FleetAgentArgs;
use crate::commands::measured;
use crate::commands::notifier::Notifier;
use crate::data_dirs::state_dir;
use crate::exit::Exit;
use crate::screen;

/// Works until a signal comes.
pub(super) fn run(args: &FleetAgentArgs, state: Option<PathBuf>) -> Result<Exit> {
    let word = goodput_fleet::word(&args.name).map_err(|why| anyhow!(why))?;
    let outbox = Outbox::open(&state_dir(state)?, &word)?;
    let (outcome, _) = measured::block_on(async |interrupt| {
        Ok::<_, EngineError>(serve(args, word, &outbox, &interrupt).await)
    })?;
    outcome
}

async fn serve(
    args: &FleetAgentArgs,
    word: String,
    outbox: &Outbox,
    interrupt: &Interrupt,
) -> Result<Exit> {
    let places = Places::open(&args.nats, &format!("goodput agent {}", args.name)).await?;
    let announcement = announcement(args);
    let value = serde_json::to_value(&announcement)?;
    let held = match Held::take(&places.agents, &word, value, interrupt, |_| false).await? {
        Taken::Held(held) => held,
        Taken::Rival(entry) => bail!(taken(&args.name, &entry)),
        Taken::Interrupted => return Ok(Exit::CouldNot),
    };
    // Whoever finds the name may ask.
    let questions = places.bus.questions(&calls_of(&word)).await?;
    let here = Here {
        site: args.name.clone(),
        word: word.clone(),
        session: announcement.session,
        max_duration_s: args.max_duration,
        places: &places,
        turn: Arc::default(),
    };
    let notifier = Notifier::connect();
    screen::line(format_args!("agent {} at {}", args.name, args.nats.nats))?;
    notifier.notify("READY=1");
    let ended = tokio::select! {
        lost = held.keep() => Err(lost),
        ended = calls::answer(&here, questions) => ended,
        () = tasks::work(&here, outbox, interrupt) => Ok(()),
    };
    notifier.notify("STOPPING=1");
    held.release().await;
    ended.map(|()| Exit::Fine)
}

fn announcement(args: &FleetAgentArgs) -> Announcement {
    Announcement {
        format: FORMAT,
        site: args.name.clone(),
        session: format!("{:016x}", rand::random::<u64>()),
        host: goodput_kernel::host(),
        since: measured::now(),
        max_duration_s: args.max_duration,
    }
}

/// Why a name can't be had.
fn taken(name: &str, entry: &Entry) -> String {
    let other = match Announcement::read(&entry.value) {
        Ok(other) => format!("on host {} since {}", other.host.name, other.since),
        Err(_) => "of another version".into(),
    };
    let expiry_s = EXPIRY.as_secs();
    format!(
        "an agent {name} runs already, {other}; end it, or choose another --name (if it has just been killed, its name is \
         free after {expiry_s} s)"
    )
}
