//! `goodput fleet agent`: one site of a fleet.
//!
//! ```text
//! name (held) ──▶ tasks: queue ──▶ near (calls the far agent, or by_ssh; metered) ──▶ outbox ──▶ history ──▶ outcome ──▶ done
//!             │                                                             saving └─▶ waiting (while it is away)
//!             └─▶ calls: a near agent asks ──▶ called (once) ──▶ listener (one server, one key) ──▶ closed
//! here                what it takes part in: limits, purse (the budget), whom it trusts, whom it heeds (heed)
//! ```

mod by_ssh;
mod called;
mod calls;
mod fitting;
mod heed;
mod here;
mod listener;
mod metered;
mod near;
mod outbox;
mod purse;
mod target;
mod tasks;

pub(in crate::commands::fleet) use self::near::beside;

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Error, Result, anyhow, bail};
use goodput_bus::{Bus, Entry, Heard, Public};
use goodput_engine::{EngineError, Interrupt};
use goodput_fleet::places::{FENCE, call};
use goodput_fleet::{Announcement, FORMAT, Limits};
use tokio::time::sleep;

use self::called::Called;
use self::heed::Heed;
use self::here::Here;
use self::outbox::Outbox;
use self::purse::Purse;
use super::held::{Held, Taken, holder};
use super::places::{BEAT, EXPIRY, Gone, Places, STORED, trusted, word};
use super::saving::Saving;
use super::trouble::{Trouble, may_pass};
use super::unless::unless;
use crate::args::FleetAgentArgs;
use crate::commands::measured;
use crate::commands::notifier::Notifier;
use crate::data_dirs::{history, state_dir};
use crate::exit::Exit;
use crate::history_thread::HistoryThread;
use crate::screen;
use crate::speaker::{now, speak_as};

/// Refuses a name that no mesh has: such an agent would wait for ever.
fn check_name(name: &str) -> Result<()> {
    goodput_fleet::check_site_name(name).map_err(|why| anyhow!("--name {name:?}: {why}"))
}

/// Works until a signal comes.
pub(super) fn run(args: &FleetAgentArgs, state: Option<PathBuf>) -> Result<Exit> {
    check_name(&args.name)?;
    speak_as(format!("agent {}", args.name));
    let word = word(&args.name)?;
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
    let history = HistoryThread::begin(history)?;
    let saving = Saving::open(history.clone(), outbox.folder())?;
    let stage = Stage { args, word: &word, outbox, saving: &saving, interrupt };
    tokio::select! {
        ended = stage.served(history) => ended,
        // What waits needs no NATS.
        never = saving.go_on() => never,
    }
}

/// Where an agent works.
struct Stage<'a> {
    args: &'a FleetAgentArgs,
    /// The word of its site.
    word: &'a str,
    outbox: &'a Outbox,
    saving: &'a Saving,
    interrupt: &'a Interrupt,
}

impl Stage<'_> {
    async fn served(&self, history: HistoryThread) -> Result<Exit> {
        let Self { args, word, interrupt, .. } = *self;
        let trust = trusted(&args.nats, args.trust.as_deref())?;
        let purse = args.budget.map(|limit| Purse::new(history, &args.name, limit));
        let Some(mut places) = places(args, word, interrupt, None).await? else {
            return Ok(Exit::Fine);
        };
        let notifier = Notifier::connect();
        loop {
            let ended = self.session(&places, trust.clone(), purse.clone(), &notifier).await;
            let lost = match ended {
                Err(why) if why.is::<Gone>() => why,
                ended => {
                    notifier.notify("STOPPING=1");
                    return ended.map(|()| Exit::Fine);
                }
            };
            screen::say(format_args!("goodput: {lost}"));
            places = match self::places(args, word, interrupt, Some(&places.bus)).await? {
                Some(places) => places,
                None => return Ok(Exit::Fine),
            };
        }
    }

    /// Takes part in tests with these places, until the user ends it.
    ///
    /// # Errors
    /// [`Gone`] if the places no longer exist; also if another agent has the name.
    async fn session(
        &self,
        places: &Places,
        trust: Option<Public>,
        purse: Option<Purse>,
        notifier: &Notifier,
    ) -> Result<()> {
        let Self { args, word, outbox, interrupt, .. } = *self;
        let called = Called::open(outbox.folder())?;
        let heed = Heed::open(outbox.folder(), places.turns.identity())?;
        let mut announcement = announcement(args);
        announcement.trusts = trust.as_ref().map(ToString::to_string);
        if let Some(purse) = &purse {
            // A database may be slow.
            let Some(left) = unless(interrupt, purse.left()).await else { return Ok(()) };
            announcement.limits.left = Some(left?.bytes());
        }
        let value = serde_json::to_value(&announcement)?;
        let taken = tokio::select! {
            taken = Held::take(&places.agents, word, value, interrupt, |_| false) => taken?,
            lost = places.lost() => return Err(lost),
        };
        let held = match taken {
            Taken::Held(held) => held,
            Taken::Rival(entry) => bail!(in_use(&args.name, &entry)),
            Taken::Interrupted => return Ok(()),
        };
        let here = Here {
            site: args.name.clone(),
            word: word.to_owned(),
            session: announcement.session.clone(),
            limits: announcement.limits.clone(),
            purse,
            access: args.access.access(),
            saving: self.saving,
            trust,
            places,
            held: &held,
            heed,
            called,
            measuring: RefCell::default(),
            turn: Arc::default(),
        };
        let ended = self.work(&here, announcement, notifier).await;
        held.release().await;
        ended
    }

    /// Takes part in tests until it is interrupted.
    async fn work(
        &self,
        here: &Here<'_>,
        announcement: Announcement,
        notifier: &Notifier,
    ) -> Result<()> {
        let Self { args, outbox, interrupt, .. } = *self;
        let asked = async {
            // Whoever finds the name may ask.
            let questions = here.places.bus.questions(&call(&here.word, "*")).await?;
            anyhow::Ok((questions, here.places.turns.hear(FENCE).await?))
        };
        let Some(asked) = unless(interrupt, asked).await else { return Ok(()) };
        let (questions, successors) = asked?;
        screen::line(format_args!("{} agent {} at {}", now(), args.name, args.nats.nats))?;
        notifier.notify("READY=1");
        tokio::select! {
            lost = here.held.keep() => Err(lost),
            ended = calls::answer(here, questions) => ended,
            ended = tasks::work(here, outbox, interrupt) => ended,
            never = announce(here, announcement, successors) => never,
            gone = gone(here) => Err(gone),
        }
    }
}

