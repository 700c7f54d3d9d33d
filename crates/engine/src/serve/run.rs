//! One client: its conversation, its measurements one after the other, its settings.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use goodput_kernel::Context;
use goodput_model::{
    BitRate, Direction, End, EndName, Known, Placement, Plan, Role, Sample, Snapshot,
    SocketOptions, Transport,
};
use goodput_mover::Early;
use goodput_mover::socket::{apply_accepted, apply_datagram};
use goodput_wire::session::{Action, Errand, Input, Protocol, SettingRefusal, SettingRequest};
use goodput_wire::ticket::{FlowTicket, Meeting};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::Shared;
use super::admission::Place;
use super::echoes::Echoing;
use super::errand::{self, Said};
use super::gather::{Awaiting, Gathering, Preparing, Wish, prepare};
use super::settings::SessionSettings;
use super::shown::{Shown, turned};
use super::tickets::Arrival;
use crate::client::blocking;
use crate::control::Conversation;
use crate::error::EngineError;
use crate::movers::Movers;
use crate::observe::{observe, usage_after, usage_before};
use crate::seating::Seating;
use crate::spread;
use crate::storage::Stores;
use crate::traffic::{Connected, Traffic, Watched, connections};

/// Who came, where to, and what it speaks.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// What it speaks.
    pub protocol: &'static Protocol,
    /// Where it came from.
    pub peer: SocketAddr,
    /// Where it came to.
    pub local: SocketAddr,
}

/// The only flow of a conversation over UDP: its socket, and what came before that.
pub type OwnFlow = (OwnedFd, Early);

/// Serves one client until it leaves, breaks the protocol, or the server stops. How many measurements
/// it made.
pub async fn serve_client(
    conversation: Conversation,
    caller: Caller,
    own: Option<OwnFlow>,
    shared: &Arc<Shared>,
) -> u32 {
    let Caller { peer, protocol, .. } = caller;
    let mut client = ServedClient {
        conversation,
        caller,
        proven: own.is_none() || shared.limits(peer).unproven_udp,
        own,
        shared: Arc::clone(shared),
        settings: Some(SessionSettings::new(shared.config.state_dir.clone())),
        run: Run::None,
        measurements: 0,
        shown: None,
        echoing: None,
    };
    let outcome = tokio::select! {
        outcome = client.converse() => outcome,
        () = shared.stopping() => {
            client.conversation.tell(Input::Leave("the server is stopping".into()));
            // Lets the goodbye out; the client's answer no longer matters.
            let _ = tokio::time::timeout(Duration::from_secs(1), client.conversation.next()).await;
            Ok(())
        }
    };
    client.run = Run::None;
    client.shown = None;
    client.put_back().await;
    let id = protocol.id;
    match outcome {
        Ok(()) => tracing::info!(%peer, "{id}: left after {} measurements", client.measurements),
        Err(why) => tracing::info!(%peer, "{id}: ended: {why}"),
    }
    if client.measurements > 0 {
        shared.served_one.notify_one();
    }
    client.measurements
}

struct ServedClient {
    conversation: Conversation,
    caller: Caller,
    proven: bool,
    own: Option<OwnFlow>,
    shared: Arc<Shared>,
    settings: Option<SessionSettings>,
    run: Run,
    measurements: u32,
    /// The measurement as whoever watches the server sees it.
    shown: Option<Shown>,
    /// While it lives, echoes for the measurement are answered.
    echoing: Option<Echoing>,
}

/// What is being measured.
enum Run {
    /// Nothing.
    None,
    /// Nothing yet: the flows can't be expected so far.
    Preparing(Preparing),
    /// This.
    Going(Box<FarRun>),
    /// Something with another server.
    Errand(errand::Running),
}

/// One measurement at the answering end.
struct FarRun {
    plan: Plan,
    stores: Stores,
    seating: Seating,
    movers: Movers,
    context: Context,
    stage: Stage,
    arrivals: mpsc::UnboundedReceiver<Arrival>,
    _places: (Place, Option<OwnedSemaphorePermit>),
}

