//! One measurement of a client: its flows arrive, payload moves, this end reports.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use goodput_model::{EndName, Known, Plan, Sample, Snapshot, SocketOptions};
use goodput_mover::EarlyPayload;
use goodput_mover::socket::{apply_accepted, apply_datagram};
use goodput_wire::session::Input;
use goodput_wire::ticket::{FlowSetup, FlowTicket};
use tokio::sync::mpsc;

use super::log_line::{held, missed};
use super::sample_shedding::SampleShedding;
use super::{AUDIT, OwnFlow, Run, ServedClient, Woken, in_short};
use crate::error::EngineError;
use crate::run::end_run::{EndRun, Seen};
use crate::run::length::longest;
use crate::run::prepared::Prepared;
use crate::run::source_ports;
use crate::run::traffic::{Connected, connections};
use crate::run::watched::Failure;
use crate::serve::admit::admission::Place;
use crate::serve::admit::echoes::Echoing;
use crate::serve::admit::progress::Progress;
use crate::serve::session::caller::{Caller, log_doubts};
use crate::serve::session::gather::{Awaiting, Gathering, Wish, prepare};
use crate::serve::session::shown::Shown;
use crate::serve::session::tickets::Arrival;

/// How long after the plan's end its flows end here at the latest; the session's word comes first.
const END_ALLOWANCE: Duration = Duration::from_secs(4);

/// One measurement at the server.
pub(super) struct FarRun {
    own: Arc<Prepared>,
    stage: Stage,
    arrivals: mpsc::UnboundedReceiver<Arrival>,
    shedding: SampleShedding,
    place: Place,
}

enum Stage {
    /// Data connections are arriving.
    Gathering(Gathering),
    /// All flows are there; payload moves, or will.
    Running { run: Box<EndRun>, progress: Option<Progress> },
}

impl FarRun {
    /// Which limit held its flows back, for the log; empty if none did.
    fn held(&self, last: &Sample) -> String {
        match &self.stage {
            Stage::Running { run, .. } => held(run.held_to(), &self.own.plan, last),
            Stage::Gathering(_) => String::new(),
        }
    }

    /// The next thing that it has to report.
    pub(super) async fn progress(&mut self) -> Woken {
        match &mut self.stage {
            Stage::Running { run, progress: None } => Woken::Seen(run.next().await),
            Stage::Running { run, progress: Some(progress) } => tokio::select! {
                seen = run.next() => Woken::Seen(seen),
                why = progress.lacking() => Woken::Arrived(Err(why)),
            },
            Stage::Gathering(gathering) => tokio::select! {
                // The sender lives in `gathering`, so there is always a next one.
                Some(arrival) = self.arrivals.recv() => Woken::Arrived(arrival),
                why = gathering.overdue() => Woken::Arrived(Err(why)),
            },
        }
    }
}

impl ServedClient {
    pub(super) async fn expect(
        &mut self,
        plan: Plan,
        tickets: Vec<FlowTicket>,
        flow_setup: FlowSetup,
    ) -> Result<(), EngineError> {
        let Some(permit) = self.permit() else { return Ok(()) };
        let taken = match flow_setup {
            FlowSetup::ThisConnection { taken_bytes, .. } => Some(taken_bytes),
            _ => None,
        };
        let wish = Wish { plan, tickets, flow_setup, proven: self.proven };
        let preparing = prepare(wish, permit, self.caller, Arc::clone(&self.shared));
        if taken.is_some() {
            // Nothing more may be read as conversation, so the preparation can't run beside it.
            let prepared = preparing.await;
            return self.prepared(prepared, taken).await;
        }
        self.run = Run::Preparing(preparing);
        Ok(())
    }

    /// The flows may come, or the reason why not. `taken`: the conversation's own connection is the first flow, and
    /// this number of its payload bytes was already read.
    pub(super) async fn prepared(
        &mut self,
        prepared: Result<Box<Awaiting>, String>,
        taken: Option<u64>,
    ) -> Result<(), EngineError> {
        let Awaiting { own, mut gathering, arrivals, mut place } = match prepared {
            Ok(awaiting) => *awaiting,
            Err(why) => {
                self.fail(why);
                return Ok(());
            }
        };
        // Its turn may have taken a while to come, and its key may be gone.
        if let Err(why) = self.renew() {
            self.fail(why);
            return Ok(());
        }
        let plan = &own.plan;
        let Caller { peer, protocol, .. } = self.caller;
        let what = in_short(plan);
        match &self.credential {
            Some(by) => {
                tracing::info!(target: AUDIT, %peer, %by, "{}: measures: {what}", protocol.id);
            }
            None => tracing::info!(%peer, by = %"nobody", "{}: measures: {what}", protocol.id),
        }
        if plan.socket.spread_ports {
            let hash = match self.may_tell_hash(plan) {
                Ok(()) => source_ports::own(plan, &own.context).await,
                Err(why) => Known::missing(why),
            };
            self.conversation.tell(Input::ReceiveHash(hash));
        }
        self.echoing = self.echo.take().map(|cookie| self.shared.echoes.expect(cookie));
        place.expecting();
        self.conversation.tell(Input::Expecting { data_port: gathering.data_port() });
        gathering.connect(plan, &self.caller);
        if let Some(bytes) = taken {
            let own = self.own_flow(bytes, &plan.socket).await;
            if let Err(why) = own.and_then(|(socket, early)| gathering.take_own(socket, early)) {
                self.fail(why);
                return Ok(());
            }
        }
        let stage = Stage::Gathering(gathering);
        let (own, shedding) = (Arc::new(own), SampleShedding::default());
        self.run = Run::Going(Box::new(FarRun { own, stage, arrivals, shedding, place }));
        self.start_when_complete().await
    }

