//! The measurements of one client, one after the other: each is prepared, its flows arrive, payload moves, this end reports.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use goodput_model::{Known, Plan, Role, Sample, SocketOptions};
use goodput_mover::EarlyPayload;
use goodput_mover::socket::{apply_accepted, apply_datagram};
use goodput_wire::session::{Cookie, Input, ThirdPartyTest};
use goodput_wire::ticket::{FlowSetup, FlowTicket};

use super::OwnFlow;
use super::far_capture::FarCapture;
use super::far_run::{FarRun, Reported};
use super::log_line::{in_short, missed};
use crate::error::EngineError;
use crate::run::end_run::Seen;
use crate::run::flow_events::Failure;
use crate::run::source_ports;
use crate::run::traffic::{Connected, connections};
use crate::serve::AUDIT;
use crate::serve::admit::admission::{Place, Wants};
use crate::serve::admit::echoes::Echoing;
use crate::serve::counts::Moved;
use crate::serve::session::client::{ClientInfo, ConnectedClient, log_doubts};
use crate::serve::session::gather::{Awaiting, Preparing, Wish, prepare};
use crate::serve::session::shown::{Shown, turned};
use crate::serve::session::third_party::{self, Said};
use crate::serve::session::tickets::Arrival;

/// What a client measures.
pub(super) struct Measuring {
    run: Run,
    /// The only flow of a conversation over UDP, until it is taken.
    own: Option<OwnFlow>,
    /// How many measurements were made.
    count: u32,
    /// The present measurement's payload that the server's counts have.
    counted: Moved,
    /// The measurement as an observer of the server sees it.
    shown: Option<Shown>,
    /// Whose echoes to answer during the proposed measurement.
    echo: Option<Cookie>,
    /// Echoes for the measurement are answered while this lives.
    echoing: Option<Echoing>,
    /// The capture of the measurement's packets, if the client has asked for one and may have it.
    capture: Option<FarCapture>,
    /// Whether a report is on its way, and the client's own is awaited.
    is_reporting: bool,
}

/// What is being measured.
enum Run {
    /// Nothing.
    None,
    /// Nothing yet: the flows can't be accepted so far.
    Preparing(Preparing),
    /// This measurement.
    Going(Box<FarRun>),
    /// Nothing yet: a conversation that is itself a measurement still waits for its place.
    Asking(Pin<Box<dyn Future<Output = Result<Place, String>> + Send>>),
    /// A conversation that is itself a measurement.
    Conversing { _place: Box<Place> },
    /// A measurement with a third party.
    ThirdParty(Box<third_party::ThirdPartyRun>),
}

/// What has happened to the measurement.
pub(super) enum Happened {
    Prepared(Result<Box<Awaiting>, String>),
    Admitted(Result<Place, String>),
    Run(Reported),
    ThirdParty(Said),
}

/// Why a measurement does not go on.
enum Stop {
    /// The client gets the reason.
    Refused(String),
    /// The conversation ends.
    Broken(EngineError),
}

impl From<String> for Stop {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

impl From<EngineError> for Stop {
    fn from(error: EngineError) -> Self {
        Self::Broken(error)
    }
}

impl Measuring {
    /// Nothing is measured yet. A conversation over UDP has its `own` flow.
    pub(super) fn new(own: Option<OwnFlow>) -> Self {
        let (shown, echo, echoing, capture) = (None, None, None, None);
        let (count, counted) = (0, Moved::default());
        let run = Run::None;
        Self { run, own, count, counted, shown, echo, echoing, capture, is_reporting: false }
    }

    /// How many measurements were made.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Whether a measurement with flows is under way, or its report, which may be long.
    pub(super) fn has_flows(&self) -> bool {
        self.is_reporting
            || !matches!(self.run, Run::None | Run::Asking(_) | Run::Conversing { .. })
    }

    /// The next thing that happens to the current measurement; waits forever if there is none.
    pub(super) async fn next(&mut self) -> Happened {
        match &mut self.run {
            Run::None | Run::Conversing { .. } => std::future::pending().await,
            Run::Asking(asking) => Happened::Admitted(asking.await),
            Run::Preparing(preparing) => Happened::Prepared(preparing.await),
            Run::ThirdParty(running) => Happened::ThirdParty(running.next().await),
            Run::Going(run) => Happened::Run(run.next().await),
        }
    }