enum Stage {
    /// Data connections are arriving.
    Gathering(Gathering),
    /// All flows are there; payload moves, or will.
    Running { traffic: Traffic, before: Snapshot },
}

/// What woke the driver.
enum Woken {
    Action(Option<Action>),
    Prepared(Result<Box<Awaiting>, String>),
    Arrived(Arrival),
    Watched(Watched),
    Told(Said),
}

impl ServedClient {
    async fn converse(&mut self) -> Result<(), EngineError> {
        loop {
            self.conversation.set_measuring(!matches!(self.run, Run::None));
            let woken = tokio::select! {
                action = self.conversation.next() => Woken::Action(action.map_err(|failure| {
                    EngineError::Wire { target: "client".into(), failure }
                })?),
                progress = progress(&mut self.run) => progress,
            };
            match woken {
                Woken::Action(None) => return Ok(()),
                Woken::Action(Some(action)) => self.act(action).await?,
                Woken::Prepared(prepared) => self.prepared(prepared, None).await?,
                Woken::Arrived(arrival) => self.arrived(arrival).await?,
                Woken::Watched(watched) => self.watched(watched).await?,
                Woken::Told(said) => self.told(said),
            }
        }
    }

    async fn act(&mut self, action: Action) -> Result<(), EngineError> {
        let peer = self.caller.peer;
        match action {
            Action::ExpectFlows { plan, tickets, meeting } => {
                self.expect(*plan, tickets, meeting).await?;
            }
            Action::Echo(cookie) => self.echoing = Some(self.shared.echoes.expect(cookie)),
            Action::RunErrand(errand) => self.run_errand(*errand).await,
            Action::Begin => self.begin(),
            Action::Finish => {
                if let Run::Going(run) = &self.run
                    && let Stage::Running { traffic, .. } = &run.stage
                {
                    traffic.finish();
                }
            }
            Action::Abandon => {
                self.run = Run::None;
                self.shown = None;
                self.echoing = None;
            }
            Action::PeerTold(totals) => {
                if let Some(shown) = &mut self.shown {
                    shown.told(*totals);
                }
            }
            Action::PeerReported(_) => {
                self.shown = None;
                self.echoing = None;
                // Its last word: what began and was left in the middle is no measurement.
                self.measurements += u32::from(self.caller.protocol.observes);
            }
            Action::Setting(request) => {
                let answer = self.setting(request).await;
                self.conversation.tell(Input::SettingDone(answer));
            }
            Action::Greeted { peer: host, secured, .. } => {
                let how = match (self.caller.protocol.observes, secured) {
                    (false, _) => "",
                    (true, true) => ", with the token",
                    (true, false) => ", without a token",
                };
                tracing::info!(%peer, "{}: connected: {}{how}", self.caller.protocol.id, host.name);
            }
            Action::Note(text) => tracing::info!(%peer, "{}: {text}", self.caller.protocol.id),
            Action::Refused(why) => tracing::info!(%peer, "broke off: {why}"),
            // What the client saw is its own to show.
            _ => {}
        }
        Ok(())
    }

    async fn run_errand(&mut self, errand: Errand) {
        let Caller { peer, protocol, .. } = self.caller;
        let what = format!("{}:{}: {}", errand.host, errand.port, in_short(&turned(&errand.plan)));
        match errand::begin(errand, &self.caller, &self.shared).await {
            Ok(running) => {
                tracing::info!(%peer, "{}: measures in its stead with {what}", protocol.id);
                self.run = Run::Errand(running);
                self.conversation.tell(Input::Expecting { data_port: None });
            }
            Err(why) => self.fail(why),
        }
    }

    /// What an errand has brought.
    fn told(&mut self, said: Said) {
        match said {
            Said::Lines(lines) => self.conversation.tell(Input::Told(lines)),
            Said::Over(outcome) => {
                self.run = Run::None;
                match &outcome {
                    Ok(()) => self.measurements += 1,
                    Err(why) => tracing::info!(peer = %self.caller.peer, "failed: {why}"),
                }
                self.conversation.tell(Input::ErrandDone(outcome));
            }
        }
    }

