//! `goodput fleet test`: one test of a pair, in between. Whoever coordinates makes it; if nobody does, this process.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use goodput_bus::{BusError, Heard, Seed};
use goodput_engine::{EngineError, Interrupt};
use goodput_fleet::places::{COORDINATOR, TURN, of_task};
use goodput_fleet::{Announcement, End, FORMAT, Mesh, Outcome, Task, Turn, Wanted, task_between};
use goodput_model::plain_char;
use tokio::time::{sleep, timeout};

use super::coordinator::{Agents, Demand, Lease, Printed, Results, Testing, said};
use super::held::{Held, Lost, Taken};
use super::in_history::keep;
use super::mesh_file;
use super::places::{BEAT, Desk, Places, STORED, WANTED_EXPIRY, signer, word};
use super::unless::unless;
use crate::args::FleetTestArgs;
use crate::commands::measured;
use crate::data_dirs::history;
use crate::exit::{self, Exit};
use crate::screen;

/// When the test is asked for again, while nobody has made it: what was asked for expires at the bus.
const ASK_AGAIN: Duration = Duration::from_secs(WANTED_EXPIRY.as_secs() / 2);

/// Asks for the test, and waits for its outcome.
pub(super) fn run(args: &FleetTestArgs) -> Result<Exit> {
    let (asked, _) =
        measured::block_on(async |interrupt| Ok::<_, EngineError>(ask(args, &interrupt).await))?;
    let Some((task, outcome)) = asked? else { return Ok(Exit::CouldNot) };
    measured::end_at_the_next_signal();
    report(&task, &outcome)
}

/// What is asked for, and where.
struct Wish {
    desk: Desk,
    mesh: Mesh,
    task: Task,
    /// Where its outcome will be.
    place: String,
    wanted: Wanted,
}

/// The test that was asked for, and its outcome. None: the user ended it; what becomes of a
/// test that was asked for by then was said.
async fn ask(args: &FleetTestArgs, interrupt: &Interrupt) -> Result<Option<(Task, Vec<u8>)>> {
    let signer = signer(&args.nats, args.signing.sign.as_deref())?;
    let Some(wish) = unless(interrupt, Wish::of(args, signer.as_ref())).await else {
        return Ok(None);
    };
    let wish = wish?;
    let outcome = tokio::select! {
        outcome = outcome(&wish, signer.as_ref(), interrupt) => outcome,
        lost = wish.desk.places.lost() => Err(lost.context("the test is lost; ask for it again")),
    };
    let outcome = match outcome {
        Ok(Some(outcome)) => Some(outcome),
        // Nobody waits for it any more, whatever the reason.
        ended => match withdraw(&wish).await {
            Some(outcome) => Some(outcome),
            None => ended?,
        },
    };
    Ok(outcome.map(|outcome| (wish.task, outcome)))
}

impl Wish {
    async fn of(args: &FleetTestArgs, signer: Option<&Seed>) -> Result<Self> {
        let desk = Desk::open(&args.nats, None).await?;
        let mesh = mesh(args, &desk).await?;
        let id = format!("want-{:016x}", rand::random::<u64>());
        let task =
            task_between(&mesh, &id, &args.sender, &args.receiver).map_err(|why| anyhow!(why))?;
        if let Some(signer) = signer.filter(|_| args.signing.sign.is_some()) {
            check_signer(&desk, &mesh, &task, &signer.public()).await?;
        }
        let place = of_task(&word(&task.near)?, &id);
        let wanted = Wanted {
            format: FORMAT,
            id,
            near: task.near.clone(),
            sender: args.sender.clone(),
            receiver: args.receiver.clone(),
            length_s: args.duration,
        };
        wanted.check().map_err(|why| anyhow!("can't ask for this test: {why}"))?;
        Ok(Self { desk, mesh, task, place, wanted })
    }

    /// Asks for it. Its task has one outcome, however often it is asked for.
    async fn put(&self) -> Result<(), BusError> {
        self.desk.wanted.put(COORDINATOR, &self.wanted.id, &self.wanted).await
    }

    /// Its outcome, if there is one.
    async fn found(&self) -> Result<Option<Vec<u8>>, BusError> {
        let found = self.desk.places.outcomes.get(&self.place).await?;
        Ok(found.map(|outcome| outcome.body))
    }

    /// Waits for its outcome, which someone else brings about. Never fails: it asks again.
    async fn made_by_others(&self, heard: &mut Heard) -> Vec<u8> {
        let mut asked = Instant::now();
        loop {
            if asked.elapsed() >= ASK_AGAIN {
                match self.put().await {
                    Ok(()) => asked = Instant::now(),
                    Err(why) => tracing::debug!("{why}"),
                }
            }
            if let Ok(Some(outcome)) = self.found().await {
                return outcome;
            }
            tokio::select! {
                // What is heard may be refused: only the stream says which outcome is the first.
                _ = heard.next() => sleep(STORED).await,
                () = sleep(BEAT) => {}
            }
        }
    }
}

