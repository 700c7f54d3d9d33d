//! `goodput fleet run`: the coordinator of a fleet. It keeps no state of its own: what is done is on the bus, and whoever
//! has the lease goes on.
//!
//! ```text
//! lease ──▶ turn ──▶ rounds, the pairs of each at the same time (testing) ──▶ matrix
//!   ▲                             │
//!   └──── stands by ◀──── another one has taken over
//! ```

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use goodput_bus::Seed;
use goodput_engine::{EngineError, Interrupt};
use goodput_fleet::places::TURN;
use goodput_fleet::{Mesh, Next, Tasks, Turn, next, opens_in_s};
use tokio::time::sleep;

use super::coordinator::{
    Agents, Demand, FleetMetrics, Folder, Lease, OutcomesRoom, Printed, Results, Testing,
};
use super::fence::taken_over;
use super::held::{Held, Lost, Taken};
use super::mesh_file;
use super::places::{BEAT, Desk, Gone, signer};
use super::trouble::{self, Trouble};
use super::unless::unless;
use crate::args::{FleetRunArgs, NatsArgs};
use crate::commands::measured;
use crate::commands::notifier::Notifier;
use crate::data_dirs::{place, state_dir};
use crate::exit::Exit;
use crate::screen;
use crate::speaker::{now, speak_as};

/// Tests the mesh as often as its file says.
pub(super) fn run(args: &FleetRunArgs, state: Option<PathBuf>) -> Result<Exit> {
    let (mesh, text) = mesh_file::read_with_text(&args.mesh)?;
    check(&args.mesh, &mesh)?;
    let folder = Folder::open(&state_dir(state)?, &place()?)?;
    speak_as("coordinator".into());
    let (outcome, _) = measured::block_on(async |interrupt| {
        Ok::<_, EngineError>(coordinate(args, (&mesh, text), &folder, &interrupt).await)
    })?;
    outcome
}

/// Refuses what agents can't test, before anyone is asked.
fn check(file: &Path, mesh: &Mesh) -> Result<()> {
    for site in &mesh.sites {
        let place = || format!("{}, [site.{}]", file.display(), site.name);
        goodput_fleet::word(&site.name).map_err(|why| anyhow!("{}: {why}", place()))?;
        match (&site.target, &site.by_ssh) {
            (None, _) => {}
            (Some(target), None) => {
                target.parse::<goodput_engine::Target>().with_context(place)?;
            }
            (Some(target), Some(_)) => {
                target.parse::<goodput_remote::Address>().with_context(place)?;
            }
        }
    }
    Ok(())
}

async fn coordinate(
    args: &FleetRunArgs,
    (mesh, text): (&Mesh, String),
    folder: &Folder,
    interrupt: &Interrupt,
) -> Result<Exit> {
    let signer = signer(&args.nats, args.signing.sign.as_deref())?;
    let (metrics, address) = metrics(args, mesh).await?.unzip();
    let every_s = every_s(args, mesh);
    // Before the lease: a history that is slow would outlive it, and one that can't be opened would leave it behind.
    let results = unless(interrupt, Results::of(mesh, metrics, folder)).await;
    let Some(results) = results.transpose()? else { return Ok(interrupted(every_s)) };
    let stage = Stage { args, mesh, text, every_s, signer: signer.as_ref(), address, interrupt };
    tokio::select! {
        ended = stage.coordinate(&results) => ended,
        // What waits for the history needs no NATS and no lease.
        never = results.go_on() => never,
    }
}

/// Where a coordinator works, or stands by.
struct Stage<'a> {
    args: &'a FleetRunArgs,
    mesh: &'a Mesh,
    text: String,
    /// See [`every_s`].
    every_s: Option<f64>,
    signer: Option<&'a Seed>,
    /// Where its metrics are.
    address: Option<String>,
    interrupt: &'a Interrupt,
}

impl Stage<'_> {
    async fn coordinate(self, results: &Results<'_>) -> Result<Exit> {
        let Self { args, mesh, text, every_s, signer, address, interrupt } = self;
        let Some(desk) = unless(interrupt, Desk::open(&args.nats, None)).await else {
            return Ok(interrupted(every_s));
        };
        let desk = desk?;
        if let Some(address) = address {
            screen::say(format_args!("goodput: metrics on {address}metrics"));
        }
        let notifier = Notifier::connect();
        notifier.notify("READY=1");
        let (nats, in_turn, room) = (&args.nats, RefCell::default(), OutcomesRoom::default());
        let coordinator = Coordinator { nats, mesh, text, every_s, signer, results, in_turn, room };
        let ended = coordinator.terms(desk, interrupt).await;
        notifier.notify("STOPPING=1");
        results.end().await;
        ended
    }
}

