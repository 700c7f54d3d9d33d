//! One measurement at the near end: both ends agree, the flows run until they are long enough, both ends report.

use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_kernel::Context;
use goodput_model::{EndName, Known, Missing, Plan, Snapshot};
use goodput_wire::session::Input;

use super::agree::{self, Concluding, ScratchRemoval};
use super::await_reports::await_reports;
use super::both_ends::BothEnds;
use super::client::Client;
use super::clocks::{self, Comparing, IdleSides};
use super::far_start::FarStart;
use super::host_before::{HostBefore, affinity, path};
use super::latency::{self, Prober, Probing};
use super::own_check;
use super::probes::{Probes, compared, probed};
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::result::measurement::{FarCaptured, Measurement};
use crate::run::end_run::EndRun;
use crate::run::movers;
use crate::run::prepared::Prepared;
use crate::run::storage;
use crate::run::traffic::connections;
use crate::threads::blocking;

/// A measurement that both ends have agreed on.
pub struct NearRun<'a> {
    ends: BothEnds<'a>,
    probes: Probes,
    /// What becomes known of the requests to a file server.
    log: Option<Concluding>,
    /// Removes what is stored at a file server or on a mount, also when dropped.
    scratch: Option<ScratchRemoval>,
    /// How long this end sends nothing before the payload.
    rest: Duration,
}

/// How long this end stays silent after it has told the far end to begin, if it rests at all: what carried that and the answer
/// takes a part of what a policer lets through at once.
const REST_AFTER_BEGIN: Duration = Duration::from_millis(50);

impl<'a> NearRun<'a> {
    /// Proposes the plan, opens the flows and takes the snapshot before.
    pub async fn agree(client: &'a mut Client, plan: &Plan) -> Result<Self, EngineError> {
        let (mut plan, movers) = own_check::movers(&client.target, plan)?;
        let wants_capture = plan.far_capture;
        plan.far_capture &= client.far_end().captures;
        let (plan, stores) = agree::files(client, &plan).await?;
        let affinity = affinity(client, &plan).await?;
        let proposed = movers::for_peer(&plan, client.far_end().chooses_movers)?;
        client.conversation.feed(Input::Propose(Box::new(storage::for_peer(&proposed))));
        let order = agree::order(client).await?;
        let early = HostBefore::early(client, &plan).await?;
        // The clocks are compared while the flows open: both take round trips of an idle path.
        let echo = order.echo();
        let comparing = Comparing::begin(client, &plan, echo);
        let agreed = agree::flows(client, &plan, order).await?;
        let peer = agreed.opened.peer;
        let mut connections = connections(&agreed.opened.flows);
        if let Some(hashes) = &agreed.hashes {
            hashes.note(&plan.flow_plans(), &mut connections);
        }
        let prober = plan.latency.then(|| Prober::of(client, &plan, echo));
        let echoes = comparing.last_heard();
        let early = early.zip(peer).and_then(|(look, peer)| look.towards(peer.ip()));
        let (mount, of_file) = agreed.mount.unzip();
        let context = Context { mount, ..path(peer, &plan) };
        let (end, observes) = (EndName::Near, plan.observe);
        let mut doubts = agreed.opened.doubts;
        doubts.extend(stores.doubts.iter().cloned());
        let own = Prepared { plan, end, stores, affinity, movers, context, observes };
        let own = Arc::new(own);
        let control = client.conversation.control();
        let far_capture = wants_capture.then(|| far_capture(client, agreed.heard.capture.clone()));
        let (flows, log, scratch) = (agreed.opened.flows, agreed.log, agreed.scratch);
        // The end that asks for each part is the end that stops.
        let is_asked = flows.iter().any(|flow| flow.bodies.is_some() || flow.file.is_some());
        let mut run = EndRun::start(Arc::clone(&own), flows, &client.rate_limits, control, echoes)?;
        let far_end_sends = own.plan.direction.senders().contains(&EndName::Far);
        if far_end_sends && !client.far_end().reports && !is_asked {
            run.await_far_end(client.far_end().announces_its_stop);
        }
        let look = async {
            match early {
                Some(before) => Ok(before),
                None => own.look().await,
            }
        };
        // The far end looks at its host at the same time.
        let (notes, mut before) = tokio::try_join!(agree::ready(client, agreed.heard), look)?;
        doubts.extend(notes);
        doubts.extend(clocks::doubt(client.clock));
        clocks::note(&mut before, client.clock);
        if let Some(of_file) = of_file {
            before.facts.extend(of_file.facts);
            before.missing.extend(of_file.missing);
        }
        run.set_before(before);
        let mut ends = BothEnds::new(client, run, connections, doubts);
        ends.far_capture = far_capture;
        Ok(Self {
            ends,
            probes: Probes::new(prober, comparing),
            log,
            scratch,
            rest: Duration::ZERO,
        })
    }

