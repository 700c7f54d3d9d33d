//! One measurement at the near end: both ends agree, the flows run until they are long enough, both ends report.

use std::sync::Arc;
use std::time::Instant;

use goodput_kernel::Context;
use goodput_model::{
    Connection, Direction, End, EndName, Fetches, Known, Missing, Plan, Sample, Snapshot, Transport,
};
use goodput_wire::session::{Action, Input};

use super::agree::{self, Concluding, Removal};
use super::client::{Client, unexpected};
use super::clocks::{self, Comparing};
use super::far_account::FarAccount;
use super::host_before::{HostBefore, affinity, path};
use super::kept_samples::KeptSamples;
use super::latency::{self, Prober, Probing};
use super::progress::Progress;
use super::starts::Starts;
use crate::control::target::FileTarget;
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::result::measurement::{Incomplete, Measurement};
use crate::run::end_run::{EndRun, Seen};
use crate::run::length::longest;
use crate::run::movers::{self, Movers};
use crate::run::prepared::Prepared;
use crate::run::storage;
use crate::run::traffic::connections;
use crate::run::watched::Failure;
use crate::threads::blocking;

/// How often this end sends a sign of life to a far end that sends datagrams, seconds: several times within the 15 s
/// after which it stops.
const SHOW_LIFE_EVERY_S: f64 = 3.0;

/// A measurement that both ends have agreed on.
pub struct NearRun<'a> {
    pub(super) client: &'a mut Client,
    /// This end's flows.
    pub(super) run: EndRun,
    pub(super) kept: KeptSamples,
    pub(super) far_report: Option<Known<End>>,
    pub(super) account: FarAccount,
    /// When the far end last got a sign of life, by this end's samples.
    life_shown_s: f64,
    pub(super) prober: Option<Prober>,
    pub(super) comparing: Option<Comparing>,
    /// When both ends began, as far as this is known during the run.
    starts: Starts,
    pub(super) connections: Vec<Connection>,
    /// Whether anything more is expected from the far end.
    pub(super) hears: bool,
    /// What becomes known of the requests to a file server.
    pub(super) log: Option<Concluding>,
    /// What the log had when the flows were over.
    pub(super) fetches: Option<Fetches>,
    /// Removes what is stored at a file server or on a mount, also when dropped.
    scratch: Option<Removal>,
    /// What is missing from the measurement, if anything is.
    pub(super) incomplete: Option<Incomplete>,
    pub(super) doubts: Vec<String>,
}

impl<'a> NearRun<'a> {
    /// Proposes the plan, opens the flows and takes the snapshot before.
    pub async fn agree(client: &'a mut Client, plan: &Plan) -> Result<Self, EngineError> {
        if let Some(why) = goodput_wire::check::too_slow(plan) {
            return Err(EngineError::Flow(why));
        }
        check_file_options(client, plan)?;
        let mut plan = plan.clone();
        if client.target.file.as_ref().is_some_and(FileTarget::is_decoded) {
            movers::decoded(&mut plan, EndName::Near)?;
        }
        let (plan, stores) = agree::files(client, &plan).await?;
        let affinity = affinity(client, &plan).await?;
        let movers = match client.target.mounted {
            Some(_) => Movers::of_file(&plan),
            None => Movers::of(&plan, EndName::Near),
        };
        let movers = movers.map_err(|why| EngineError::Flow(format!("near end: {why}")))?;
        let proposed = movers::for_peer(&plan, client.far_end().chooses_movers)?;
        client.conversation.tell(Input::Propose(Box::new(storage::for_peer(&proposed))));
        let order = agree::order(client).await?;
        let early = HostBefore::early(client, &plan).await?;
        let agreed = agree::flows(client, &plan, order).await?;
        let peer = agreed.opened.peer;
        let mut connections = connections(&agreed.opened.flows);
        if let Some(hashes) = &agreed.hashes {
            hashes.note(&plan.flow_plans(), &mut connections);
        }
        let prober = plan.latency.then(|| Prober::of(client, &plan, agreed.heard.echo));
        let comparing = Comparing::begin(client, &plan, agreed.heard.echo);
        let echoes = comparing.last_heard();
        let comparing = Some(comparing);
        let early = early.zip(peer).and_then(|(look, peer)| look.towards(peer.ip()));
        let (mount, of_file) = agreed.mount.unzip();
        let context = Context { mount, ..path(peer, &plan) };
        let (end, observes) = (EndName::Near, plan.observe);
        let mut doubts = agreed.opened.doubts;
        doubts.extend(stores.doubts.iter().cloned());
        let own = Prepared { plan, end, stores, affinity, movers, context, observes };
        let own = Arc::new(own);
        let control = client.conversation.control();
        let (flows, log, scratch) = (agreed.opened.flows, agreed.log, agreed.scratch);
        let mut run = EndRun::start(Arc::clone(&own), flows, &client.cap, control, echoes)?;
        doubts.extend(agree::ready(client, agreed.heard).await?);
        doubts.extend(clocks::doubt(client.clock));
        let mut before = match early {
            Some(before) => before,
            None => own.look().await?,
        };
        clocks::note(&mut before, client.clock);
        if let Some(of_file) = of_file {
            before.facts.extend(of_file.facts);
            before.missing.extend(of_file.missing);
        }
        run.set_before(before);
        Ok(Self { connections, prober, comparing, doubts, log, scratch, ..Self::new(client, run) })
    }

