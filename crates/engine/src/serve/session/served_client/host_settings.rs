//! This host's settings, as a client asks for them and as the audit log has it.

use std::net::SocketAddr;

use goodput_wire::session::{SettingRefusal, SettingRequest};

use crate::serve::AUDIT;
use crate::serve::session::client::{ClientInfo, ConnectedClient};
use crate::serve::session::settings::SessionSettings;
use crate::threads::blocking;

/// The settings that one client changes.
pub(super) struct HostSettings {
    /// `None` once a change was lost on the way.
    session: Option<SessionSettings>,
}

impl HostSettings {
    /// Nothing is changed yet for the client of this session.
    pub(super) fn new(client: &ConnectedClient) -> Self {
        let helper = client.shared.config.settings_helper.clone();
        Self { session: Some(SessionSettings::new(helper, client.info.peer)) }
    }

    /// Answers a request that `by` may make.
    pub(super) async fn answer(
        &mut self,
        peer: SocketAddr,
        by: &str,
        request: SettingRequest,
    ) -> Result<String, SettingRefusal> {
        let asked = request.to_string();
        // Its answer is the full packets that it asks for.
        let is_echo = matches!(request, SettingRequest::Echo(_) | SettingRequest::EchoAll(_));
        // Logged even if this server ends before the answer is there.
        tracing::info!(target: AUDIT, %peer, "setting: {asked} by {by}: asked for");
        let answer = self.carry_out(request).await;
        match &answer {
            Ok(_) if is_echo => {
                tracing::info!(target: AUDIT, %peer, "setting: {asked} by {by}: answered");
            }
            Ok(value) => tracing::info!(target: AUDIT, %peer, "setting: {asked} by {by}: {value}"),
            Err(refusal) => {
                tracing::warn!(target: AUDIT, %peer, "setting: {asked} by {by}: failed: {}", refusal.why);
            }
        }
        answer
    }

    async fn carry_out(&mut self, request: SettingRequest) -> Result<String, SettingRefusal> {
        let Some(mut settings) = self.session.take() else {
            return Err(SettingRefusal {
                why: "an earlier change failed; disconnect and connect again".into(),
                ..Default::default()
            });
        };
        let done = blocking(move || {
            let answer = settings.carry_out(&request);
            (settings, answer)
        });
        match done.await {
            Ok((settings, answer)) => {
                self.session = Some(settings);
                answer
            }
            Err(why) => Err(SettingRefusal { why: why.to_string(), ..Default::default() }),
        }
    }

    /// Waits until something has to be put back because the client has not confirmed it; for ever if nothing has.
    pub(super) async fn overdue(&self) {
        match self.session.as_ref().and_then(SessionSettings::due) {
            Some(due) => tokio::time::sleep_until(due.into()).await,
            None => std::future::pending().await,
        }
    }

    /// Puts back what the client has not confirmed in time.
    pub(super) async fn put_back_unconfirmed(&mut self, ClientInfo { peer, .. }: ClientInfo) {
        let Some(mut settings) = self.session.take() else { return };
        let done = blocking(move || {
            let back = settings.put_back_unconfirmed();
            (settings, back)
        });
        let back = match done.await {
            Ok((settings, back)) => {
                self.session = Some(settings);
                back
            }
            Err(why) => return tracing::error!(%peer, "not put back: {why}"),
        };
        for (setting, done) in back {
            match done {
                Ok(value) => {
                    tracing::warn!(target: AUDIT, %peer, "setting: {setting} was not confirmed: {value} again");
                }
                Err(refusal) => tracing::error!(%peer, "{setting} not put back: {}", refusal.why),
            }
        }
    }

    /// Puts back what the client has changed.
    pub(super) async fn put_back(&mut self, ClientInfo { peer, .. }: ClientInfo) {
        let Some(mut settings) = self.session.take() else { return };
        match blocking(move || settings.restore()).await {
            Ok(Ok(_)) => {}
            Ok(Err(refusal)) => tracing::error!(%peer, "not put back: {}", refusal.why),
            Err(why) => tracing::error!(%peer, "not put back: {why}"),
        }
    }
}