    async fn expect(
        &mut self,
        plan: Plan,
        tickets: Vec<FlowTicket>,
        meeting: Meeting,
    ) -> Result<(), EngineError> {
        let taken = match meeting {
            Meeting::ThisConnection { taken_bytes, .. } => Some(taken_bytes),
            _ => None,
        };
        let wish = Wish { plan, tickets, meeting, proven: self.proven };
        let preparing = prepare(wish, self.caller, Arc::clone(&self.shared));
        if taken.is_some() {
            // Nothing more may be read as conversation, so this can't wait for it.
            let prepared = preparing.await;
            return self.prepared(prepared, taken).await;
        }
        self.run = Run::Preparing(preparing);
        Ok(())
    }

    /// The flows may come, or why not. `taken`: the conversation's own connection is the first of
    /// them, and so many of its payload bytes were read.
    async fn prepared(
        &mut self,
        prepared: Result<Box<Awaiting>, String>,
        taken: Option<u64>,
    ) -> Result<(), EngineError> {
        let Awaiting { plan, stores, seating, movers, context, mut gathering, arrivals, places } =
            match prepared {
                Ok(awaiting) => *awaiting,
                Err(why) => {
                    self.fail(why);
                    return Ok(());
                }
            };
        let Caller { peer, protocol, .. } = self.caller;
        tracing::info!(%peer, "{}: measures: {}", protocol.id, in_short(&plan));
        if plan.socket.spread_ports {
            let hash = receive_hash(self.shared.config.private, &plan, &context).await;
            self.conversation.tell(Input::ReceiveHash(hash));
        }
        self.conversation.tell(Input::Expecting { data_port: gathering.data_port() });
        gathering.connect(&plan, &self.caller);
        if let Some(bytes) = taken {
            let own = self.own_flow(bytes, &plan.socket).await;
            if let Err(why) = own.and_then(|(socket, early)| gathering.take_own(socket, early)) {
                self.fail(why);
                return Ok(());
            }
        }
        let stage = Stage::Gathering(gathering);
        self.run = Run::Going(Box::new(FarRun {
            plan,
            stores,
            seating,
            movers,
            context,
            stage,
            arrivals,
            _places: places,
        }));
        self.start_when_complete().await
    }

    /// The conversation's own connection as a flow.
    async fn own_flow(&mut self, bytes: u64, options: &SocketOptions) -> Result<OwnFlow, String> {
        if let Some((socket, early)) = self.own.take() {
            apply_datagram(&socket, options).map_err(|e| e.to_string())?;
            return Ok((socket, early));
        }
        let stream = self.conversation.take_stream().await;
        let stream = stream.ok_or("its connection is gone, or it does not read what it is told")?;
        let stream = stream.into_std().map_err(|e| e.to_string())?;
        apply_accepted(&stream, options).map_err(|e| e.to_string())?;
        Ok((stream.into(), Early { bytes, datagrams: Vec::new() }))
    }

    /// The measurement can't be made, or not go on.
    fn fail(&mut self, why: String) {
        self.run = Run::None;
        self.shown = None;
        self.echoing = None;
        tracing::info!(peer = %self.caller.peer, "{}: refused: {why}", self.caller.protocol.id);
        self.conversation.tell(Input::FlowsFailed(why));
    }

    async fn arrived(&mut self, arrival: Arrival) -> Result<(), EngineError> {
        let Run::Going(run) = &mut self.run else { return Ok(()) };
        let Stage::Gathering(gathering) = &mut run.stage else { return Ok(()) };
        match arrival.and_then(|connected| gathering.add(connected)) {
            Ok(()) => self.start_when_complete().await,
            Err(why) => {
                self.fail(why);
                Ok(())
            }
        }
    }

