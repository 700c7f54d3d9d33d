//! `goodput fleet test`: one test of a pair, in between. Whoever coordinates makes it; if nobody does, this process.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use goodput_bus::Seed;
use goodput_engine::{EngineError, Interrupt};
use goodput_fleet::places::{COORDINATOR, TURN, of_task};
use goodput_fleet::{Announcement, End, FORMAT, Mesh, Outcome, Task, Turn, Wanted, task_between};
use goodput_model::plain_char;
use tokio::time::{sleep, timeout};

use super::coordinator::{Agents, Demand, Lease, Results, Testing, said};
use super::held::{Held, Taken};
use super::in_history::keep;
use super::mesh_file;
use super::places::{BEAT, Desk, STORED, WANTED_EXPIRY, signer, word};
use crate::args::FleetTestArgs;
use crate::commands::measured;
use crate::data_dirs::history;
use crate::exit::{self, Exit};
use crate::screen;

/// When the test is asked for again, while nobody has made it: what was asked for expires at the bus.
const ASK_AGAIN: Duration = Duration::from_secs(WANTED_EXPIRY.as_secs() / 2);

/// Asks for the test, and waits for its outcome.
pub(super) fn run(args: &FleetTestArgs) -> Result<Exit> {
    let (outcome, _) =
        measured::block_on(async |interrupt| Ok::<_, EngineError>(ask(args, &interrupt).await))?;
    outcome
}

async fn ask(args: &FleetTestArgs, interrupt: &Interrupt) -> Result<Exit> {
    let signer = signer(&args.nats, args.signing.sign.as_deref())?;
    let desk = Desk::open(&args.nats).await?;
    let mesh = mesh(args, &desk).await?;
    let id = format!("want-{:016x}", rand::random::<u64>());
    let task =
        task_between(&mesh, &id, &args.sender, &args.receiver).map_err(|why| anyhow!(why))?;
    if args.signing.sign.is_some()
        && let Some(signer) = &signer
    {
        check_signer(&desk, &mesh, &task, &signer.public()).await?;
    }
    let place = of_task(&word(&task.near)?, &id);
    let wanted = Wanted {
        format: FORMAT,
        id: id.clone(),
        near: task.near.clone(),
        sender: args.sender.clone(),
        receiver: args.receiver.clone(),
        length_s: args.duration,
    };
    wanted.check().map_err(|why| anyhow!("can't ask for this test: {why}"))?;
    let mut heard = desk.places.outcomes.hear(&place).await?;
    desk.wanted.put(COORDINATOR, &id, &wanted).await?;
    let lease = Lease::new();
    let others = async {
        let mut asked = Instant::now();
        loop {
            if asked.elapsed() >= ASK_AGAIN {
                // Its task has one outcome, however often it is asked for.
                match desk.wanted.put(COORDINATOR, &id, &wanted).await {
                    Ok(()) => asked = Instant::now(),
                    Err(why) => tracing::debug!("{why}"),
                }
            }
            if let Ok(Some(outcome)) = desk.places.outcomes.get(&place).await {
                return outcome;
            }
            tokio::select! {
                // What is heard may be refused: only the stream says which outcome is the first.
                _ = heard.next() => sleep(STORED).await,
                () = sleep(BEAT) => {}
            }
        }
    };
    let found = tokio::select! {
        outcome = others => Some(outcome),
        taken = lease.take(&desk, interrupt, true) => match taken? {
            Taken::Held(held) => {
                alone(signer.as_ref(), &desk, &mesh, (&lease, held), &place, interrupt).await?
            }
            Taken::Rival(_) | Taken::Interrupted => None,
        },
    };
    let Some(outcome) = found else {
        withdraw(&desk, &place, &task).await;
        return Ok(Exit::CouldNot);
    };
    report(&task, &outcome)
}

/// Takes the wish back, and says what becomes of it: whoever coordinates makes no test that has an outcome. A test that its agent
/// has begun goes on.
async fn withdraw(desk: &Desk, place: &str, task: &Task) {
    let take_back = async {
        if desk.places.begun.entry(place).await?.is_some() {
            return Ok(false);
        }
        let why = End::Reason("whoever asked for this test waits for it no longer".into());
        desk.places.outcomes.put_once(place, &Outcome::new(&task.id, "fleet test", why)).await
    };
    let pair = format!("{} → {}", task.sender(), task.receiver());
    let near = &task.near;
    screen::say(match timeout(BEAT, take_back).await {
        Ok(Ok(true)) => format!("goodput: the test {pair} is not made"),
        Ok(Ok(false)) => format!(
            "goodput: the test {pair} has begun; its record goes into the histories of {near} and of the coordinator"
        ),
        Ok(Err(_)) | Err(_) => format!(
            "goodput: NATS does not answer, so a coordinator may still make the test {pair}"
        ),
    });
}