/// Time between the beginnings of two turns, seconds; none: there is one turn, and then the coordinator ends. One that stays waits
/// for ever.
fn every_s(args: &FleetRunArgs, mesh: &Mesh) -> Option<f64> {
    let of_file = mesh.every_s.filter(|_| !args.once);
    of_file.or_else(|| args.stay.then_some(f64::INFINITY))
}

/// How a coordinator ends that the user, or the service manager, ends. One that is to test the mesh once has not done so; of any
/// other, nothing more is expected.
fn interrupted(every_s: Option<f64>) -> Exit {
    if every_s.is_some() { Exit::Fine } else { Exit::CouldNot }
}

/// Who coordinates a mesh whenever nobody else does.
struct Coordinator<'a> {
    nats: &'a NatsArgs,
    mesh: &'a Mesh,
    text: String,
    /// See [`every_s`].
    every_s: Option<f64>,
    signer: Option<&'a Seed>,
    results: &'a Results<'a>,
    /// The id of the turn that it was in.
    in_turn: RefCell<Option<String>>,
    /// What was said of the room of outcomes.
    room: OutcomesRoom,
}

impl Coordinator<'_> {
    /// Coordinates whenever nobody else does, until all is done.
    async fn terms(&self, mut desk: Desk, interrupt: &Interrupt) -> Result<Exit> {
        let mut trouble = Trouble::default();
        loop {
            match self.term(&desk, interrupt).await {
                Err(why) if why.is::<Gone>() => {
                    screen::say(format_args!("goodput: {why}"));
                    match unless(interrupt, self.opened_again(&desk)).await {
                        Some(again) => desk = again?,
                        None => return Ok(interrupted(self.every_s)),
                    }
                    continue;
                }
                // A host that was busy or suspended, while another process made one test, is needed again after it.
                Err(why) if why.is::<Lost>() => {
                    screen::say(format_args!("goodput: {}; standing by", taken_over()));
                }
                // Whoever takes over while the servers elect their leader is there for that moment.
                Err(why) if trouble::is_away(&why) => trouble.pass(why)?,
                ended => return ended,
            }
            if unless(interrupt, sleep(BEAT)).await.is_none() {
                return Ok(interrupted(self.every_s));
            }
        }
    }

    /// Waits for the lease, and coordinates for as long as it has the lease.
    ///
    /// # Errors
    /// [`Lost`] if another process has taken it, [`Gone`] if NATS no longer has the streams.
    async fn term(&self, desk: &Desk, interrupt: &Interrupt) -> Result<Exit> {
        let lease = Lease::new();
        let taken = tokio::select! {
            taken = lease.take(desk, interrupt, false) => taken?,
            lost = desk.places.lost() => return Err(lost),
        };
        let held = match taken {
            Taken::Held(held) => held,
            // It waits for as long as someone else has it.
            Taken::Rival(_) | Taken::Interrupted => return Ok(interrupted(self.every_s)),
        };
        let ended = self.coordinated(desk, &lease, &held, interrupt).await;
        held.release().await;
        ended
    }

    /// The places again, after some of them were gone. While the servers elect their leader, tries again.
    async fn opened_again(&self, before: &Desk) -> Result<Desk> {
        let mut trouble = Trouble::default();
        loop {
            match Desk::open(self.nats, Some(&before.places.bus)).await {
                Err(why) if trouble::may_pass(&why) => trouble.pass(why)?,
                opened => return opened,
            }
            sleep(BEAT).await;
        }
    }

    async fn coordinated(
        &self,
        desk: &Desk,
        lease: &Lease,
        held: &Held<'_>,
        interrupt: &Interrupt,
    ) -> Result<Exit> {
        let Self { mesh, signer, results, .. } = *self;
        let fence = lease.fence(desk, held).await?;
        screen::say(format_args!("goodput: {}", lease.taken_over(fence.has_predecessor)));
        results.begin_anew();
        let demand = Demand::new(&desk.wanted);
        let places = &desk.places;
        let agents = Agents::new(places, mesh, signer.map(Seed::public), fence.token);
        let testing = Testing {
            places,
            held,
            fence,
            signer,
            mesh,
            results,
            demand: &demand,
            interrupt,
            agents,
            trouble: RefCell::default(),
            room: Testing::room(),
            printed: Printed::new(&places.turns),
        };
        let (text, in_turn, room) = (&*self.text, &self.in_turn, &self.room);
        let (every_s, revision) = (self.every_s, Cell::new(None));
        let turns = Turns { testing: &testing, text, every_s, revision, in_turn, room };
        tokio::select! {
            lost = held.keep() => Err(lost),
            never = demand.collect() => never,
            never = results.watch_agents(&places.agents) => never,
            gone = places.lost() => Err(gone),
            ended = turns.run() => ended,
        }
    }
}

