//! One client: its conversation, its measurements one after the other, its settings.

mod far_capture;
mod far_run;
mod host_settings;
mod log_line;
mod measuring;
mod sample_shedding;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use goodput_mover::EarlyPayload;
use goodput_wire::session::{Action, Input, SettingRequest};

pub use self::far_capture::MOST_CAPTURES;
use self::host_settings::HostSettings;
use self::measuring::{Happened, Measuring};
use super::client::{ClientInfo, ConnectedClient};
use super::shown::Served;
use crate::control::conversation::Conversation;
use crate::error::EngineError;
use crate::serve::Shared;

/// The only flow of a conversation over UDP: its socket, and the payload that came before it.
pub type OwnFlow = (OwnedFd, EarlyPayload);

/// Serves one client until it leaves, breaks the protocol, or the server stops. Returns how many measurements it made.
pub async fn serve_client(
    conversation: Conversation,
    info: ClientInfo,
    own: Option<OwnFlow>,
    shared: &Arc<Shared>,
) -> u32 {
    shared.tell(|| Served::Arrived { peer: info.peer });
    let _conversing = shared.config.counts.converse();
    let client = ConnectedClient::new(conversation, info, Arc::clone(shared), own.is_some());
    let settings = HostSettings::new(&client);
    let mut served = ServedClient { client, measuring: Measuring::new(own), settings };
    let outcome = tokio::select! {
        outcome = served.converse() => outcome,
        () = shared.stopping() => {
            let conversation = &mut served.client.conversation;
            conversation.feed(Input::Leave("the server is stopping".into()));
            // Lets the goodbye out; the client's answer no longer matters.
            let _ = tokio::time::timeout(Duration::from_secs(1), conversation.next()).await;
            Ok(())
        }
    };
    served.measuring.forget();
    served.settings.put_back(info).await;
    let (peer, id, measurements) = (info.peer, info.protocol.id, served.measuring.count());
    match outcome {
        Ok(()) => tracing::info!(%peer, "{id}: disconnected after {measurements} measurements"),
        Err(why) => {
            tracing::info!(%peer, "{id}: ended: {why}");
            shared.remark(peer, Some(info.protocol), &format!("ended: {why}"));
        }
    }
    shared.tell(|| Served::Left { peer });
    if measurements > 0 {
        shared.served_one.notify_one();
    }
    measurements
}

struct ServedClient {
    client: ConnectedClient,
    measuring: Measuring,
    settings: HostSettings,
}

/// What woke the driver.
enum Woken {
    Action(Option<Action>),
    Happened(Happened),
    /// A change of a setting was not confirmed in time.
    Unconfirmed,
}

impl ServedClient {
    async fn converse(&mut self) -> Result<(), EngineError> {
        loop {
            let Self { client, measuring, settings } = self;
            client.conversation.set_measuring(measuring.has_flows());
            let woken = tokio::select! {
                action = client.conversation.next() => Woken::Action(action.map_err(|failure| {
                    EngineError::Wire { target: "client".into(), failure }
                })?),
                happened = measuring.next() => Woken::Happened(happened),
                () = settings.overdue() => Woken::Unconfirmed,
            };
            match woken {
                Woken::Action(None) => return Ok(()),
                Woken::Action(Some(action)) => self.act(action).await?,
                Woken::Happened(happened) => measuring.happened(client, happened).await?,
                Woken::Unconfirmed => settings.put_back_unconfirmed(client.info).await,
            }
        }
    }

    async fn act(&mut self, action: Action) -> Result<(), EngineError> {
        let Self { client, measuring, .. } = self;
        let ClientInfo { peer, protocol, .. } = client.info;
        match action {
            Action::Proven(credential) => client.prove(credential),
            Action::Converse => measuring.ask_to_converse(client),
            Action::ExpectFlows { plan, tickets, flow_setup } => {
                measuring.expect(client, *plan, tickets, flow_setup).await?;
            }
            // For the measurement that the client proposes next, if it is admitted.
            Action::Echo(cookie) => measuring.echo(cookie),
            Action::MeasureWithThirdParty(test) => {
                measuring.measure_with_third_party(client, *test).await?;
            }
            Action::CheckLogin(token) => self.check_login(token).await,
            Action::Begin => measuring.begin(client)?,
            Action::Finish => measuring.finish(false),
            Action::FinishSoon => measuring.finish(true),
            Action::Abandon => measuring.forget(),
            Action::PeerTotals(totals) => {
                if let Some(shown) = measuring.shown() {
                    shown.reported(*totals);
                }
            }
            Action::PeerReported(_) => measuring.reported(client),
            Action::Setting(request) => self.set(request).await,
            Action::Greeted { peer: host, .. } => {
                tracing::info!(%peer, "{}: connected: {}", protocol.id, host.name);
            }
            Action::Note(text) => {
                tracing::info!(%peer, "{}: {text}", protocol.id);
                client.remark(&text);
            }
            Action::Refused(why) => {
                tracing::info!(%peer, "failed: {why}");
                client.remark(&format!("failed: {why}"));
            }
            // What the client saw is the client's to show.
            Action::PeerSampled(_) | Action::SettingAnswered(_) => {}
            // Only a client's session emits these.
            Action::OpenFlows { .. }
            | Action::PeerHash(_)
            | Action::PeerCaptures(_)
            | Action::PeerCaptured(_)
            | Action::PeerReady
            | Action::PeerStopped
            | Action::ServerShowed(_)
            | Action::ClockCompared(_) => {}
        }
        Ok(())
    }

    async fn set(&mut self, request: SettingRequest) {
        let peer = self.client.info.peer;
        if let Err(why) = self.client.renew() {
            tracing::warn!(%peer, "setting: {request}: denied: {why}");
            self.client.remark(&format!("setting {request} denied: {why}"));
            self.client.feed(Input::Denied(why));
            return;
        }
        let (may, by) = (self.client.may_ask(&request), self.client.who());
        let answer = match may {
            Ok(()) => self.settings.answer(peer, &by, request).await,
            Err(refusal) => Err(refusal),
        };
        self.client.feed(Input::SettingDone(answer));
    }

    /// Finds out whose login it is. If it is nobody's, only this end's log says why.
    async fn check_login(&mut self, token: String) {
        let ConnectedClient { info: ClientInfo { peer, protocol, .. }, shared, .. } = &self.client;
        let user = match &shared.config.users {
            Some(users) => shared.logins.check(users, token, peer.ip()).await,
            None => Err("this server has no users".into()),
        };
        if let Err(why) = &user {
            tracing::warn!(%peer, "{}: not logged in: {why}", protocol.id);
            self.client.remark(&format!("not logged in: {why}"));
        }
        self.client.feed(Input::LoginChecked(user.ok()));
    }
}