/// The sites: those of the file, or of the newest turn.
async fn mesh(args: &FleetTestArgs, desk: &Desk) -> Result<Mesh> {
    if let Some(file) = &args.mesh {
        return mesh_file::read(file);
    }
    let entry = desk.places.turns.entry(TURN).await?;
    let Some(turn) = entry.and_then(|entry| Turn::read(&entry.value)) else {
        bail!("no mesh was tested here yet, so its sites are unknown; name the mesh file (--mesh)");
    };
    Ok(Mesh::parse("the mesh of the newest turn", &turn.mesh)?)
}

/// Refuses a key of --sign that the agents of this test don't trust, and says if it is not the one that signs: whoever
/// coordinates signs with its own.
async fn check_signer(desk: &Desk, mesh: &Mesh, task: &Task, public: &str) -> Result<()> {
    for site in [&task.near, &task.far].into_iter().filter(|site| !mesh.is_foreign(site)) {
        let entry = desk.places.agents.entry(&word(site)?).await?;
        let agent = entry.and_then(|entry| Announcement::read(&entry.value).ok());
        if let Some(trusted) = agent.and_then(|agent| agent.trusts).filter(|key| key != public) {
            bail!(
                "the agent of {site} trusts the key {trusted}, and the one of --sign is {public}; name the key with which \
                 the coordinator of this fleet signs. No test was asked for"
            );
        }
    }
    if let Some(other) = Lease::holder(desk).await? {
        screen::say(format_args!(
            "goodput: a coordinator runs {other}; it makes this test, and signs it with its own key"
        ));
    }
    Ok(())
}

/// Makes what is asked for, until the outcome at `place` is there. None: the user ended it.
async fn alone(
    signer: Option<&Seed>,
    desk: &Desk,
    mesh: &Mesh,
    (lease, held): (&Lease, Held<'_>),
    place: &str,
    interrupt: &Interrupt,
) -> Result<Option<Vec<u8>>> {
    let (demand, results) = (Demand::new(&desk.wanted), Results::silent(mesh));
    let fence = lease.fence(desk, &held).await?;
    let public = signer.map(Seed::public);
    let agents = Agents::new(&desk.places, mesh, public, fence.token);
    let testing = Testing {
        places: &desk.places,
        held: &held,
        fence,
        signer,
        mesh,
        results: &results,
        demand: &demand,
        interrupt,
        agents,
        trouble: RefCell::default(),
        room: Testing::room(),
    };
    let work = async {
        loop {
            tokio::select! {
                asked = demand.next() => if testing.on_demand(asked).await?.is_none() {
                    return Ok(None);
                },
                // The copy of the stream that answers may be behind.
                () = sleep(BEAT) => {}
            }
            if let Ok(Some(outcome)) = desk.places.outcomes.get(place).await {
                return Ok(Some(outcome));
            }
        }
    };
    let found = tokio::select! {
        lost = held.keep() => Err(lost),
        never = demand.collect() => never,
        found = work => found,
        () = interrupt.raised() => Ok(None),
    };
    held.release().await;
    found
}

/// Prints the outcome, and then keeps its record.
fn report(task: &Task, outcome: &[u8]) -> Result<Exit> {
    let (record, text) = match said(task, outcome) {
        Ok((record, text)) => (Some(record), text),
        Err(why) => (None, format!("no record: {why}")),
    };
    let text: String = text.chars().map(plain_char).collect();
    screen::line(format_args!("{} → {}  {text}", task.sender(), task.receiver()))?;
    let Some(record) = record else { return Ok(Exit::Problem) };
    Ok(match history().and_then(|store| keep(&store, &task.id, &record)) {
        Ok(_) => Exit::Fine,
        Err(why) => {
            let why = exit::in_words(&why);
            screen::say(format_args!("warning: the result above was not saved: {why}"));
            Exit::CouldNot
        }
    })
}