    /// Continues after something has happened.
    pub(super) async fn happened(
        &mut self,
        client: &mut ConnectedClient,
        happened: Happened,
    ) -> Result<(), EngineError> {
        let outcome = match happened {
            Happened::Admitted(place) => self.converse_at(client, place),
            Happened::Prepared(prepared) => self.prepared(client, prepared, None).await,
            Happened::Run(Reported::Arrived(arrival)) => self.arrived(client, arrival).await,
            Happened::Run(Reported::Seen(seen)) => self.seen(client, seen).await,
            Happened::ThirdParty(said) => {
                self.third_party_said(client, said);
                Ok(())
            }
        };
        self.settle(client, outcome)
    }

    /// Refuses a measurement that does not go on; only a broken conversation is an error.
    fn settle(
        &mut self,
        client: &mut ConnectedClient,
        outcome: Result<(), Stop>,
    ) -> Result<(), EngineError> {
        match outcome {
            Ok(()) => Ok(()),
            Err(Stop::Broken(error)) => Err(error),
            Err(Stop::Refused(why)) => {
                self.forget();
                let ClientInfo { peer, protocol, .. } = client.info;
                tracing::info!(%peer, "{}: refused: {why}", protocol.id);
                client.remark(&format!("refused: {why}"));
                client.shared.config.counts.refuse();
                client.feed(Input::FlowsFailed(why));
                Ok(())
            }
        }
    }

    /// Drops the measurement.
    pub(super) fn forget(&mut self) {
        self.run = Run::None;
        self.shown = None;
        self.echo = None;
        self.echoing = None;
        self.capture = None;
        self.is_reporting = false;
    }

    /// The measurement that the client proposes next answers these echoes, if it is admitted.
    pub(super) fn echo(&mut self, cookie: Cookie) {
        self.echo = Some(cookie);
    }

    /// Prepares for the flows of a plan.
    pub(super) async fn expect(
        &mut self,
        client: &mut ConnectedClient,
        plan: Plan,
        tickets: Vec<FlowTicket>,
        flow_setup: FlowSetup,
    ) -> Result<(), EngineError> {
        let Some(permit) = client.permit() else { return Ok(()) };
        if plan.towards.is_some()
            && let Err(why) = client.may_look_elsewhere()
        {
            tracing::info!(peer = %client.info.peer, by = %client.who(), "denied: {why}");
            client.feed(Input::Denied(why.into()));
            return Ok(());
        }
        let taken = match flow_setup {
            FlowSetup::ThisConnection { taken_bytes, .. } => Some(taken_bytes),
            _ => None,
        };
        let wish = Wish { plan, tickets, flow_setup, proven: client.is_proven() };
        let preparing = prepare(wish, permit, client.info, Arc::clone(&client.shared));
        if taken.is_some() {
            // Nothing more may be read as conversation, so the preparation can't run beside it.
            let prepared = preparing.await;
            let outcome = self.prepared(client, prepared, taken).await;
            return self.settle(client, outcome);
        }
        self.run = Run::Preparing(preparing);
        Ok(())
    }

    /// The flows may come, or the reason why not. `taken`: the conversation's own connection is the first flow, and
    /// this number of its payload bytes was already read.
    async fn prepared(
        &mut self,
        client: &mut ConnectedClient,
        prepared: Result<Box<Awaiting>, String>,
        taken: Option<u64>,
    ) -> Result<(), Stop> {
        let mut run = Box::new(FarRun::new(*prepared?));
        self.counted = Moved::default();
        // Its turn may have taken a while to come, and its key may be gone.
        client.renew()?;
        let ClientInfo { peer, protocol, .. } = client.info;
        let what = in_short(run.plan());
        match client.credential() {
            Some(by) => {
                tracing::info!(target: AUDIT, %peer, %by, "{}: measures: {what}", protocol.id);
            }
            None => tracing::info!(%peer, by = %"nobody", "{}: measures: {what}", protocol.id),
        }
        if run.plan().socket.spread_ports {
            let hash = match client.may_know_hash(run.plan()) {
                Ok(()) => source_ports::own(run.plan(), run.context()).await,
                Err(why) => Known::missing(why),
            };
            client.feed(Input::ReceiveHash(hash));
        }
        if run.plan().far_capture {
            let (capture, answer) = FarCapture::open(client, run.path()).await;
            self.capture = capture;
            client.feed(Input::Capture(answer));
        }
        self.echoing = self.echo.take().map(|cookie| client.shared.echoes.expect(cookie));
        let data_port = run.expecting();
        client.feed(Input::Expecting { data_port });
        run.connect(client);
        if let Some(bytes) = taken {
            let own = self.own_flow(client, bytes, &run.plan().socket).await?;
            run.take_own(own)?;
        }
        self.start_when_complete(client, run).await
    }

