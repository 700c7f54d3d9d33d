//! One measurement seen from the near end: agree, open the flows, watch, stop, gather.

pub mod agree;
pub mod client;
pub mod clocks;
pub mod flows;
pub mod foreign;
pub mod gather;
pub mod keeping;
pub mod latency;
pub mod length;
pub mod patience;
pub mod probes;
pub mod shown;
pub mod starts;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use goodput_kernel::Context;
use goodput_model::{
    Connection, End, EndName, Known, Missing, MoverChoice, OwnClock, Placement, Plan, Sample,
    Snapshot, Transport,
};
use goodput_wire::session::{Action, Input};

use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::result::measurement::{Incomplete, Measurement};
use crate::run::affinity::Seating;
use crate::run::length::longest;
use crate::run::movers::{self, Movers};
use crate::run::observe::{observe, usage_after, usage_before};
use crate::run::storage;
use crate::run::traffic::{Cap, Traffic, Watched, connections};
use client::{Client, unexpected};
use clocks::Comparing;
use foreign::Account;
use keeping::Keeping;
use latency::{Prober, Probing};
use starts::Starts;

/// How often a far end that sends datagrams is shown that this end lives, seconds: several times within the
/// 15 s after which it stops.
const LIFE_SHOWN_EVERY_S: f64 = 3.0;

/// A measurement that both ends have agreed on.
pub struct NearRun<'a> {
    client: &'a mut Client,
    plan: Plan,
    traffic: Traffic,
    context: Context,
    before: Snapshot,
    /// CPU time and memory in the moment in which this end's flows had ended.
    used: Snapshot,
    kept: Keeping,
    /// Whether payload has moved for as long as the plan lets it.
    limit_reached: bool,
    near_ended: bool,
    far_report: Option<Known<End>>,
    account: Account,
    /// When the far end was shown last that this end lives, by this end's samples.
    life_shown_s: f64,
    prober: Option<Prober>,
    comparing: Option<Comparing>,
    /// When both ends began, as far as it is known while they go on.
    starts: Starts,
    /// The clock of this end's samples, once they have ended.
    clock: Option<OwnClock>,
    connections: Vec<Connection>,
    placement: Option<Placement>,
    movers: Vec<MoverChoice>,
    /// What this end has read, kept open until the far end has reported.
    sockets: Vec<Arc<OwnedFd>>,
    /// Whether anything more of the far end is waited for.
    hears: bool,
    /// What is lacking of the measurement, once anything is.
    incomplete: Option<Incomplete>,
    doubts: Vec<String>,
}

/// What this host is before payload moves.
struct Look {
    context: Context,
    before: Snapshot,
}

impl Look {
    async fn towards(peer: SocketAddr, plan: &Plan) -> Result<Self, EngineError> {
        let context = Context { device: plan.socket.device.clone(), ..Context::towards(peer) };
        let before = observe(plan.observe, context.clone()).await?;
        Ok(Self { context, before })
    }

    /// A look before the flows are there. Other programs send as soon as they have them, and what they
    /// send must not wait until this end has looked around.
    async fn early(client: &Client, plan: &Plan) -> Result<Option<Self>, EngineError> {
        match client.addresses.first() {
            Some(peer) if !client.peer.is_goodput() => Self::towards(*peer, plan).await.map(Some),
            _ => Ok(None),
        }
    }
}

impl<'a> NearRun<'a> {
    /// Proposes the plan, opens the flows and takes the snapshot before.
    pub async fn agree(client: &'a mut Client, plan: &Plan) -> Result<Self, EngineError> {
        if let Some(why) = goodput_wire::check::too_slow(plan) {
            return Err(EngineError::Flow(why));
        }
        let (plan, stores) = agree::files(client, plan).await?;
        let plan = &plan;
        let seating = seating(client, plan).await?;
        let movers = Movers::of(plan, EndName::Near)
            .map_err(|why| EngineError::Flow(format!("near end: {why}")))?;
        let chosen = movers.chosen();
        let proposed = storage::for_peer(&movers::for_peer(plan, client.peer.is_goodput())?);
        client.conversation.tell(Input::Propose(Box::new(proposed)));
        let order = agree::order(client).await?;
        let early = Look::early(client, plan).await?;
        let agreed = agree::flows(client, plan, order).await?;
        let peer = agreed.opened.peer;
        let mut connections = connections(&agreed.opened.flows);
        if let Some(hashes) = &agreed.hashes {
            hashes.note(&plan.flow_plans(), &mut connections);
        }
        let prober = plan.latency.then(|| Prober::of(client, plan, agreed.meanwhile.echo));
        let comparing = Some(Comparing::begin(client, plan, agreed.meanwhile.echo));
        let flows = agreed.opened.flows;
        let traffic =
            Traffic::start(plan, EndName::Near, flows, &Cap::default(), &stores, seating, movers)?;
        traffic.hear(plan, client.conversation.control())?;
        let notes = agree::ready(client, agreed.meanwhile).await?;
        let early = early.filter(|look| look.context.peer == Some(peer.ip()));
        let Look { context, mut before } = match early {
            Some(look) => look,
            None => Look::towards(peer, plan).await?,
        };
        clocks::note(&mut before, client.clock);
        stores.note(&mut before);
        let mut doubts = agreed.opened.doubts;
        doubts.extend(stores.doubts);
        doubts.extend(notes);
        doubts.extend(clocks::doubt(client.clock));
        let run = Self::new(client, plan.clone(), traffic, context, before, doubts);
        Ok(Self { connections, prober, comparing, movers: chosen, ..run })
    }