/// The outcome, by whoever makes the test; none: the user ended it.
async fn outcome(
    wish: &Wish,
    signer: Option<&Seed>,
    interrupt: &Interrupt,
) -> Result<Option<Vec<u8>>> {
    let asked = async {
        let heard = wish.desk.places.outcomes.hear(&wish.place).await?;
        wish.put().await?;
        anyhow::Ok(heard)
    };
    let Some(heard) = unless(interrupt, asked).await else { return Ok(None) };
    let mut heard = heard?;
    loop {
        let lease = Lease::new();
        let found = tokio::select! {
            outcome = wish.made_by_others(&mut heard) => Ok(Some(outcome)),
            taken = lease.take(&wish.desk, interrupt, true) => match taken? {
                Taken::Held(held) => alone(signer, wish, (&lease, held), interrupt).await,
                Taken::Rival(_) | Taken::Interrupted => Ok(None),
            },
        };
        match found {
            // Whoever coordinates meanwhile makes the test, or has made it.
            Err(why) if why.is::<Lost>() => tracing::debug!("{why}"),
            found => return found,
        }
    }
}

/// What became of a wish that was taken back.
#[derive(Debug, PartialEq, Eq)]
enum TakenBack {
    /// Nobody makes the test.
    NotMade,
    /// Its agent was about to begin it, and may have found in time that it was taken back.
    PerhapsBegun,
    /// Its agent has begun it, and goes on.
    Begun,
    /// It has this outcome.
    Over(Vec<u8>),
}

/// Takes the wish back, and says what becomes of the test: whoever coordinates makes none that has an outcome. Returns the
/// outcome if there was one.
async fn withdraw(wish: &Wish) -> Option<Vec<u8>> {
    let late = || anyhow!("NATS gave no answer within {} s", BEAT.as_secs());
    let back = timeout(BEAT, take_back(wish)).await.unwrap_or_else(|_| Err(late()));
    if let Ok(TakenBack::Over(outcome)) = back {
        return Some(outcome);
    }
    screen::say(format_args!("goodput: {}", back_in_words(&wish.task, back)));
    None
}

async fn take_back(wish: &Wish) -> Result<TakenBack> {
    let (Wish { place, task, .. }, Places { outcomes, begun, .. }) = (wish, &wish.desk.places);
    if let Some(outcome) = wish.found().await? {
        return Ok(TakenBack::Over(outcome));
    }
    if begun.entry(place).await?.is_some() {
        return Ok(TakenBack::Begun);
    }
    let why = End::Reason("whoever asked for this test waits for it no longer".into());
    if outcomes.put_once(place, &Outcome::new(&task.id, "fleet test", why)).await? {
        // An agent that begins looks for an outcome after it has said so: it finds this one, or is found here, unless the copy
        // of a stream that answers is behind.
        return Ok(match begun.entry(place).await? {
            None => TakenBack::NotMade,
            Some(_) => TakenBack::PerhapsBegun,
        });
    }
    loop {
        // Someone was first; the copy of the stream that answers may be behind.
        if let Some(outcome) = wish.found().await? {
            return Ok(TakenBack::Over(outcome));
        }
        sleep(STORED).await;
    }
}

fn back_in_words(task: &Task, back: Result<TakenBack>) -> String {
    let (near, pair) = (&task.near, format!("{} → {}", task.sender(), task.receiver()));
    match back {
        Ok(TakenBack::NotMade) => format!("the test {pair} is not made"),
        Ok(TakenBack::PerhapsBegun) => format!(
            "the agent {near} may just have begun the test {pair}; if so, only the history of {near} gets its record"
        ),
        Ok(TakenBack::Begun) => format!(
            "the test {pair} has begun; the history of {near} gets its record, and that of the coordinator if one runs"
        ),
        Ok(TakenBack::Over(_)) => format!("the test {pair} is over"),
        Err(why) => {
            let why = exit::in_words(&why);
            format!("can't take the test {pair} back, so it may still be made: {why}")
        }
    }
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

/// Makes what is asked for, until the outcome of the wish is there. None: the user ended it.
async fn alone(
    signer: Option<&Seed>,
    wish: &Wish,
    (lease, held): (&Lease, Held<'_>),
    interrupt: &Interrupt,
) -> Result<Option<Vec<u8>>> {
    let Wish { desk, mesh, .. } = wish;
    let (demand, results) = (Demand::new(&desk.wanted), Results::silent(mesh));
    let fence = match lease.fence(desk, &held).await {
        Ok(fence) => fence,
        Err(why) => {
            held.release().await;
            return Err(why);
        }
    };
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
        printed: Printed::new(&desk.places.turns),
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
            if let Ok(Some(outcome)) = wish.found().await {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_a_wish_back_hears_what_becomes_of_the_test() {
        let mesh = Mesh::parse("x", "[site.a]\n[site.b]\ntarget = \"b\"\n").unwrap();
        let task = task_between(&mesh, "t", "a", "b").unwrap();
        let said = |back| back_in_words(&task, back);
        assert_eq!(said(Ok(TakenBack::NotMade)), "the test a → b is not made");
        let begun = said(Ok(TakenBack::Begun));
        assert!(begun.contains("has begun") && begun.contains("if one runs"), "{begun}");
        let perhaps = said(Ok(TakenBack::PerhapsBegun));
        assert!(perhaps.contains("may just have begun") && perhaps.contains("only"), "{perhaps}");
        let refused = said(Err(anyhow!("the stream is full")));
        assert!(refused.contains("may still be made: the stream is full"), "{refused}");
        assert!(!refused.contains("does not answer"), "{refused}");
    }
}