    async fn start_when_complete(&mut self) -> Result<(), EngineError> {
        let may_observe = self.may_observe();
        let Run::Going(run) = &mut self.run else { return Ok(()) };
        let Stage::Gathering(gathering) = &mut run.stage else { return Ok(()) };
        let Some(sockets) = gathering.complete() else { return Ok(()) };
        let (observes, context) = (run.plan.observe && may_observe, run.context.clone());
        let mut before = observe(observes, context).await?;
        run.stores.note(&mut before);
        self.show(&sockets);
        match self.start(sockets) {
            Ok(traffic) => {
                if let Run::Going(run) = &mut self.run {
                    run.stage = Stage::Running { traffic, before };
                }
                self.conversation.tell(Input::FlowsReady);
            }
            Err(why) => self.fail(why.to_string()),
        }
        Ok(())
    }

    /// Begins to show the measurement, where anybody watches.
    fn show(&mut self, sockets: &[Connected]) {
        let (Run::Going(run), Some(watcher)) = (&self.run, &self.shared.config.watcher) else {
            return;
        };
        let number = self.shared.shown.fetch_add(1, Ordering::Relaxed);
        let (watcher, connections) = (watcher.clone(), connections(sockets));
        let shown = Shown::begin(watcher, number, self.caller.peer, &run.plan, connections);
        self.shown = Some(shown);
    }

    /// Whether there is anybody to tell. Without a control connection there is not, and payload comes
    /// already while this end would look at itself.
    fn may_observe(&self) -> bool {
        let Caller { protocol, .. } = self.caller;
        let config = &self.shared.config;
        let to_tell = protocol.observes && !config.private;
        // Such a client is told that it may send only when this end is ready.
        let to_show = config.watcher.is_some() && protocol.has_control;
        to_tell || to_show
    }

    fn start(&self, sockets: Vec<Connected>) -> Result<Traffic, EngineError> {
        let Run::Going(run) = &self.run else {
            return Err(EngineError::Flow("there is no measurement".into()));
        };
        let cap = self.shared.config.limits.rate_bits_per_s.map(BitRate);
        let (seating, movers) = (run.seating.clone(), run.movers.clone());
        Traffic::start(&run.plan, EndName::Far, sockets, cap, &run.stores, seating, movers)
    }

    fn begin(&mut self) {
        let observes = self.may_observe();
        let Run::Going(run) = &mut self.run else { return };
        let FarRun { plan, context, stage: Stage::Running { traffic, before }, .. } = &mut **run
        else {
            return;
        };
        usage_before(plan.observe && observes, context, before);
        if let Err(why) = traffic.begin(plan) {
            self.fail(why.to_string());
        }
    }

    async fn watched(&mut self, watched: Watched) -> Result<(), EngineError> {
        if let (Some(shown), Watched::Sample(sample)) = (&mut self.shown, &watched) {
            shown.sampled(sample);
        }
        match watched {
            // Other protocols' sessions tell no more of it than their protocol demands.
            Watched::Sample(_) if self.shared.config.private && self.caller.protocol.observes => {}
            Watched::Sample(sample) => self.conversation.tell(Input::Sampled(sample)),
            Watched::Ended(Err(why)) => self.fail(why),
            Watched::Ended(Ok(ending)) => {
                self.tell_log(&ending.last);
                if let Some(shown) = &mut self.shown {
                    shown.ended(&ending.last);
                }
                self.conversation.tell(Input::Ended(ending.last));
                self.report(ending.placement).await?;
            }
        }
        Ok(())
    }

    fn tell_log(&mut self, last: &Sample) {
        let Caller { peer, protocol, .. } = self.caller;
        let what = match &self.run {
            Run::Going(run) => in_short(&run.plan),
            _ => String::new(),
        };
        tracing::info!(%peer, "{}: measured: {what}: received {} bytes{}, sent {} bytes in {:.3} s",
            protocol.id, last.received_bytes, missed(last), last.sent_bytes, last.at_s);
        if !protocol.observes {
            self.measurements += 1;
        }
    }

