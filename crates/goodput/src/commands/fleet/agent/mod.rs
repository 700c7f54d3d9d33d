//! `goodput fleet agent`: one site of a fleet.
//!
//! ```text
//! name (held) ──▶ tasks: queue ──▶ near (calls the far agent, metered) ──▶ outbox ──▶ history ──▶ outcome ──▶ done
//!             │                                                             saving └─▶ waiting (while it is away)
//!             └─▶ calls: a near agent asks ──▶ called (once) ──▶ listener (one server, one key) ──▶ closed
//! here                what it takes part in: limits, purse (the budget), whom it trusts
//! ```

mod called;
mod calls;
mod fitting;
mod here;
mod listener;
mod metered;
mod near;
mod outbox;
mod purse;
mod saving;
mod target;
mod tasks;
mod thin;
mod trouble;
mod waiting;

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use goodput_bus::Entry;
use goodput_engine::{EngineError, Interrupt};
use goodput_fleet::places::call;
use goodput_fleet::{Announcement, FORMAT, Limits};

use self::called::Called;
use self::here::Here;
use self::outbox::Outbox;
use self::purse::Purse;
use self::saving::Saving;
use self::trouble::Trouble;
use super::held::{Held, Taken};
use super::places::{BEAT, EXPIRY, Places, trusted};
use crate::args::FleetAgentArgs;
use crate::commands::measured;
use crate::commands::notifier::Notifier;
use crate::data_dirs::{history, state_dir};
use crate::exit::Exit;
use crate::history_thread::HistoryThread;
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
    let trust = trusted(&args.nats, args.trust.as_deref())?;
    let history = HistoryThread::begin(history)?;
    let purse = args.budget.map(|limit| Purse::new(history.clone(), &args.name, limit));
    let saving = Saving::open(history, outbox.folder())?;
    let called = Called::open(outbox.folder())?;
    let places = Places::of_agent(&args.nats, &args.name, &word).await?;
    let mut announcement = announcement(args);
    announcement.trusts = trust.as_ref().map(ToString::to_string);
    if let Some(purse) = &purse {
        announcement.limits.left = Some(purse.left().await?);
    }
    let value = serde_json::to_value(&announcement)?;
    let held = match Held::take(&places.agents, &word, value, interrupt, |_| false).await? {
        Taken::Held(held) => held,
        Taken::Rival(entry) => bail!(taken(&args.name, &entry)),
        Taken::Interrupted => return Ok(Exit::CouldNot),
    };
    // Whoever finds the name may ask.
    let questions = places.bus.questions(&call(&word, "*")).await?;
    let here = Here {
        site: args.name.clone(),
        word: word.clone(),
        session: announcement.session.clone(),
        limits: announcement.limits.clone(),
        purse,
        saving,
        trust,
        places: &places,
        held: &held,
        called,
        measuring: RefCell::default(),
        turn: Arc::default(),
    };
    let notifier = Notifier::connect();
    screen::line(format_args!("agent {} at {}", args.name, args.nats.nats))?;
    notifier.notify("READY=1");
    let ended = tokio::select! {
        lost = held.keep() => Err(lost),
        ended = calls::answer(&here, questions) => ended,
        () = tasks::work(&here, outbox, interrupt) => Ok(()),
        never = announce(&here, announcement) => never,
        never = here.saving.go_on() => never,
    };
    notifier.notify("STOPPING=1");
    held.release().await;
    ended.map(|()| Exit::Fine)
}

/// Says what is left of the budget, as it changes; while nobody knows, what was said last. Never ends.
async fn announce<T>(here: &Here<'_>, mut announcement: Announcement) -> Result<T> {
    let mut trouble = Trouble::default();
    loop {
        tokio::time::sleep(BEAT).await;
        match here.limits().await {
            Ok(limits) => {
                trouble.is_over();
                announcement.limits = limits;
                here.held.say(serde_json::to_value(&announcement)?);
            }
            Err(why) => trouble.say(&why),
        }
    }
}

fn announcement(args: &FleetAgentArgs) -> Announcement {
    Announcement {
        format: FORMAT,
        site: args.name.clone(),
        session: format!("{:016x}", rand::random::<u64>()),
        host: goodput_kernel::host(),
        since: measured::now(),
        trusts: None,
        limits: Limits {
            max_duration_s: args.max_duration,
            max_rate: args.max_rate,
            left: None,
            accepts: (!args.accept.is_empty()).then(|| args.accept.clone()),
        },
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
