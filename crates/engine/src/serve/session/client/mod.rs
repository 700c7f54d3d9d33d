//! One client: its conversation, its measurements one after the other, its settings.

mod far_run;
mod log_line;
mod sample_shedding;

use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use goodput_model::{Direction, Plan, Role, Transport};
use goodput_mover::EarlyPayload;
use goodput_wire::session::{
    Action, Cookie, Credential, Input, Limits, SettingRefusal, SettingRequest, ThirdPartyTest,
};

use super::caller::Caller;
use super::gather::{Awaiting, Preparing};
use super::settings::SessionSettings;
use super::shown::{Shown, turned};
use super::tickets::Arrival;
use crate::control::conversation::Conversation;
use crate::error::EngineError;
use crate::run::end_run::Seen;
use crate::run::watched::Failure;
use crate::serve::admit::admission::{Place, Wants};
use crate::serve::admit::echoes::Echoing;
use crate::serve::admit::gate::Permit;
use crate::serve::session::client::far_run::FarRun;
use crate::serve::session::third_party::{self, Said};
use crate::serve::{AUDIT, Shared};
use crate::threads::blocking;

/// The only flow of a conversation over UDP: its socket, and the payload that came before it.
pub type OwnFlow = (OwnedFd, EarlyPayload);

/// Serves one client until it leaves, breaks the protocol, or the server stops. Returns how many measurements it made.
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
        forgeable: own.is_some(),
        proven: own.is_none() || shared.config.limits.unproven_udp,
        credential: None,
        own,
        shared: Arc::clone(shared),
        settings: Some(SessionSettings::new(shared.config.settings_helper.clone(), peer)),
        run: Run::None,
        measurements: 0,
        shown: None,
        echo: None,
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
        Ok(()) => {
            tracing::info!(%peer, "{id}: disconnected after {} measurements", client.measurements)
        }
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
    /// Whether this address may be forged.
    forgeable: bool,
    /// Whether payload may be sent to this address all the same.
    proven: bool,
    /// What the client has proven about itself.
    credential: Option<Credential>,
    own: Option<OwnFlow>,
    shared: Arc<Shared>,
    settings: Option<SessionSettings>,
    run: Run,
    measurements: u32,
    /// The measurement as an observer of the server sees it.
    shown: Option<Shown>,
    /// Whose echoes to answer during the proposed measurement.
    echo: Option<Cookie>,
    /// Echoes for the measurement are answered while this lives.
    echoing: Option<Echoing>,
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

/// What woke the driver.
enum Woken {
    Action(Option<Action>),
    Prepared(Result<Box<Awaiting>, String>),
    Admitted(Result<Place, String>),
    Arrived(Arrival),
    Seen(Result<Seen, Failure>),
    ThirdParty(Said),
}

impl ServedClient {
    async fn converse(&mut self) -> Result<(), EngineError> {
        loop {
            let reports = !matches!(self.run, Run::None | Run::Asking(_) | Run::Conversing { .. });
            self.conversation.set_measuring(reports);
            let woken = tokio::select! {
                action = self.conversation.next() => Woken::Action(action.map_err(|failure| {
                    EngineError::Wire { target: "client".into(), failure }
                })?),
                progress = progress(&mut self.run) => progress,
            };
            match woken {
                Woken::Action(None) => return Ok(()),
                Woken::Action(Some(action)) => self.act(action).await?,
                Woken::Admitted(place) => self.converse_at(place),
                Woken::Prepared(prepared) => self.prepared(prepared, None).await?,
                Woken::Arrived(arrival) => self.arrived(arrival).await?,
                Woken::Seen(seen) => self.seen(seen).await?,
                Woken::ThirdParty(said) => self.third_party_said(said),
            }
        }
    }