    fn new(client: &'a mut Client, run: EndRun) -> Self {
        let account = FarAccount::of(&client.peer, client.far_end());
        let kept = KeptSamples::new(run.plan(), client.far_end().reports);
        Self {
            client,
            run,
            kept,
            far_report: None,
            account,
            life_shown_s: 0.0,
            prober: None,
            comparing: None,
            starts: Starts::default(),
            connections: Vec::new(),
            hears: true,
            log: None,
            fetches: None,
            scratch: None,
            incomplete: None,
            doubts: Vec::new(),
        }
    }

    /// Lets the payload move until the plan's length is reached, then gathers both ends' reports.
    pub async fn run(
        mut self,
        interrupt: &Interrupt,
        listener: &mut Listener<'_>,
    ) -> Result<Measurement, EngineError> {
        let idle = self.idle(interrupt, listener).await?;
        self.first_exchanges(listener).await?;
        self.starts = Starts::told(Instant::now());
        self.client.conversation.tell(Input::Begin);
        let loaded = self.prober.as_ref().map(Prober::start);
        if let Err(why) = self.move_payload(interrupt, listener).await {
            let why = self.own_reason(&why, interrupt, listener).await.unwrap_or(why);
            if !self.has_measured() {
                return Err(why);
            }
            self.cut_short(why).await;
        }
        self.finish(interrupt.is_raised() || !self.hears);
        loaded.iter().for_each(Probing::finish);
        listener(Event::Ended);
        self.gather(interrupt, listener).await;
        // Before anything that takes time without moving payload.
        if let Some(conclude) = self.log.take() {
            let (fetches, doubt) = conclude();
            self.fetches = Some(fetches);
            self.doubts.extend(doubt);
        }
        self.remove_scratch().await;
        self.check_source()?;
        let comparing = self.last_exchanges();
        let loaded = self.probed(loaded, listener).await.unwrap_or_else(|why| {
            self.doubts.push(format!("the latency under load is not known: {why}"));
            None
        });
        let probed = idle.zip(loaded);
        let after = self.run.look_again().await;
        let after = after.unwrap_or_else(|why| {
            self.doubts.push(format!("the near end was not observed afterwards: {why}"));
            Snapshot::default()
        });
        let asked = self.compared(comparing, listener).await;
        let asked = asked.unwrap_or_else(|why| Err(Missing::because(why.to_string())));
        let measurement = self.into_measurement(after, listener);
        let latency = probed.map(|(idle, loaded)| latency::latency(idle, loaded, &measurement));
        let clocks = clocks::conclude(asked, &measurement.near, &measurement.far);
        Ok(Measurement { latency, clocks, ..measurement })
    }

    /// Starts the flows, and watches them until they have moved what the plan wants.
    async fn move_payload(
        &mut self,
        interrupt: &Interrupt,
        listener: &mut Listener<'_>,
    ) -> Result<(), EngineError> {
        let began = self.run.begin(longest(self.run.plan()))?;
        self.starts.began(began);
        listener(Event::Opened { connections: self.connections.clone() });
        listener(Event::Began);
        while !self.progress().is_enough() {
            tokio::select! {
                seen = self.run.next() => self.seen(seen, listener)?,
                action = self.client.next() => self.acted(action?, listener)?,
                () = interrupt.raised() => {
                    let after = began.elapsed().as_secs_f64();
                    self.doubts.push(format!("interrupted after {after:.1} s"));
                    break;
                }
            }
        }
        if self.progress().ended_before_it_moved() && !interrupt.is_raised() {
            let why = "the far end ended the test before a single byte had moved; it may be busy, or accept only known clients";
            let words = if self.hears { self.client.refusal().await } else { None };
            return Err(words.unwrap_or_else(|| EngineError::BrokenOff(why.into())));
        }
        Ok(())
    }