    fn new(
        client: &'a mut Client,
        plan: Plan,
        traffic: Traffic,
        context: Context,
        before: Snapshot,
        doubts: Vec<String>,
    ) -> Self {
        let account = Account::of(&client.peer);
        let kept = Keeping::new(&plan, client.peer.is_goodput());
        Self {
            client,
            plan,
            traffic,
            context,
            before,
            used: Snapshot::default(),
            kept,
            limit_reached: false,
            near_ended: false,
            far_report: None,
            account,
            life_shown_s: 0.0,
            prober: None,
            comparing: None,
            starts: Starts::default(),
            clock: None,
            connections: Vec::new(),
            placement: None,
            movers: Vec::new(),
            sockets: Vec::new(),
            hears: true,
            incomplete: None,
            doubts,
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
        usage_before(self.plan.observe, &self.context, &mut self.before);
        if let Err(why) = self.move_payload(interrupt, listener).await {
            if !self.has_measured() {
                return Err(why);
            }
            self.cut_short(why).await;
        }
        self.finish(interrupt.is_raised() || !self.hears);
        loaded.iter().for_each(Probing::finish);
        listener(Event::Ended);
        self.gather(interrupt, listener).await;
        self.check_source()?;
        let comparing = self.last_exchanges();
        let loaded = self.probed(loaded, listener).await.unwrap_or_else(|why| {
            self.doubts.push(format!("the latency under load is not known: {why}"));
            None
        });
        let probed = idle.zip(loaded);
        let after = observe(self.plan.observe, self.context.clone()).await;
        let mut after = after.unwrap_or_else(|why| {
            self.doubts.push(format!("the near end was not observed afterwards: {why}"));
            Snapshot::default()
        });
        after.facts.append(&mut self.used.facts);
        let asked = self.compared(comparing, listener).await;
        let asked = asked.unwrap_or_else(|why| Err(Missing::because(why.to_string())));
        let measurement = self.into_measurement(after, listener);
        let latency = probed.map(|(idle, loaded)| latency::latency(idle, loaded, &measurement));
        let clocks = clocks::conclude(asked, &measurement.near, &measurement.far);
        Ok(Measurement { latency, clocks, ..measurement })
    }

    /// Lets the flows begin, and watches them until they have moved what the plan wants.
    async fn move_payload(
        &mut self,
        interrupt: &Interrupt,
        listener: &mut Listener<'_>,
    ) -> Result<(), EngineError> {
        let began = self.traffic.begin(&self.plan, longest(&self.plan))?;
        self.starts.began(began);
        listener(Event::Opened { connections: self.connections.clone() });
        listener(Event::Began);
        while !self.limit_reached && !self.is_long_enough() {
            tokio::select! {
                watched = self.traffic.next() => self.watched(watched, listener)?,
                action = self.client.next() => self.acted(action?, listener)?,
                () = interrupt.raised() => {
                    let after = began.elapsed().as_secs_f64();
                    self.doubts.push(format!("interrupted after {after:.1} s"));
                    break;
                }
            }
        }
        if self.ended_before_it_moved() && !interrupt.is_raised() {
            let why = "the far end ended the test before a single byte had moved; it may be busy, or let \
                       only clients in that it knows";
            let words = if self.hears { self.client.refusal().await } else { None };
            return Err(words.unwrap_or_else(|| EngineError::BrokenOff(why.into())));
        }
        Ok(())
    }

    /// Whether the far end has ended everything before payload moved: a protocol without words for a refusal
    /// closes its connections, which looks like the end of a test.
    fn ended_before_it_moved(&self) -> bool {
        let ended = self.near_ended || self.far_report.is_some();
        // An empty source of this end is told of as what it is.
        let sends = self.plan.direction.senders().contains(&EndName::Near);
        let own_source = sends && self.plan.storage.source.is_some();
        let moved = |last: &Sample| last.sent_bytes > 0 || last.received_bytes > 0;
        let any =
            [self.kept.near(), self.kept.far()].iter().any(|kept| kept.last().is_some_and(moved));
        ended && !self.limit_reached && !own_source && !any
    }

    fn watched(
        &mut self,
        watched: Watched,
        listener: &mut Listener<'_>,
    ) -> Result<(), EngineError> {
        match watched {
            Watched::Sample(sample) => {
                // What this end tells such a peer leaves the warm-up out as well.
                if self.plan.omit_s > 0.0 && !self.client.peer.is_goodput() {
                    self.client.conversation.tell(Input::Sampled(sample.clone()));
                }
                self.show_life(&sample);
                self.kept.take(EndName::Near, *sample, listener);
            }
            Watched::Limit => self.limit_reached = true,
            Watched::Ended(outcome) => {
                self.near_ended = true;
                self.used = usage_after(self.plan.observe, &self.context);
                let ending = outcome.map_err(|failure| {
                    let why = format!("near end: {}", failure.why);
                    if failure.by_peer {
                        EngineError::BrokenOff(why)
                    } else {
                        EngineError::Flow(why)
                    }
                })?;
                self.client.conversation.tell(Input::Ended(ending.last));
                self.placement = Some(ending.placement);
                self.clock = Some(ending.clock);
                self.sockets = ending.sockets;
                self.account.told_on_flows(ending.told);
            }
        }
        Ok(())
    }

    /// Tells a far end that sends datagrams now and then that this end lives: it stops otherwise, and what
    /// it says itself may be lost among its datagrams.
    fn show_life(&mut self, sample: &Sample) {
        let sends = self.plan.direction.senders().contains(&EndName::Far);
        let is_due = sample.at_s - self.life_shown_s >= LIFE_SHOWN_EVERY_S;
        if self.plan.transport == Transport::Udp && sends && is_due && self.client.peer.is_goodput()
        {
            self.life_shown_s = sample.at_s;
            let sample = Sample { flows: Vec::new(), ..sample.clone() };
            self.client.conversation.tell(Input::Sampled(Box::new(sample)));
        }
    }

    fn acted(&mut self, action: Action, listener: &mut Listener<'_>) -> Result<(), EngineError> {
        match action {
            Action::PeerSampled(sample) => {
                self.starts.heard(Instant::now(), sample.at_s);
                self.kept.take(EndName::Far, *sample, listener);
            }
            Action::PeerTold(totals) => self.account.told(*totals),
            Action::PeerReported(report) => self.far_report = Some(report.map(|end| *end)),
            Action::Note(text) => {
                self.doubts.push(text.clone());
                listener(Event::Note { text });
            }
            // The session says these for a driver that waits for its word; this one went ahead.
            Action::Begin | Action::Finish | Action::FinishSoon => {}
            other => return Err(unexpected(&self.client.target, &other)),
        }
        Ok(())
    }

    /// Stops the senders of both ends. What the receivers count from here on is the emptying of
    /// queues, unless the flows ended by themselves.
    fn finish(&mut self, soon: bool) {
        self.kept.stop(!self.near_ended && self.far_report.is_none());
        let soon = soon && self.client.peer.is_goodput();
        if soon {
            self.traffic.finish_soon();
        } else {
            self.traffic.finish();
        }
        if self.hears {
            self.client.conversation.tell(if soon {
                Input::FinishSoon
            } else {
                Input::Finish(None)
            });
        }
    }

    /// Fails where this end had a source that gave nothing, as a pipe may that nobody writes to.
    fn check_source(&self) -> Result<(), EngineError> {
        let storage = &self.plan.storage;
        let sends = self.plan.direction.senders().contains(&EndName::Near);
        let Some(source) = storage.source.as_ref().filter(|_| sends) else { return Ok(()) };
        let headers = u64::from(storage.header_bytes) * u64::from(self.plan.flows);
        if self.kept.near().last().is_none_or(|last| last.sent_bytes > headers) {
            return Ok(());
        }
        let name = source.name();
        Err(EngineError::Flow(format!("{name} gave not one byte: there is nothing to measure")))
    }
}

/// The CPUs of this end's flows, on the path to the target.
async fn seating(client: &Client, plan: &Plan) -> Result<Seating, EngineError> {
    let path =
        client.addresses.first().map_or_else(Context::default, |peer| Context::towards(*peer));
    let context = Context { device: plan.socket.device.clone(), ..path };
    Seating::of(plan, EndName::Near, &context)
        .await
        .map_err(|why| EngineError::Flow(format!("near end: {why}")))
}