    /// Asks the far end's clock only on these sides of the payload.
    pub fn asking_on(mut self, sides: IdleSides) -> Self {
        self.probes.idle_sides = sides;
        self
    }

    /// Sends nothing for so long before the payload.
    pub fn resting_for(self, rest: Duration) -> Self {
        Self { rest, ..self }
    }

    /// Lets the payload move until the plan's length is reached, then gathers both ends' reports.
    pub async fn run(
        self,
        interrupt: &Interrupt,
        listener: &mut Listener<'_>,
    ) -> Result<Measurement, EngineError> {
        // What is named last is dropped first, if this ends early: the flows end before their files are removed.
        let Self { scratch, log, mut probes, mut ends, rest } = self;
        let idle = probes.idle(&mut ends, interrupt, listener).await?;
        probes.first_exchanges(&mut ends, listener).await?;
        ends.rest(rest, interrupt, listener).await?;
        ends.far_start = FarStart::asked(Instant::now());
        ends.client.conversation.feed(Input::Begin);
        if ends.run.plan().direction.senders() == [EndName::Near] {
            ends.rest(rest.min(REST_AFTER_BEGIN), interrupt, listener).await?;
        }
        let loaded = probes.start();
        if let Err(why) = ends.move_payload(interrupt, listener).await {
            let why = ends.own_reason(&why, interrupt, listener).await.unwrap_or(why);
            if !ends.has_measured() {
                return Err(why);
            }
            ends.cut_short(why).await;
        }
        ends.finish(interrupt);
        loaded.iter().for_each(Probing::finish);
        listener(Event::Ended);
        await_reports(&mut ends, interrupt, listener).await;
        // Before anything that takes time without moving payload.
        let fetches = log.map(|conclude| {
            let (fetches, doubt) = conclude();
            ends.doubts.extend(doubt);
            fetches
        });
        ends.doubts.extend(removed(scratch).await);
        ends.check_source()?;
        let comparing = probes.last_exchanges();
        let loaded = probed(&mut ends, loaded, listener).await.unwrap_or_else(|why| {
            ends.doubts.push(format!("the latency under load is unknown: {why}"));
            None
        });
        let after = ends.run.look_again().await.unwrap_or_else(|why| {
            ends.doubts.push(format!("the near end was not observed afterwards: {why}"));
            Snapshot::default()
        });
        let asked = compared(&mut ends, comparing, probes.idle_sides, listener).await;
        let asked = asked.unwrap_or_else(|why| Err(Missing::because(why.to_string())));
        let measurement = ends.into_measurement(after, listener);
        let phases = idle.zip(loaded);
        let latency = phases.map(|(idle, loaded)| latency::latency(idle, loaded, &measurement));
        let clocks = clocks::conclude(asked, &measurement.near, &measurement.far);
        Ok(Measurement { latency, clocks, fetches, ..measurement })
    }
}

/// What the far end is to capture, or why it captures nothing.
fn far_capture(client: &Client, answer: Option<Known<String>>) -> Known<FarCaptured> {
    let no_goodput = || Known::missing("only a goodput server captures for its clients");
    let answer = match client.far_end().captures {
        true => answer.unwrap_or_else(|| Known::missing("it did not answer")),
        false => no_goodput(),
    };
    answer.map(|device| FarCaptured { device, ..FarCaptured::default() })
}

/// Removes what was stored at a file server or on a mount. Returns what is left there.
async fn removed(scratch: Option<ScratchRemoval>) -> Vec<String> {
    let Some(scratch) = scratch else { return Vec::new() };
    blocking(scratch).await.unwrap_or_else(|why| vec![format!("what was stored: {why}")])
}