    async fn act(&mut self, action: Action) -> Result<(), EngineError> {
        let peer = self.caller.peer;
        match action {
            Action::Proven(credential) => {
                tracing::info!(%peer, "{}: authenticated: {credential}", self.caller.protocol.id);
                self.credential = Some(credential);
            }
            Action::Converse => self.ask_to_converse(),
            Action::ExpectFlows { plan, tickets, flow_setup } => {
                self.expect(*plan, tickets, flow_setup).await?;
            }
            // For the measurement that the client proposes next, if it is admitted.
            Action::Echo(cookie) => self.echo = Some(cookie),
            Action::MeasureWithThirdParty(test) => self.measure_with_third_party(*test).await,
            Action::CheckLogin(token) => self.check_login(token).await,
            Action::Begin => self.begin(),
            Action::Finish => self.finish(false),
            Action::FinishSoon => self.finish(true),
            Action::Abandon => {
                self.forget();
            }
            Action::PeerTotals(totals) => {
                if let Some(shown) = &mut self.shown {
                    shown.told(*totals);
                }
            }
            Action::PeerReported(_) => {
                self.shown = None;
                self.echoing = None;
                // The client's last message: a measurement that was broken off in the middle does not count.
                self.measurements += u32::from(self.caller.protocol.far_end.measures_again);
            }
            Action::Setting(request) => match self.renew() {
                Ok(()) => {
                    let answer = self.setting(request).await;
                    self.conversation.tell(Input::SettingDone(answer));
                }
                Err(why) => {
                    tracing::warn!(%peer, "setting: {request}: denied: {why}");
                    self.conversation.tell(Input::Denied(why));
                }
            },
            Action::Greeted { peer: host, .. } => {
                tracing::info!(%peer, "{}: connected: {}", self.caller.protocol.id, host.name);
            }
            Action::Note(text) => tracing::info!(%peer, "{}: {text}", self.caller.protocol.id),
            Action::Refused(why) => tracing::info!(%peer, "failed: {why}"),
            // What the client saw is the client's to show.
            Action::PeerSampled(_) | Action::SettingAnswered(_) => {}
            // Only a client's session emits these.
            Action::OpenFlows { .. }
            | Action::PeerHash(_)
            | Action::PeerReady
            | Action::ServerShowed(_)
            | Action::ClockCompared(_) => {}
        }
        Ok(())
    }

    /// The permit to use this host's resources for the client, if it may measure. Otherwise the client gets the reason.
    fn permit(&mut self) -> Option<Permit> {
        let Caller { peer, protocol, .. } = self.caller;
        let renewed = self.renew();
        let permit =
            renewed.and_then(|()| self.shared.gate().may_measure(self.credential.as_ref()));
        let why = match permit {
            Ok(permit) => return Some(permit),
            Err(why) => why,
        };
        tracing::info!(%peer, "{}: denied: {why}", protocol.id);
        self.conversation.tell(Input::Denied(why));
        None
    }

    /// Looks up the client's key again: its key may be withdrawn, or its role changed, while the client is here.
    fn renew(&mut self) -> Result<(), String> {
        if let (Some(Credential::Key(key)), Some(keys)) = (&self.credential, self.shared.keys()) {
            let known = keys.again(key, self.caller.peer.ip())?;
            self.credential = Some(Credential::Key(known));
        }
        Ok(())
    }

    /// The client's credential, for the log.
    fn who(&self) -> String {
        self.credential.as_ref().map_or("nobody".into(), ToString::to_string)
    }

    /// What the client may ask for, set by its key's line if it has one.
    fn limits(&self) -> Limits {
        let limits = self.shared.config.limits;
        match &self.credential {
            Some(Credential::Key(key)) => key.limits(limits),
            _ => limits,
        }
    }

    /// Asks for a place for a conversation that is itself a measurement.
    fn ask_to_converse(&mut self) {
        let Some(permit) = self.permit() else { return };
        let (shared, from) = (Arc::clone(&self.shared), self.caller.peer.ip());
        self.run = Run::Asking(Box::pin(async move {
            shared.admission.admit(permit, from, Wants::Conversation, true).await
        }));
    }

    fn converse_at(&mut self, place: Result<Place, String>) {
        match place {
            Ok(place) => {
                let (peer, id) = (self.caller.peer, self.caller.protocol.id);
                tracing::info!(%peer, by = %self.who(), "{id}: converses");
                let [sent, received] = [Role::Sender, Role::Receiver].map(|role| place.rates(role));
                self.conversation.keep_to(sent, received);
                self.run = Run::Conversing { _place: Box::new(place) };
                self.conversation.tell(Input::Expecting { data_port: None });
            }
            Err(why) => self.fail(why),
        }
    }