    /// Whether the client needs the hash of this end's card to choose its ports, and may have it; or why not. The hash
    /// includes the card's key, with which anyone could aim packets at one of its queues.
    fn may_tell_hash(&self, plan: &Plan) -> Result<(), &'static str> {
        if !plan.direction.senders().contains(&EndName::Near) {
            return Err("the far end receives no payload");
        }
        if self.shared.config.private {
            return Err("the server keeps its facts to itself (--private)");
        }
        if self.credential.is_none() {
            return Err("the server shows its card's hash key only to clients with a token");
        }
        Ok(())
    }

    /// The conversation's own connection as a flow.
    async fn own_flow(&mut self, bytes: u64, options: &SocketOptions) -> Result<OwnFlow, String> {
        if let Some((socket, early)) = self.own.take() {
            apply_datagram(&socket, options).map_err(|e| e.to_string())?;
            return Ok((socket, early));
        }
        let stream = self.conversation.take_stream().await;
        let stream = stream.ok_or("its connection is gone, or it does not read its messages")?;
        let stream = stream.into_std().map_err(|e| e.to_string())?;
        let doubts = apply_accepted(&stream, options).map_err(|e| e.to_string())?;
        log_doubts(self.caller.peer, 0, &doubts);
        Ok((stream.into(), EarlyPayload { bytes, datagrams: Vec::new() }))
    }

    pub(super) async fn arrived(&mut self, arrival: Arrival) -> Result<(), EngineError> {
        let Run::Going(run) = &mut self.run else { return Ok(()) };
        let gathered = match (&mut run.stage, arrival) {
            (_, Err(why)) => Err(why),
            (Stage::Gathering(gathering), Ok(connected)) => gathering.add(connected),
            // More flows than were awaited.
            (Stage::Running { .. }, Ok(_)) => return Ok(()),
        };
        match gathered {
            Ok(()) => self.start_when_complete().await,
            Err(why) => {
                self.fail(why);
                Ok(())
            }
        }
    }

    async fn start_when_complete(&mut self) -> Result<(), EngineError> {
        let Run::Going(run) = &mut self.run else { return Ok(()) };
        let Stage::Gathering(gathering) = &mut run.stage else { return Ok(()) };
        let Some(sockets) = gathering.complete() else { return Ok(()) };
        if self.forgeable {
            run.place.begun()
        } else {
            run.place.fulfilled()
        }
        let before = run.own.look().await?;
        self.show(&sockets);
        match self.start(sockets, before) {
            Ok(started) => {
                if let Run::Going(run) = &mut self.run {
                    run.stage = Stage::Running { run: Box::new(started), progress: None };
                }
                self.conversation.tell(Input::FlowsReady);
            }
            Err(why) => self.fail(why.to_string()),
        }
        Ok(())
    }

    /// Begins to show the measurement, if anyone watches.
    fn show(&mut self, sockets: &[Connected]) {
        let (Run::Going(run), Some(watcher)) = (&self.run, &self.shared.config.watcher) else {
            return;
        };
        let number = self.shared.shown.fetch_add(1, Ordering::Relaxed);
        let (watcher, connections) = (watcher.clone(), connections(sockets));
        let shown = Shown::begin(watcher, number, self.caller.peer, &run.own.plan, connections);
        self.shown = Some(shown);
    }

    fn start(&self, sockets: Vec<Connected>, before: Snapshot) -> Result<EndRun, EngineError> {
        let Run::Going(run) = &self.run else {
            return Err(EngineError::Flow("there is no measurement".into()));
        };
        let cap = run.place.cap();
        let control = self.conversation.control();
        let echoes = self.echoing.as_ref().map(Echoing::last_heard).unwrap_or_default();
        let mut started = EndRun::start(Arc::clone(&run.own), sockets, &cap, control, echoes)?;
        started.set_before(before);
        Ok(started)
    }

    pub(super) fn begin(&mut self) {
        let far_end = &self.caller.protocol.far_end;
        let longest_s = self.limits().duration_s;
        let longest_s = Duration::try_from_secs_f64(longest_s).unwrap_or(Duration::MAX / 2);
        let Run::Going(going) = &mut self.run else { return };
        let Stage::Running { run, progress } = &mut going.stage else { return };
        *progress = Progress::from_now(self.shared.config.min_progress, run.plan());
        // The session ends payload before that, and says why; what may hold the session up does not delay this limit.
        let planned = longest(run.plan()).filter(|_| far_end.ends_as_planned);
        let longest = planned.unwrap_or(longest_s);
        if let Err(why) = run.begin(Some(longest + END_ALLOWANCE)) {
            self.fail(why.to_string());
        }
    }

    /// Ends the payload: senders stop, receivers read to the end.
    pub(super) fn finish(&mut self, soon: bool) {
        let Run::Going(going) = &mut self.run else { return };
        let Stage::Running { run, progress } = &mut going.stage else { return };
        // What is still on its way has its own time limit.
        *progress = None;
        run.finish(soon);
    }

    pub(super) async fn seen(&mut self, seen: Result<Seen, Failure>) -> Result<(), EngineError> {
        match seen {
            Ok(Seen::Sample(sample)) => self.sampled(sample),
            // The client's plan has its own end, and the session has another.
            Ok(Seen::Limit) => {}
            Err(failure) => self.fail(failure.why),
            Ok(Seen::Ended { last, .. }) => {
                self.tell_log(&last);
                if let Some(shown) = &mut self.shown {
                    shown.ended(&last);
                }
                self.tell_last(&last);
                self.conversation.tell(Input::Ended(last));
                self.report().await?;
            }
        }
        Ok(())
    }

    fn sampled(&mut self, sample: Box<Sample>) {
        if let Some(shown) = &mut self.shown {
            shown.sampled(&sample);
        }
        if let Run::Going(run) = &mut self.run
            && let Stage::Running { progress: Some(progress), .. } = &mut run.stage
        {
            progress.sampled(sample.sent_bytes, sample.received_bytes);
        }
        // The sessions of other protocols report no more than their protocol demands.
        if !(self.shared.config.private && self.caller.protocol.far_end.reports) {
            self.tell_sample(sample);
        }
    }

    /// Sends the client a sample, or as much of it as the path can take. Other protocols' sessions take what they need
    /// of each.
    fn tell_sample(&mut self, sample: Box<Sample>) {
        let waiting = self.conversation.unsent_bytes();
        let told = match &mut self.run {
            Run::Going(run) if self.caller.protocol.far_end.reports => {
                run.shedding.next(sample, waiting)
            }
            _ => Some(sample),
        };
        if let Some(sample) = told {
            self.conversation.tell(Input::Sampled(sample));
        }
    }

    /// Sends the client what was left out of the last sample.
    fn tell_last(&mut self, last: &Sample) {
        let Run::Going(run) = &self.run else { return };
        if !self.caller.protocol.far_end.reports || self.shared.config.private {
            return;
        }
        for sample in run.shedding.last(last) {
            self.conversation.tell(Input::Sampled(Box::new(sample)));
        }
    }

    fn tell_log(&mut self, last: &Sample) {
        let Caller { peer, protocol, .. } = self.caller;
        let (what, held) = match &self.run {
            Run::Going(run) => (in_short(&run.own.plan), run.held(last)),
            _ => (String::new(), String::new()),
        };
        tracing::info!(%peer, "{}: measured: {what}: received {} bytes{}, sent {} bytes in {:.3} s{held}",
            protocol.id, last.received_bytes, missed(last), last.sent_bytes, last.at_s);
        if !protocol.far_end.measures_again {
            self.measurements += 1;
        }
    }

    /// All flows have ended: reports to the client what this end saw.
    async fn report(&mut self) -> Result<(), EngineError> {
        let Run::Going(going) = std::mem::replace(&mut self.run, Run::None) else { return Ok(()) };
        let Stage::Running { run, .. } = going.stage else { return Ok(()) };
        if self.shared.config.private {
            let why = "the far end keeps its facts to itself";
            self.conversation.tell(Input::Report(Known::missing(why)));
            return Ok(());
        }
        let after = run.look_again().await?;
        let end = run.into_end(after, Vec::new());
        if let Some(shown) = &mut self.shown {
            shown.observed(end.before.clone(), end.after.clone());
        }
        self.conversation.tell(Input::Report(Known::Value(Box::new(end))));
        Ok(())
    }
}