/// Waits until the places are gone, and this agent is in no test: the outcome of one that goes on is then on its disk.
async fn gone(here: &Here<'_>) -> Error {
    let gone = here.places.lost().await;
    drop(here.turn.lock().await);
    gone
}

/// The places of an agent, over this connection if there is one. While the servers elect their leader, nobody can say what there is: then it waits, and says so.
/// None: the user ended it.
async fn places(
    args: &FleetAgentArgs,
    word: &str,
    interrupt: &Interrupt,
    bus: Option<&Bus>,
) -> Result<Option<Places>> {
    let mut trouble = Trouble::default();
    loop {
        let opened = tokio::select! {
            opened = Places::of_agent(&args.nats, &args.name, word, bus) => opened,
            () = interrupt.raised() => return Ok(None),
        };
        match opened {
            Err(why) if may_pass(&why) => trouble.say(&why.context("waiting for NATS")),
            opened => return opened.map(Some),
        }
        tokio::select! {
            () = sleep(BEAT) => {}
            () = interrupt.raised() => return Ok(None),
        }
    }
}

/// Says which coordinator this agent heeds, and what is left of the budget, as they change; while nobody knows, what was
/// said last. Never ends.
async fn announce<T>(
    here: &Here<'_>,
    mut announcement: Announcement,
    mut successors: Heard,
) -> Result<T> {
    let mut trouble = Trouble::default();
    loop {
        let is_awaited = heeds(here, &mut announcement).await;
        match here.limits().await {
            Ok(limits) => {
                trouble.is_over();
                announcement.limits = limits;
            }
            Err(why) => trouble.say(&why),
        }
        here.held.say(serde_json::to_value(&announcement)?);
        if is_awaited && let Err(why) = here.held.renew().await {
            tracing::debug!("{why}; it is renewed soon");
        }
        tokio::select! {
            // A copy of the stream may take a moment to have it.
            _ = successors.next() => sleep(STORED).await,
            () = sleep(BEAT) => {}
        }
    }
}

/// Says which coordinator this agent heeds. Returns whether there is a new one, which waits for that.
async fn heeds(here: &Here<'_>, announcement: &mut Announcement) -> bool {
    if let Err(why) = here.look().await {
        tracing::debug!("{why}");
    }
    let newest = Some(here.heed.token());
    // A test that goes on may be one of an earlier coordinator.
    let is_new = announcement.heeds != newest && here.turn.try_lock().is_ok();
    if is_new {
        announcement.heeds = newest;
        // Of no use to an operator: each `goodput fleet test` without a coordinator is a new one.
        tracing::debug!("heeds the coordinator with the token {}", here.heed.token());
    }
    is_new
}

fn announcement(args: &FleetAgentArgs) -> Announcement {
    Announcement {
        format: FORMAT,
        site: args.name.clone(),
        session: format!("{:016x}", rand::random::<u64>()),
        host: goodput_kernel::host(),
        since: measured::now(),
        trusts: None,
        // None that it has seen.
        heeds: Some(0),
        limits: Limits {
            max_duration_s: args.max_duration,
            max_rate: args.max_rate,
            left: None,
            accepts: (!args.accept.is_empty()).then(|| args.accept.clone()),
            logs_in: args.ssh.iter().map(ToString::to_string).collect(),
        },
    }
}

/// Why a name can't be had.
fn in_use(name: &str, entry: &Entry) -> String {
    let (other, expiry_s) = (holder(entry), EXPIRY.as_secs());
    format!(
        "an agent {name} already runs {other}; end it, or choose another --name (if it has just been killed, its name is \
         free after {expiry_s} s)"
    )
}
