//! Who a client is, what it may do here, and the conversation with it.

use std::net::SocketAddr;
use std::sync::Arc;

use goodput_capture::CaptureHelper;
use goodput_model::{EndName, Plan};
use goodput_wire::session::{Credential, Input, Limits, Protocol, SettingRefusal, SettingRequest};

use crate::control::conversation::Conversation;
use crate::serve::Shared;
use crate::serve::admit::gate::Permit;

/// What the connection shows of a client: its protocol and both addresses.
#[derive(Debug, Clone, Copy)]
pub struct ClientInfo {
    /// The client's protocol.
    pub protocol: &'static Protocol,
    /// The client's address.
    pub peer: SocketAddr,
    /// The address to which it connected.
    pub local: SocketAddr,
}

/// Logs the options of a flow that came too late for the handshake. goodput's own plans have a listener for them; other
/// protocols can't report them to the client.
pub fn log_doubts(peer: SocketAddr, flow: u16, doubts: &[String]) {
    for doubt in doubts {
        tracing::info!(%peer, "flow {flow}: {doubt}");
    }
}

/// A connected client.
pub(super) struct ConnectedClient {
    pub(super) conversation: Conversation,
    pub(super) info: ClientInfo,
    pub(super) shared: Arc<Shared>,
    /// Whether this address may be forged.
    pub(super) forgeable: bool,
    /// What the client has proven about itself.
    credential: Option<Credential>,
}

impl ConnectedClient {
    /// A client that has proven nothing.
    pub(super) fn new(
        conversation: Conversation,
        info: ClientInfo,
        shared: Arc<Shared>,
        forgeable: bool,
    ) -> Self {
        Self { conversation, info, shared, forgeable, credential: None }
    }

    /// Tells whoever watches the server what the client did not get, or got in another way.
    pub(super) fn remark(&self, text: &str) {
        self.shared.remark(self.info.peer, Some(self.info.protocol), text);
    }

    /// Gives the client's session an input.
    pub(super) fn feed(&mut self, input: Input) {
        self.conversation.feed(input);
    }

    /// The client has proven this about itself.
    pub(super) fn prove(&mut self, credential: Credential) {
        let ClientInfo { peer, protocol, .. } = self.info;
        tracing::info!(%peer, "{}: authenticated: {credential}", protocol.id);
        self.credential = Some(credential);
    }

    /// What the client has proven about itself.
    pub(super) fn credential(&self) -> Option<&Credential> {
        self.credential.as_ref()
    }

    /// The client's credential, for the log.
    pub(super) fn who(&self) -> String {
        self.credential.as_ref().map_or("nobody".into(), ToString::to_string)
    }

    /// The permit to use this host's resources for the client, if it may measure. Otherwise the client gets the reason.
    pub(super) fn permit(&mut self) -> Option<Permit> {
        let ClientInfo { peer, protocol, .. } = self.info;
        let renewed = self.renew();
        let permit =
            renewed.and_then(|()| self.shared.gate().may_measure(self.credential.as_ref()));
        let why = match permit {
            Ok(permit) => return Some(permit),
            Err(why) => why,
        };
        tracing::info!(%peer, "{}: denied: {why}", protocol.id);
        self.remark(&format!("denied: {why}"));
        self.feed(Input::Denied(why));
        None
    }

    /// Looks up the client's key again: its key may be withdrawn, or its role changed, while the client is connected.
    pub(super) fn renew(&mut self) -> Result<(), String> {
        if let (Some(Credential::Key(key)), Some(keys)) = (&self.credential, self.shared.keys()) {
            let known = keys.again(key, self.info.peer.ip())?;
            self.credential = Some(Credential::Key(known));
        }
        Ok(())
    }

    /// Whether the client may read or change a setting of this host.
    pub(super) fn may_ask(&self, request: &SettingRequest) -> Result<(), SettingRefusal> {
        let may = self.shared.gate().may_ask(self.credential.as_ref(), request);
        may.inspect_err(|refusal| {
            let (peer, by) = (self.info.peer, self.who());
            tracing::warn!(%peer, "setting: {request} by {by}: denied: {}", refusal.why);
            self.remark(&format!("setting {request} denied: {}", refusal.why));
        })
    }

    /// What the client may ask for, set by its key's line if it has one.
    pub(super) fn limits(&self) -> Limits {
        let limits = self.shared.config.limits;
        match &self.credential {
            Some(Credential::Key(key)) => key.limits(limits),
            _ => limits,
        }
    }

    /// Whether payload may be sent to the client's address.
    pub(super) fn is_proven(&self) -> bool {
        !self.forgeable || self.shared.config.limits.unproven_udp
    }

    /// Whether the client reads this end's samples and its report.
    pub(super) fn reads_reports(&self) -> bool {
        self.info.protocol.far_end.reports && !self.shared.config.private
    }

    /// Who captures packets of the client's flows, if the client may have them captured; or why not.
    pub(super) fn may_capture(&self) -> Result<Arc<CaptureHelper>, &'static str> {
        let config = &self.shared.config;
        if config.private {
            return Err("the server reports none of its facts (--private)");
        }
        let helper = config.capture_helper.as_ref();
        let helper =
            helper.ok_or("its server does not permit it; start it with --allow-capture")?;
        match &self.credential {
            Some(_) => Ok(Arc::clone(helper)),
            None => Err("the server captures only for clients with a token or a key"),
        }
    }

    /// Whether the client may know this host's path towards a third host; or why not.
    pub(super) fn may_look_elsewhere(&self) -> Result<(), &'static str> {
        let config = &self.shared.config;
        if config.private {
            return Err("the server reports none of its facts (--private)");
        }
        if !config.shows_qdiscs {
            return Err(
                "the server does not show its path towards other hosts; start it with --allow-qdiscs",
            );
        }
        match &self.credential {
            Some(_) => Ok(()),
            None => Err(
                "the server shows its path towards other hosts only to clients with a token or a key",
            ),
        }
    }

    /// Whether the client needs the hash of this end's card to choose its ports, and may have it; or why not. The hash
    /// includes the card's key, with which anyone could aim packets at one of its queues.
    pub(super) fn may_know_hash(&self, plan: &Plan) -> Result<(), &'static str> {
        if !plan.direction.senders().contains(&EndName::Near) {
            return Err("the far end receives no payload");
        }
        if self.shared.config.private {
            return Err("the server reports none of its facts (--private)");
        }
        if self.credential.is_none() {
            return Err("the server shows its card's hash key only to clients with a token");
        }
        Ok(())
    }
}