    /// Finds out whose login it is. If it is nobody's, only this end's log says why.
    async fn check_login(&mut self, token: String) {
        let Caller { peer, protocol, .. } = self.caller;
        let user = match &self.shared.config.accounts {
            Some(accounts) => self.shared.logins.check(accounts, token, peer.ip()).await,
            None => Err("this server has no users".into()),
        };
        if let Err(why) = &user {
            tracing::warn!(%peer, "{}: not logged in: {why}", protocol.id);
        }
        self.conversation.tell(Input::LoginChecked(user.ok()));
    }

    async fn measure_with_third_party(&mut self, test: ThirdPartyTest) {
        let Some(permit) = self.permit() else { return };
        let Caller { peer, protocol, .. } = self.caller;
        let by = self.shared.config.third_party.as_ref();
        let what = format!("{}:{}: {}", test.host, test.port, in_short(&turned(&test.plan)));
        match third_party::begin(test, permit, peer.ip(), by, &self.shared.admission).await {
            Ok(running) => {
                tracing::info!(%peer, "{}: measures for it with {what}", protocol.id);
                self.run = Run::ThirdParty(Box::new(running));
                self.conversation.tell(Input::Expecting { data_port: None });
            }
            Err(why) => self.fail(why),
        }
    }

    /// Handles the outcome of a measurement with a third party.
    fn third_party_said(&mut self, said: Said) {
        match said {
            Said::Lines(lines) => self.conversation.tell(Input::ThirdPartyOutput(lines)),
            Said::Over(outcome) => {
                self.run = Run::None;
                match &outcome {
                    Ok(()) => self.measurements += 1,
                    Err(why) => tracing::info!(peer = %self.caller.peer, "failed: {why}"),
                }
                self.conversation.tell(Input::ThirdPartyDone(outcome));
            }
        }
    }

    /// Drops the measurement.
    fn forget(&mut self) {
        self.run = Run::None;
        self.shown = None;
        self.echo = None;
        self.echoing = None;
    }

    /// The measurement can't be made, or can't go on.
    fn fail(&mut self, why: String) {
        self.forget();
        tracing::info!(peer = %self.caller.peer, "{}: refused: {why}", self.caller.protocol.id);
        self.conversation.tell(Input::FlowsFailed(why));
    }

    async fn setting(&mut self, request: SettingRequest) -> Result<String, SettingRefusal> {
        let peer = self.caller.peer;
        let by = self.who();
        if let Err(refusal) = self.shared.gate().may_ask(self.credential.as_ref(), &request) {
            tracing::warn!(%peer, "setting: {request} by {by}: denied: {}", refusal.why);
            return Err(refusal);
        }
        let asked = request.to_string();
        // Logged even if this server ends before the answer is there.
        tracing::info!(target: AUDIT, %peer, "setting: {asked} by {by}: asked for");
        let answer = self.carry_out(request).await;
        match &answer {
            Ok(value) => tracing::info!(target: AUDIT, %peer, "setting: {asked} by {by}: {value}"),
            Err(refusal) => {
                tracing::warn!(target: AUDIT, %peer, "setting: {asked} by {by}: failed: {}", refusal.why);
            }
        }
        answer
    }

    async fn carry_out(&mut self, request: SettingRequest) -> Result<String, SettingRefusal> {
        let Some(mut settings) = self.settings.take() else {
            return Err(SettingRefusal {
                not_permitted: false,
                why: "an earlier change failed; disconnect and connect again".into(),
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

/// What a plan moves and where, for one log line.
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

/// The next thing that the current measurement has to report; waits forever if there is none.
async fn progress(run: &mut Run) -> Woken {
    match run {
        Run::None | Run::Conversing { .. } => std::future::pending().await,
        Run::Asking(asking) => Woken::Admitted(asking.await),
        Run::Preparing(preparing) => Woken::Prepared(preparing.await),
        Run::ThirdParty(running) => Woken::ThirdParty(running.next().await),
        Run::Going(run) => run.progress().await,
    }
}