/// The metrics, served as long as this process runs, if they are wanted, and where.
async fn metrics(args: &FleetRunArgs, mesh: &Mesh) -> Result<Option<(FleetMetrics, String)>> {
    let Some(address) = args.metrics else { return Ok(None) };
    let metrics = FleetMetrics::new(mesh);
    let listening = goodput_web::listen(address, "--metrics", None).await?;
    let url = listening.url()?;
    let served = metrics.clone();
    tokio::spawn(listening.serve(goodput_web::Metrics::new(move || served.text())));
    Ok(Some((metrics, url)))
}

/// What to say of turns without a test.
const NO_TEST: &str = "no test in this turn: the budgets pay for fewer turns than `every` asks for; `goodput fleet plan` has \
                       the numbers";

/// The turns of a mesh.
struct Turns<'a> {
    testing: &'a Testing<'a>,
    text: &'a str,
    /// See [`every_s`].
    every_s: Option<f64>,
    /// Of the turn on the bus, as it was read or written last; none: there is none.
    revision: Cell<Option<u64>>,
    /// The id of the turn that this process was in.
    in_turn: &'a RefCell<Option<String>>,
    room: &'a OutcomesRoom,
}

impl Turns<'_> {
    /// Tests the mesh, turn by turn.
    async fn run(&self) -> Result<Exit> {
        let Testing { mesh, results, held, .. } = self.testing;
        let (mut trouble, mut was_empty) = (Trouble::default(), false);
        loop {
            let last = match self.last().await {
                Ok(last) => last,
                Err(why) => {
                    trouble.pass(why)?;
                    match self.interrupted_within(BEAT).await {
                        true => return Ok(interrupted(self.every_s)),
                        false => continue,
                    }
                }
            };
            if self.every_s.is_none() && self.is_done(last.as_ref()) {
                bail!("another coordinator has made this turn meanwhile, and has its results");
            }
            let now_s = held.now_s();
            let turn = match next(last.as_ref(), self.text, self.every_s, now_s) {
                Next::Wait(seconds) => match self.testing.idle(seconds).await? {
                    false => return Ok(interrupted(self.every_s)),
                    true => continue,
                },
                // Its time counts from the window on: otherwise the next one would follow at once.
                Next::Begin(number) => {
                    let turn = self.new_turn(number, now_s + opens_in_s(mesh, now_s));
                    tracing::info!("the turn {} begins", turn.id);
                    turn
                }
                Next::GoOn => match last {
                    Some(last) => {
                        screen::say(format_args!(
                            "goodput: going on with the turn {}; what is printed already is not printed again",
                            last.id
                        ));
                        last
                    }
                    None => bail!("the bus has lost the turn that was to go on"),
                },
            };
            self.in_turn.replace(Some(turn.id.clone()));
            let look = self.room.look(&self.testing.places.outcomes, now_s);
            unless(self.testing.interrupt, look).await;
            let tasks = goodput_fleet::tasks(mesh, &turn);
            if !self.write(&turn).await? || !self.begin_to_print(&turn).await? {
                return Ok(interrupted(self.every_s));
            }
            if !self.testing.test(&tasks).await?
                || !self.write(&Turn { has_ended: true, ..turn.clone() }).await?
            {
                self.say_part(&tasks)?;
                return Ok(interrupted(self.every_s));
            }
            let is_empty = tasks.count() == 0;
            match is_empty {
                false => results.print_matrix(held.now_s())?,
                true if was_empty => {}
                true => screen::line(format_args!("{}  {NO_TEST}", now()))?,
            }
            was_empty = is_empty;
            if self.every_s.is_none() {
                return Ok(results.exit());
            }
        }
    }

    /// Looks how much of a turn is printed. While the bus is away, tries again. `false`: the user ended it.
    async fn begin_to_print(&self, turn: &Turn) -> Result<bool> {
        let mut trouble = Trouble::default();
        loop {
            match unless(self.testing.interrupt, self.testing.printed.begin(&turn.id)).await {
                None => return Ok(false),
                Some(Ok(())) => return Ok(true),
                Some(Err(why)) => trouble.pass(why)?,
            }
            if self.interrupted_within(BEAT).await {
                return Ok(false);
            }
        }
    }

    /// Says what there is of a turn that the user ends: to whom was to have it once, also its matrix.
    fn say_part(&self, tasks: &Tasks<'_>) -> Result<()> {
        let Testing { results, held, .. } = self.testing;
        let has_some = results.say_part(tasks.rounds().flatten().flatten());
        if self.every_s.is_none() && has_some {
            results.print_matrix(held.now_s())?;
        }
        Ok(())
    }

    /// Whether someone else has ended the turn that this process was in.
    fn is_done(&self, last: Option<&Turn>) -> bool {
        let last = last.filter(|turn| turn.has_ended);
        last.is_some_and(|turn| self.in_turn.borrow().as_ref() == Some(&turn.id))
    }

    fn new_turn(&self, number: u64, began_s: f64) -> Turn {
        let id = format!("{:x}-{:08x}", began_s as u64, rand::random::<u32>());
        Turn { id, number, mesh: self.text.to_owned(), began_s, has_ended: false }
    }

    /// The newest turn; what can't be one is none.
    async fn last(&self) -> Result<Option<Turn>> {
        let entry = self.testing.places.turns.entry(TURN).await?;
        self.revision.set(entry.as_ref().map(|entry| entry.revision));
        let Some(entry) = entry else { return Ok(None) };
        let turn = Turn::read(&entry.value);
        if turn.is_none() {
            let bucket = self.testing.places.turns.bucket();
            screen::say(format_args!(
                "goodput: the key {TURN} of the bucket {bucket} has no turn of goodput's; find who else writes there. A new \
                 turn begins"
            ));
        }
        Ok(turn)
    }

    /// Writes the newest turn over the one that was read. Whoever is not sure of the lease may have a successor. While the
    /// bus is away, tries again. `false`: the user ended it.
    async fn write(&self, turn: &Turn) -> Result<bool> {
        let mut trouble = Trouble::default();
        loop {
            tokio::select! {
                () = self.testing.held.wait_until_sure() => {}
                () = self.testing.interrupt.raised() => return Ok(false),
            }
            match self.try_to_write(turn).await {
                Ok(true) => return Ok(true),
                Ok(false) => return Err(taken_over()),
                Err(why) => trouble.pass(why)?,
            }
            if self.interrupted_within(BEAT).await {
                return Ok(false);
            }
        }
    }

    /// Whether it is written; otherwise another coordinator has written one since.
    async fn try_to_write(&self, turn: &Turn) -> Result<bool> {
        let turns = &self.testing.places.turns;
        let written = match self.revision.get() {
            None => turns.create(TURN, turn).await?,
            Some(revision) => turns.update(TURN, turn, revision).await?,
        };
        if written.is_some() {
            self.revision.set(written);
            return Ok(true);
        }
        // Only the answer to the last try may have been lost.
        Ok(self.last().await?.as_ref() == Some(turn))
    }

    async fn interrupted_within(&self, time: Duration) -> bool {
        unless(self.testing.interrupt, sleep(time)).await.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: FleetRunArgs,
    }

    #[test]
    fn who_only_waits_or_goes_on_ends_well_and_who_was_to_test_once_has_not_done_so() {
        let ends = |options: &[&str], every: &str| {
            let line = [&["x", "mesh.toml", "--nats", "nats://x"][..], options].concat();
            let args = Line::parse_from(line).args;
            let text = format!("[test]\n{every}\n[site.a]\ntarget = \"a\"\n[site.b]\n");
            let every_s = every_s(&args, &Mesh::parse("x", &text).unwrap());
            (every_s, interrupted(every_s))
        };
        assert_eq!(ends(&[], "every = \"1h\""), (Some(3600.0), Exit::Fine));
        for options in [&[][..], &["--once"]] {
            assert_eq!(ends(options, ""), (None, Exit::CouldNot));
        }
        assert_eq!(ends(&["--once"], "every = \"1h\""), (None, Exit::CouldNot));
        assert_eq!(ends(&["--stay"], ""), (Some(f64::INFINITY), Exit::Fine));
        assert_eq!(ends(&["--stay"], "every = \"1h\""), (Some(3600.0), Exit::Fine));
    }
}