    /// The conversation's own connection as a flow.
    async fn own_flow(
        &mut self,
        client: &mut ConnectedClient,
        bytes: u64,
        options: &SocketOptions,
    ) -> Result<OwnFlow, String> {
        if let Some((socket, early)) = self.own.take() {
            apply_datagram(&socket, options).map_err(|e| e.to_string())?;
            return Ok((socket, early));
        }
        let stream = client.conversation.take_stream().await;
        let stream = stream.ok_or("its connection is gone, or it does not read its messages")?;
        let stream = stream.into_std().map_err(|e| e.to_string())?;
        let doubts = apply_accepted(&stream, options).map_err(|e| e.to_string())?;
        log_doubts(client.info.peer, 0, &doubts);
        Ok((stream.into(), EarlyPayload { bytes, datagrams: Vec::new() }))
    }

    async fn arrived(
        &mut self,
        client: &mut ConnectedClient,
        arrival: Arrival,
    ) -> Result<(), Stop> {
        let Run::Going(mut run) = std::mem::replace(&mut self.run, Run::None) else {
            return Ok(());
        };
        run.arrived(arrival)?;
        self.start_when_complete(client, run).await
    }

    async fn start_when_complete(
        &mut self,
        client: &mut ConnectedClient,
        mut run: Box<FarRun>,
    ) -> Result<(), Stop> {
        if let Some(flows) = run.complete(client) {
            if let Some(capture) = &mut self.capture {
                capture.begin(&connections(&flows), run.plan().transport);
            }
            let before = run.look().await?;
            self.show(client, run.plan(), &flows);
            let echoes = self.echoing.as_ref().map(Echoing::last_heard).unwrap_or_default();
            run.start(flows, before, client, echoes).map_err(|why| why.to_string())?;
            client.feed(Input::FlowsReady);
        }
        self.run = Run::Going(run);
        Ok(())
    }

    /// Begins to show the measurement, if anyone watches.
    fn show(&mut self, client: &ConnectedClient, plan: &Plan, flows: &[Connected]) {
        let Some(watcher) = &client.shared.config.watcher else { return };
        let number = client.shared.shown.fetch_add(1, Ordering::Relaxed);
        let (watcher, connections) = (watcher.clone(), connections(flows));
        let from = (client.info.peer, client.info.protocol.id);
        self.shown = Some(Shown::begin(watcher, number, from, plan, connections));
    }

    /// The measurement as an observer sees it, if anyone watches.
    pub(super) fn shown(&mut self) -> Option<&mut Shown> {
        self.shown.as_mut()
    }

    /// Lets the payload move.
    pub(super) fn begin(&mut self, client: &mut ConnectedClient) -> Result<(), EngineError> {
        let Run::Going(run) = &mut self.run else { return Ok(()) };
        let outcome = run.begin(client).map_err(|why| Stop::Refused(why.to_string()));
        self.settle(client, outcome)
    }

    /// Ends the payload: senders stop, receivers read to the end.
    pub(super) fn finish(&mut self, soon: bool) {
        if let Run::Going(run) = &mut self.run {
            run.finish(soon);
        }
    }

    async fn seen(
        &mut self,
        client: &mut ConnectedClient,
        seen: Result<Seen, Failure>,
    ) -> Result<(), Stop> {
        match seen {
            Ok(Seen::Sample(sample)) => self.sampled(client, sample),
            // The client's plan has its own end, and the session has another.
            Ok(Seen::Limit) => {}
            Err(failure) => return Err(Stop::Refused(failure.why)),
            Ok(Seen::Ended { last, .. }) => self.ended(client, last).await?,
        }
        Ok(())
    }

    /// Sends the client a sample, or as much of it as the path can take. Other protocols' sessions take what they need
    /// of each, and report no more than their protocol demands.
    fn sampled(&mut self, client: &mut ConnectedClient, sample: Box<Sample>) {
        if let Some(shown) = &mut self.shown {
            shown.sampled(&sample);
        }
        client.shared.config.counts.count(&sample, &mut self.counted);
        let Run::Going(run) = &mut self.run else { return };
        run.moved(&sample);
        let far_end = &client.info.protocol.far_end;
        let to_send = match (far_end.reports, client.shared.config.private) {
            (true, true) => None,
            (true, false) => run.shed(sample, client.conversation.unsent_bytes()),
            (false, _) => Some(sample),
        };
        if let Some(sample) = to_send {
            client.feed(Input::Sampled(sample));
        }
    }