    /// All flows have ended: tells the client what this end saw.
    async fn report(&mut self, placement: Placement) -> Result<(), EngineError> {
        let Run::Going(run) = std::mem::replace(&mut self.run, Run::None) else { return Ok(()) };
        let FarRun { plan, movers, context, stage: Stage::Running { before, .. }, .. } = *run
        else {
            return Ok(());
        };
        if self.shared.config.private {
            let why = "the far end keeps its facts to itself";
            self.conversation.tell(Input::Report(Known::missing(why)));
            return Ok(());
        }
        let observes = plan.observe && self.may_observe();
        let mut used = usage_after(observes, &context);
        let mut after = observe(observes, context).await?;
        after.facts.append(&mut used.facts);
        if let Some(shown) = &mut self.shown {
            shown.observed(before.clone(), after.clone());
        }
        let host = goodput_kernel::host();
        let placement = Some(placement);
        let end =
            End { host, before, after, samples: Vec::new(), placement, movers: movers.chosen() };
        self.conversation.tell(Input::Report(Known::Value(Box::new(end))));
        Ok(())
    }

    async fn setting(&mut self, request: SettingRequest) -> Result<String, SettingRefusal> {
        tracing::info!(peer = %self.caller.peer, "setting: {request:?}");
        let Some(mut settings) = self.settings.take() else {
            return Err(SettingRefusal {
                not_permitted: false,
                why: "an earlier change broke off; leave and come back".into(),
            });
        };
        let done = blocking(move || {
            let answer = settings.carry_out(&request);
            (settings, answer)
        });
        match done.await {
            Ok((settings, answer)) => {
                self.settings = Some(settings);
                answer
            }
            Err(why) => Err(SettingRefusal { not_permitted: false, why: why.to_string() }),
        }
    }

    async fn put_back(&mut self) {
        let Some(mut settings) = self.settings.take() else { return };
        match blocking(move || settings.restore()).await {
            Ok(Ok(_)) => {}
            Ok(Err(refusal)) => {
                tracing::error!(peer = %self.caller.peer, "not put back: {}", refusal.why)
            }
            Err(why) => tracing::error!(peer = %self.caller.peer, "not put back: {why}"),
        }
    }
}

/// How this end's card spreads what it receives, for the client to choose its ports by.
async fn receive_hash(private: bool, plan: &Plan, context: &Context) -> spread::Hash {
    if private {
        return Known::missing("the server keeps its facts to itself (--private)");
    }
    spread::own(plan, context).await
}

/// What a plan moves and where, for one line of the log.
fn in_short(plan: &Plan) -> String {
    let way = match plan.direction {
        Direction::Send => "to here",
        Direction::Reverse => "from here",
        Direction::Both => "both ways",
    };
    let transport = match plan.transport {
        Transport::Tcp => "TCP",
        Transport::Udp => "UDP",
    };
    let flows = plan.flow_plans().len();
    format!("{transport}, {flows} flow{}, {way}", if flows == 1 { "" } else { "s" })
}

/// The next thing the current measurement has to say; never, while there is none.
async fn progress(run: &mut Run) -> Woken {
    let run = match run {
        Run::None => return std::future::pending().await,
        Run::Preparing(preparing) => return Woken::Prepared(preparing.await),
        Run::Errand(errand) => return Woken::Told(errand.next().await),
        Run::Going(run) => run,
    };
    match &mut run.stage {
        Stage::Running { traffic, .. } => Woken::Watched(traffic.next().await),
        Stage::Gathering(gathering) => tokio::select! {
            // The sender lives in `gathering`, so there is always a next one.
            Some(arrival) = run.arrivals.recv() => Woken::Arrived(arrival),
            why = gathering.overdue() => Woken::Arrived(Err(why)),
        },
    }
}

/// How many datagrams did not come, where any were received.
fn missed(last: &Sample) -> String {
    let received = last.flows.iter().filter(|flow| flow.role == Role::Receiver);
    let counts = received
        .filter_map(|flow| flow.datagrams)
        .fold((0, 0), |(lost, all), seen| (lost + seen.lost, all + seen.lost + seen.received));
    match counts {
        (_, 0) => String::new(),
        (lost, all) => format!(" and missed {lost} of {all} datagrams"),
    }
}
