//! One client: its conversation, its measurements one after the other, its settings.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use goodput_kernel::Context;
use goodput_model::{BitRate, End, EndName, Known, Plan, SettingRef, Snapshot};
use goodput_wire::session::{Action, Input, SettingRefusal, SettingRequest};
use goodput_wire::ticket::FlowTicket;
use tokio::sync::mpsc;

use super::Shared;
use super::admission::Place;
use super::own_door::{self, OwnDoor};
use super::settings::SessionSettings;
use super::tickets::Expected;
use crate::client::blocking;
use crate::control::Conversation;
use crate::error::EngineError;
use crate::observe::observe;
use crate::traffic::{Connected, Traffic, Watched};

/// Serves one client, that came to `local`, until it leaves, breaks the protocol, or the server stops.
pub async fn serve_client(
    conversation: Conversation,
    peer: SocketAddr,
    local: SocketAddr,
    shared: &Arc<Shared>,
) {
    let mut client = ServedClient {
        conversation,
        peer,
        local,
        shared: Arc::clone(shared),
        settings: Some(SessionSettings::new(shared.config.state_dir.clone())),
        run: None,
        measurements: 0,
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
    client.run = None;
    client.put_back().await;
    match outcome {
        Ok(()) => tracing::info!(%peer, "left after {} measurements", client.measurements),
        Err(why) => tracing::info!(%peer, "ended: {why}"),
    }
    if client.measurements > 0 {
        shared.served_one.notify_one();
    }
}

struct ServedClient {
    conversation: Conversation,
    peer: SocketAddr,
    local: SocketAddr,
    shared: Arc<Shared>,
    settings: Option<SessionSettings>,
    run: Option<FarRun>,
    measurements: u32,
}

/// One measurement at the answering end.
struct FarRun {
    plan: Plan,
    context: Context,
    stage: Stage,
    /// Where flows arrive. Kept to the end: while it is there, a lost welcome is repeated.
    arrivals: mpsc::UnboundedReceiver<Connected>,
    _place: Place,
}

enum Stage {
    /// Data connections are arriving.
    Gathering(Gathering),
    /// All flows are there; payload moves, or will.
    Running { traffic: Traffic, before: Snapshot },
}

/// The data connections of one measurement, while they arrive.
struct Gathering {
    awaited: usize,
    arrived: Vec<Connected>,
    _expected: Expected,
    _door: Option<OwnDoor>,
}

/// What woke the driver.
enum Woken {
    Action(Option<Action>),
    Arrived(Connected),
    Watched(Watched),
}

impl ServedClient {
    async fn converse(&mut self) -> Result<(), EngineError> {
        loop {
            self.conversation.set_measuring(self.run.is_some());
            let woken = tokio::select! {
                action = self.conversation.next() => Woken::Action(action.map_err(|failure| {
                    EngineError::Wire { target: "client".into(), failure }
                })?),
                progress = progress(&mut self.run) => progress,
            };
            match woken {
                Woken::Action(None) => return Ok(()),
                Woken::Action(Some(action)) => self.act(action).await?,
                Woken::Arrived(arrival) => self.arrived(arrival).await?,
                Woken::Watched(watched) => self.watched(watched).await?,
            }
        }
    }

    async fn act(&mut self, action: Action) -> Result<(), EngineError> {
        match action {
            Action::ExpectFlows { plan, tickets, .. } => self.expect(*plan, &tickets),
            Action::Begin => self.begin(),
            Action::Finish => {
                if let Some(FarRun { stage: Stage::Running { traffic, .. }, .. }) = &self.run {
                    traffic.finish();
                }
            }
            Action::Abandon => self.run = None,
            // Its last word: what began and was left in the middle is no measurement.
            Action::PeerReported(_) => self.measurements += 1,
            Action::Setting(request) => {
                let answer = self.setting(request).await;
                self.conversation.tell(Input::SettingDone(answer));
            }
            Action::Greeted { peer, secured, .. } => {
                let name = &peer.name;
                tracing::info!(peer = %self.peer, "connected: {name}, {}",
                    if secured { "with the token" } else { "without a token" });
            }
            Action::Refused(why) => tracing::info!(peer = %self.peer, "broke off: {why}"),
            // What the client saw is its own to show.
            _ => {}
        }
        Ok(())
    }

    fn expect(&mut self, plan: Plan, tickets: &[FlowTicket]) {
        match self.gather(plan, tickets) {
            Ok((run, data_port)) => {
                self.run = Some(run);
                self.conversation.tell(Input::Expecting { data_port });
            }
            Err(why) => {
                tracing::info!(peer = %self.peer, "refused: {why}");
                self.conversation.tell(Input::FlowsFailed(why));
            }
        }
    }

    fn gather(&self, plan: Plan, tickets: &[FlowTicket]) -> Result<(FarRun, Option<u16>), String> {
        let place = self.shared.admission.measurement(self.peer.ip(), &plan)?;
        goodput_mover::check_plan(&plan).map_err(|why| why.to_string())?;
        known_congestion_control(plan.socket.congestion.as_deref())?;
        let (expected, arrivals) = self.shared.tickets.expect(tickets, &plan.socket);
        let door = if own_door::is_needed(&plan) { Some(self.open_door(&plan)?) } else { None };
        let data_port = door.as_ref().map(OwnDoor::port);
        tracing::info!(peer = %self.peer, "measures: {} flows, {:?}, {:?}", tickets.len(),
            plan.transport, plan.direction);
        let context = Context::towards(self.peer.ip());
        let stage = Stage::Gathering(Gathering {
            awaited: tickets.len(),
            arrived: Vec::new(),
            _expected: expected,
            _door: door,
        });
        Ok((FarRun { plan, context, stage, arrivals, _place: place }, data_port))
    }

    fn open_door(&self, plan: &Plan) -> Result<OwnDoor, String> {
        OwnDoor::open(self.local.ip(), &plan.socket, Arc::clone(&self.shared))
    }

    async fn arrived(&mut self, arrival: Connected) -> Result<(), EngineError> {
        let Some(run) = &mut self.run else { return Ok(()) };
        let Stage::Gathering(gathering) = &mut run.stage else { return Ok(()) };
        gathering.arrived.push(arrival);
        if gathering.arrived.len() < gathering.awaited {
            return Ok(());
        }
        let sockets = std::mem::take(&mut gathering.arrived);
        let observes = run.plan.observe && !self.shared.config.private;
        let before = observe(observes, run.context.clone()).await?;
        let cap = self.shared.config.limits.rate_bits_per_s.map(BitRate);
        match Traffic::start(&run.plan, EndName::Far, sockets, cap) {
            Ok(traffic) => {
                run.stage = Stage::Running { traffic, before };
                self.conversation.tell(Input::FlowsReady);
            }
            Err(why) => {
                self.run = None;
                self.conversation.tell(Input::FlowsFailed(why.to_string()));
            }
        }
        Ok(())
    }

    fn begin(&mut self) {
        let Some(FarRun { plan, stage: Stage::Running { traffic, .. }, .. }) = &mut self.run else {
            return;
        };
        if let Err(why) = traffic.begin(plan) {
            self.run = None;
            self.conversation.tell(Input::FlowsFailed(why.to_string()));
        }
    }

    async fn watched(&mut self, watched: Watched) -> Result<(), EngineError> {
        match watched {
            Watched::Sample(_) if self.shared.config.private => {}
            Watched::Sample(sample) => self.conversation.tell(Input::Sampled(sample)),
            Watched::Ended(Err(why)) => {
                self.run = None;
                self.conversation.tell(Input::FlowsFailed(why));
            }
            Watched::Ended(Ok(ending)) => {
                self.conversation.tell(Input::Ended(ending.last));
                self.report().await?;
            }
        }
        Ok(())
    }

    /// All flows have ended: tells the client what this end saw.
    async fn report(&mut self) -> Result<(), EngineError> {
        let Some(FarRun { plan, context, stage: Stage::Running { before, .. }, .. }) =
            self.run.take()
        else {
            return Ok(());
        };
        if self.shared.config.private {
            let why = "the far end keeps its facts to itself";
            self.conversation.tell(Input::Report(Known::missing(why)));
            return Ok(());
        }
        let after = observe(plan.observe, context).await?;
        let host = goodput_kernel::host();
        let end = End { host, before, after, samples: Vec::new() };
        self.conversation.tell(Input::Report(Known::Value(Box::new(end))));
        Ok(())
    }

    async fn setting(&mut self, request: SettingRequest) -> Result<String, SettingRefusal> {
        tracing::info!(peer = %self.peer, "setting: {request:?}");
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
            Ok(Err(refusal)) => tracing::error!(peer = %self.peer, "not put back: {}", refusal.why),
            Err(why) => tracing::error!(peer = %self.peer, "not put back: {why}"),
        }
    }
}

/// Refuses a congestion control that is not loaded: asking for it by setsockopt(TCP_CONGESTION) as
/// root would load a kernel module at a stranger's wish.
fn known_congestion_control(name: Option<&str>) -> Result<(), String> {
    let Some(name) = name else { return Ok(()) };
    let setting = SettingRef {
        end: EndName::Near,
        name: "sysctl.net.ipv4.tcp_available_congestion_control".into(),
        scope: None,
    };
    let available = goodput_settings::read(&setting).map_err(|e| e.to_string())?;
    if available.split_whitespace().any(|known| known == name) {
        return Ok(());
    }
    Err(format!("congestion control {name:?} is not available there; available: {available}"))
}

/// The next thing the current measurement has to say; never, while there is none.
async fn progress(run: &mut Option<FarRun>) -> Woken {
    match run {
        Some(FarRun { stage: Stage::Running { traffic, .. }, .. }) => {
            Woken::Watched(traffic.next().await)
        }
        Some(FarRun { arrivals, .. }) => match arrivals.recv().await {
            Some(arrival) => Woken::Arrived(arrival),
            // Every cookie was used or withdrawn; the session's own deadline decides what follows.
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}