    /// All flows have ended: reports to the client what this end saw.
    async fn ended(
        &mut self,
        client: &mut ConnectedClient,
        last: Box<Sample>,
    ) -> Result<(), EngineError> {
        let Run::Going(run) = std::mem::replace(&mut self.run, Run::None) else { return Ok(()) };
        let ClientInfo { peer, protocol, .. } = client.info;
        let (what, more) = run.in_short(&last);
        tracing::info!(%peer, "{}: measured: {what}: received {} bytes{}, sent {} bytes in {:.3} s{more}",
            protocol.id, last.received_bytes, missed(&last), last.sent_bytes, last.at_s);
        self.count += u32::from(!protocol.far_end.measures_again);
        client.shared.config.counts.count(&last, &mut self.counted);
        client.shared.config.counts.measure();
        if let Some(shown) = &mut self.shown {
            shown.ended(&last);
        }
        if client.reads_reports() {
            for sample in run.left_out(&last) {
                client.feed(Input::Sampled(Box::new(sample)));
            }
        }
        client.feed(Input::Ended(last));
        if client.shared.config.private {
            let why = "the far end reports none of its facts (--private)";
            client.feed(Input::Report(Known::missing(why)));
            return Ok(());
        }
        if let Some(capture) = self.capture.take() {
            client.feed(Input::Captured(Box::new(capture.finish().await)));
        }
        let Some(end) = run.into_end().await? else { return Ok(()) };
        self.is_reporting = true;
        if let Some(shown) = &mut self.shown {
            shown.observed(end.before.clone(), end.after.clone());
        }
        client.feed(Input::Report(Known::Value(Box::new(end))));
        Ok(())
    }

    /// The client has reported: its last message. A measurement that was broken off in the middle does not count.
    pub(super) fn reported(&mut self, client: &ConnectedClient) {
        self.shown = None;
        self.echoing = None;
        self.is_reporting = false;
        self.count += u32::from(client.info.protocol.far_end.measures_again);
    }

    /// Asks for a place for a conversation that is itself a measurement.
    pub(super) fn ask_to_converse(&mut self, client: &mut ConnectedClient) {
        let Some(permit) = client.permit() else { return };
        let (shared, from) = (Arc::clone(&client.shared), client.info.peer.ip());
        self.run = Run::Asking(Box::pin(async move {
            shared.admission.admit(permit, from, Wants::Conversation, true).await
        }));
    }

    fn converse_at(
        &mut self,
        client: &mut ConnectedClient,
        place: Result<Place, String>,
    ) -> Result<(), Stop> {
        let place = place?;
        let ClientInfo { peer, protocol, .. } = client.info;
        tracing::info!(%peer, by = %client.who(), "{}: converses", protocol.id);
        let [sent, received] = [Role::Sender, Role::Receiver].map(|role| place.rates(role));
        client.conversation.keep_to(sent, received);
        self.run = Run::Conversing { _place: Box::new(place) };
        client.feed(Input::Expecting { data_port: None });
        Ok(())
    }

    /// Begins a measurement with a third party.
    pub(super) async fn measure_with_third_party(
        &mut self,
        client: &mut ConnectedClient,
        test: ThirdPartyTest,
    ) -> Result<(), EngineError> {
        let Some(permit) = client.permit() else { return Ok(()) };
        let ClientInfo { peer, protocol, .. } = client.info;
        let by = client.shared.config.third_party.as_ref();
        let what = format!("{}:{}: {}", test.host, test.port, in_short(&turned(&test.plan)));
        let begun = third_party::begin(test, permit, client.info, by, &client.shared.admission);
        let outcome = begun.await.map(|running| {
            tracing::info!(%peer, "{}: measures for it with {what}", protocol.id);
            self.run = Run::ThirdParty(Box::new(running));
            client.feed(Input::Expecting { data_port: None });
        });
        self.settle(client, outcome.map_err(Stop::Refused))
    }

    /// Handles the outcome of a measurement with a third party.
    fn third_party_said(&mut self, client: &mut ConnectedClient, said: Said) {
        match said {
            Said::Lines(lines) => client.feed(Input::ThirdPartyOutput(lines)),
            Said::Over(outcome) => {
                self.run = Run::None;
                match &outcome {
                    Ok(()) => self.count += 1,
                    Err(why) => {
                        tracing::info!(peer = %client.info.peer, "failed: {why}");
                        client.remark(&format!("failed: {why}"));
                    }
                }
                client.feed(Input::ThirdPartyDone(outcome));
            }
        }
    }
}