    fn progress(&self) -> Progress<'_> {
        Progress {
            plan: self.run.plan(),
            far_end: self.client.far_end(),
            kept: &self.kept,
            starts: &self.starts,
            limit_reached: self.run.limit_reached(),
            near_ended: self.run.has_ended(),
            far_reported: self.far_report.is_some(),
        }
    }

    pub(super) fn seen(
        &mut self,
        seen: Result<Seen, Failure>,
        listener: &mut Listener<'_>,
    ) -> Result<(), EngineError> {
        let seen = seen.map_err(|failure| {
            let why = format!("near end: {}", failure.why);
            match failure {
                Failure { not_permitted: true, .. } => EngineError::Forbidden(why),
                Failure { by_peer: true, .. } => EngineError::BrokenOff(why),
                Failure { .. } => EngineError::Flow(why),
            }
        });
        match seen? {
            Seen::Sample(sample) => {
                if self.run.plan().omit_s > 0.0 && self.client.far_end().is_told_without_warm_up {
                    self.client.conversation.tell(Input::Sampled(sample.clone()));
                }
                self.show_life(&sample);
                self.kept.take(EndName::Near, *sample, listener);
            }
            Seen::Limit => {}
            Seen::Ended { last, totals } => {
                self.client.conversation.tell(Input::Ended(last));
                self.account.came_on_flows(totals);
            }
        }
        Ok(())
    }

    /// Sends a sign of life now and then to a far end that sends datagrams. Without it the far end stops, and its own
    /// words may be lost among its datagrams.
    fn show_life(&mut self, sample: &Sample) {
        let plan = self.run.plan();
        let sends = plan.direction.senders().contains(&EndName::Far);
        let is_due = sample.at_s - self.life_shown_s >= SHOW_LIFE_EVERY_S;
        let wants = self.client.far_end().needs_life_signs;
        if plan.transport == Transport::Udp && sends && is_due && wants {
            self.life_shown_s = sample.at_s;
            let sample = Sample { flows: Vec::new(), ..sample.clone() };
            self.client.conversation.tell(Input::Sampled(Box::new(sample)));
        }
    }

    pub(super) fn acted(
        &mut self,
        action: Action,
        listener: &mut Listener<'_>,
    ) -> Result<(), EngineError> {
        match action {
            Action::PeerSampled(sample) => {
                self.starts.heard(Instant::now(), sample.at_s);
                self.kept.take(EndName::Far, *sample, listener);
            }
            Action::PeerTotals(totals) => self.account.came(*totals),
            Action::PeerReported(report) => self.far_report = Some(report.map(|end| *end)),
            Action::Note(text) => {
                self.doubts.push(text.clone());
                listener(Event::Note { text });
            }
            // The session emits these for a driver that waits for its word; this driver went ahead.
            Action::Begin | Action::Finish | Action::FinishSoon => {}
            other => return Err(unexpected(&self.client.target, &other)),
        }
        Ok(())
    }

    /// Stops the senders of both ends. From now on, receivers count queues emptying, unless the flows ended on their
    /// own.
    fn finish(&mut self, soon: bool) {
        self.kept.stop(!self.progress().has_an_end_ended());
        let soon = soon && self.client.far_end().finishes_soon;
        self.run.finish(soon);
        if self.hears {
            self.client.conversation.tell(if soon {
                Input::FinishSoon
            } else {
                Input::Finish(None)
            });
        }
    }

    /// Removes what was stored at a file server or on a mount.
    async fn remove_scratch(&mut self) {
        let Some(scratch) = self.scratch.take() else { return };
        match blocking(scratch).await {
            Ok(left) => self.doubts.extend(left),
            Err(why) => self.doubts.push(format!("what was stored: {why}")),
        }
    }

    /// Fails if a source of this end gave nothing, as a pipe does that nobody writes to.
    fn check_source(&self) -> Result<(), EngineError> {
        let plan = self.run.plan();
        let storage = &plan.storage;
        let sends = plan.direction.senders().contains(&EndName::Near);
        let Some(source) = storage.source.as_ref().filter(|_| sends) else { return Ok(()) };
        let headers = u64::from(storage.header_bytes) * u64::from(plan.flows);
        if self.kept.near().last().is_none_or(|last| last.sent_bytes > headers) {
            return Ok(());
        }
        let name = source.name();
        Err(EngineError::Flow(format!("{name} gave no data: there is nothing to measure")))
    }
}

/// Checks that the file options fit the kind of target.
fn check_file_options(client: &Client, plan: &Plan) -> Result<(), EngineError> {
    let target = &client.target;
    let why = match (target.is_nfs(), target.mounted.is_some()) {
        (_, true) if plan.nfs.slots.is_some() => {
            "nfs.slots is for targets that begin with nfs://; the slots of a mount are the kernel's \
             (sunrpc.tcp_slot_table_entries, nfs.max_session_slots)"
        }
        (true, _) if plan.nfs.nconnect.is_some() => {
            "nfs.nconnect is for files on NFS mounts: name the file by its path"
        }
        (true, _) if plan.nfs.wsize_bytes.is_some() && plan.direction == Direction::Reverse => {
            "nfs.wsize is for writing: add --write, or take nfs.rsize"
        }
        (true, _) if plan.nfs.rsize_bytes.is_some() && plan.direction == Direction::Send => {
            "nfs.rsize is for reading: leave out --write, or take nfs.wsize"
        }
        (_, false) if !plan.mount.is_default() => {
            "mount.direct is for files on mounts: name the file by its path"
        }
        (false, false) if !plan.nfs.is_default() => {
            "settings of NFS are for targets that begin with nfs://, or that are files on NFS mounts"
        }
        _ if plan.fetches.is_some() && target.file.is_none() => {
            "a number of fetches is for targets that are files at servers, as http://HOST/FILE"
        }
        _ => return Ok(()),
    };
    Err(EngineError::Flow(why.into()))
}
