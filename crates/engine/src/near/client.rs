//! The near side of a conversation: connect, agree, measure, ask for settings, leave.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use goodput_model::{Host, Plan, SettingRef, SocketOptions, TcpInfo};
use goodput_wire::error::WireError;
use goodput_wire::far_end::FarEnd;
use goodput_wire::session::{
    Action, CONFIRM_TIME, ClientConfig, ClientKey, ClockOffset, Input, MAX_ECHO_TEXTS,
    SettingRefusal, SettingRequest,
};

use crate::clock::host_clock;
use crate::control::conversation::Conversation;
use crate::control::credentials::{Credentials, KeyDisclosure};
use crate::control::dial::{DialedPeer, dial};
use crate::control::target::Target;
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::near::clocks::pings::Pings;
use crate::near::own_check;
use crate::run::rate_limits::RateLimits;

/// How long a far end that serves one client at a time may take between two clients.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long one end's reason may come after its effect at the other end: far longer than on a busy machine.
pub(super) const REASON_TIMEOUT: Duration = Duration::from_secs(5);

/// A greeted peer.
pub struct Client {
    pub(crate) conversation: Conversation,
    pub(crate) target: Target,
    /// The peer's addresses, which the first flow may try if there is no control connection.
    pub(crate) addresses: Vec<SocketAddr>,
    /// This end's address as the peer sees it, if there is a control connection.
    pub(crate) local: Option<SocketAddr>,
    options: SocketOptions,
    credentials: Credentials,
    /// The machine at the other end.
    pub peer: Host,
    secured: bool,
    /// Rates that this end keeps to in addition to each plan's rate.
    pub(crate) rate_limits: RateLimits,
    /// Comparisons of the clocks over the control connection.
    pub(crate) pings: Pings,
    /// How the peer's time of day differs from this host's, if the peer reported it.
    pub clock: Option<ClockOffset>,
    /// Questions about settings whose answers have not come yet.
    unanswered: u32,
}

impl Client {
    /// What the far end does besides moving payload.
    pub(crate) fn far_end(&self) -> &'static FarEnd {
        &self.target.protocol.far_end
    }

    /// Connects to the target and greets it, to measure by `plan`: what this end can't do of the plan is refused before
    /// anything is sent. The plan's socket options say where the connection starts (bind, device, IP version). Without a
    /// control connection, a protocol meets its peer only when the first flow is opened.
    pub async fn connect(
        target: &Target,
        plan: &Plan,
        credentials: &Credentials,
        interrupt: &Interrupt,
        listener: &mut Listener<'_>,
    ) -> Result<Self, EngineError> {
        own_check::check(target, plan).await?;
        let client = tokio::select! {
            client = Self::greet(target, &plan.socket, credentials, Duration::ZERO) => client?,
            () = interrupt.raised() => return Err(EngineError::Interrupted),
        };
        listener(Event::Connected { peer: client.peer.clone(), secured: client.secured });
        Ok(client)
    }

    /// As [`Client::connect`], but a refused connection is tried again for `patience`. If a server refuses clients
    /// without a credential, it is shown the user's key, if there is one.
    async fn greet(
        target: &Target,
        options: &SocketOptions,
        credentials: &Credentials,
        patience: Duration,
    ) -> Result<Self, EngineError> {
        let key = credentials.key_for(target, KeyDisclosure::AtOnce)?;
        let shows_nothing = key.is_none();
        match Self::greet_with(target, options, credentials, key, patience).await {
            Err(refused) if shows_nothing && refused.not_permitted() => {
                let Some(key) = credentials.key_for(target, KeyDisclosure::AsAsked)? else {
                    return Err(refused);
                };
                let shown = Self::greet_with(target, options, credentials, Some(key), patience);
                shown.await.map_err(|why| neither(target, &refused, &why))
            }
            outcome => outcome,
        }
    }

    async fn greet_with(
        target: &Target,
        options: &SocketOptions,
        credentials: &Credentials,
        key: Option<ClientKey>,
        patience: Duration,
    ) -> Result<Self, EngineError> {
        let dialled = dial(target.clone(), options.clone(), patience).await?;
        let DialedPeer { stream, addresses } = dialled;
        let local = stream.as_ref().and_then(|stream| stream.local_addr().ok());
        let config = ClientConfig {
            host: goodput_kernel::host(),
            token: credentials.token.clone(),
            key: key.clone(),
            login: credentials.login.clone(),
            seed: rand::random(),
            clock: host_clock(),
        };
        let session = (target.protocol.client)(std::time::Instant::now(), config);
        let mut conversation = Conversation::new(session, stream);
        let mut showed = None;
        loop {
            match next(&mut conversation, target).await? {
                Action::ServerShowed(server) => showed = Some(server),
                Action::Greeted { peer, secured, clock } => {
                    if let Some(server) = showed {
                        credentials.met(target, server, key.as_ref());
                    }
                    return Ok(Self {
                        conversation,
                        pings: Pings::default(),
                        target: target.clone(),
                        options: options.clone(),
                        credentials: credentials.clone(),
                        addresses,
                        local,
                        peer,
                        secured,
                        rate_limits: RateLimits::default(),
                        clock,
                        unanswered: 0,
                    });
                }
                other => return Err(unexpected(target, &other)),
            }
        }
    }

    /// Begins another conversation if the current one is over: it is good for one measurement only, or it broke.
    /// Returns whether it did.
    pub(crate) async fn be_met(&mut self) -> Result<bool, EngineError> {
        let is_over = self.conversation.is_over();
        if is_over {
            self.meet_again().await?;
        }
        Ok(is_over)
    }

    /// Why the peer breaks off, if it says so soon: the reset of a flow overtakes the reason.
    pub(crate) async fn refusal(&mut self) -> Option<EngineError> {
        // There are only flows.
        if !self.target.protocol.has_control {
            return None;
        }
        let words = async {
            loop {
                match self.next().await {
                    Ok(_) => {}
                    Err(refused @ EngineError::Refused { .. }) => return Some(refused),
                    Err(refused) if refused.not_permitted() => return Some(refused),
                    Err(_) => return None,
                }
            }
        };
        tokio::time::timeout(REASON_TIMEOUT, words).await.ok().flatten()
    }

    async fn meet_again(&mut self) -> Result<(), EngineError> {
        self.conversation.hang_up().await;
        let greeted = Self::greet(&self.target, &self.options, &self.credentials, IDLE_TIMEOUT);
        let greeted = greeted.await?;
        *self = Self { rate_limits: std::mem::take(&mut self.rate_limits), ..greeted };
        Ok(())
    }

    /// Limits all further measurements of this end to these rates.
    pub fn keep_to(&mut self, rate_limits: RateLimits) {
        self.rate_limits = rate_limits;
    }

    /// Reads or changes a setting of the far end. Returns the effective value.
    pub async fn setting(&mut self, request: SettingRequest) -> Result<String, EngineError> {
        let changed = match &request {
            SettingRequest::Apply(setting, _) | SettingRequest::Try(setting, _) => {
                Some(setting.clone())
            }
            _ => None,
        };
        let answer = self.answer(request).await?;
        answer.map_err(|refusal| EngineError::FarSetting {
            not_permitted: refusal.not_permitted,
            not_taken: changed.filter(|_| refusal.not_taken),
            busy: refusal.busy,
            why: refusal.why,
        })
    }

    /// Changes a setting of the far end that could cut this conversation, and confirms it once full packets got through in
    /// both directions; otherwise the far end puts it back. One that is too old for that puts it back only when the
    /// conversation ends. Returns the effective value.
    pub async fn try_setting(
        &mut self,
        setting: SettingRef,
        value: String,
    ) -> Result<String, EngineError> {
        let made = self.setting(SettingRequest::Try(setting.clone(), value)).await?;
        self.echo().await?;
        // This connection was made with the old value: its segments stay as small as they were.
        let fresh = tokio::time::timeout(CONFIRM_TIME, self.echo_anew());
        let why = match fresh.await {
            Ok(Ok(())) => return self.setting(SettingRequest::Confirm).await.map(|_| made),
            Ok(Err(why)) => why.to_string(),
            Err(_) => format!("nothing for {} s", CONFIRM_TIME.as_secs()),
        };
        let why = format!(
            "after the change of {setting}, no new connection carried full packets ({why}); the far end puts it back"
        );
        Err(EngineError::FarSetting { not_permitted: false, not_taken: None, busy: false, why })
    }

    /// Sends full packets there and back.
    async fn echo(&mut self) -> Result<(), EngineError> {
        let texts = full_packets(texts_for(self.longest_packet()));
        let (first, whole) = (texts.first().cloned().unwrap_or_default(), texts.concat());
        let request = match texts.len() {
            1 => SettingRequest::Echo(first.clone()),
            _ => SettingRequest::EchoAll(texts),
        };
        let back = self.setting(request).await?;
        // A server that knows no echo of several texts has answered the first one.
        if back == whole || back == first {
            return Ok(());
        }
        let why = format!("{} bytes came back of an echo of {}", back.len(), whole.len());
        let failure = WireError::Protocol(why);
        Err(EngineError::Wire { target: self.target.text.clone(), failure })
    }

    /// Longest packet that the control connection may have in either direction, bytes, as far as this end knows (tcp(7)). From
    /// here it is what the path takes. Towards here it is what this end's device takes: this end has told the far end how
    /// much payload that is behind the shortest headers.
    fn longest_packet(&self) -> u64 {
        let counts = self.control_counts();
        let of = |get: fn(&TcpInfo) -> Option<u64>| counts.as_ref().and_then(get).unwrap_or(0);
        of(|counts| counts.pmtu_bytes)
            .max(of(|counts| counts.advmss_bytes) + SHORTEST_HEADERS_BYTES)
    }

    /// The same in a conversation of its own. A server that refuses another client answers, and so can be reached.
    async fn echo_anew(&self) -> Result<(), EngineError> {
        let greeted = Self::greet(&self.target, &self.options, &self.credentials, Duration::ZERO);
        match Box::pin(greeted).await {
            Ok(mut fresh) => {
                let back = fresh.echo().await;
                fresh.leave().await;
                back
            }
            Err(EngineError::Refused { .. }) => Ok(()),
            Err(why) => Err(why),
        }
    }

    /// Asks about a setting. Answers come in the order of the questions; first come those that nobody waited for.
    async fn answer(
        &mut self,
        request: SettingRequest,
    ) -> Result<Result<String, SettingRefusal>, EngineError> {
        self.conversation.feed(Input::AskSetting(request));
        self.unanswered += 1;
        loop {
            match self.next().await? {
                Action::SettingAnswered(answer) => {
                    self.unanswered -= 1;
                    if self.unanswered == 0 {
                        return Ok(answer);
                    }
                }
                other => return Err(unexpected(&self.target, &other)),
            }
        }
    }

    /// What the kernel has counted on the control connection so far; none if there is no connection.
    pub fn control_counts(&self) -> Option<TcpInfo> {
        goodput_kernel::tcp_info(self.conversation.control()?.as_fd()).value().cloned()
    }

    /// Says goodbye.
    pub async fn leave(self) {
        self.conversation.leave("done").await;
    }

    /// Compares both clocks `count` times over the control connection, each time when the previous answer has come.
    /// [`Client::next`] takes the answers into [`Client::pings`].
    pub(crate) fn compare_clocks(&mut self, count: usize) {
        self.pings.want(count);
        self.ping();
    }

    fn ping(&mut self) {
        if self.pings.is_wanting() && !self.conversation.is_over() {
            self.conversation.feed(Input::AskClock);
        }
    }

    /// The next action, if the conversation must go on.
    pub(crate) async fn next(&mut self) -> Result<Action, EngineError> {
        loop {
            let action = next(&mut self.conversation, &self.target).await?;
            let Action::ClockCompared(exchange) = action else { return Ok(action) };
            self.pings.heard(exchange);
            self.ping();
        }
    }
}

/// Bytes of a text that crosses the connection in both directions: two full packets of Ethernet's usual MTU, although the
/// connection may compress it by a quarter. No text of a message may be much longer.
const ECHO_BYTES: usize = 4000;

/// Headers of IPv4 and TCP without options, bytes (RFC 791, RFC 9293).
const SHORTEST_HEADERS_BYTES: u64 = 40;

/// How many texts fill two packets of this length, bytes, compressed by a quarter. Of packets of more than 12 kB, which no Ethernet
/// has, they fill a part.
fn texts_for(packet: u64) -> usize {
    let needed = (2 * packet * 4 / 3).div_ceil(ECHO_BYTES as u64);
    (needed as usize).clamp(1, MAX_ECHO_TEXTS)
}

/// So many texts of letters and digits that no compression makes much shorter.
fn full_packets(texts: usize) -> Vec<String> {
    use rand::distr::{Alphanumeric, SampleString};
    let text = || Alphanumeric.sample_string(&mut rand::rng(), ECHO_BYTES);
    std::iter::repeat_with(text).take(texts).collect()
}

async fn next(conversation: &mut Conversation, target: &Target) -> Result<Action, EngineError> {
    let wire = |failure| EngineError::Wire { target: target.text.clone(), failure };
    match conversation.next().await.map_err(wire)? {
        Some(Action::Refused(why)) => {
            Err(EngineError::Refused { target: target.text.clone(), why })
        }
        Some(action) => Ok(action),
        None => Err(wire(WireError::Closed("it said goodbye".into()))),
    }
}

/// Why a server lets in neither a client without a credential nor one with the user's usual key, which nobody asked
/// for: the server's first refusal says what it wants.
fn neither(target: &Target, refused: &EngineError, with_key: &EngineError) -> EngineError {
    let own = |error: &EngineError| match error {
        EngineError::Wire { failure: WireError::NotPermitted(why), .. } => why.clone(),
        EngineError::Wire { failure, .. } => failure.to_string(),
        other => other.to_string(),
    };
    let why = format!(
        "{}. Then the server saw your usual key, and refused that, too: {}. If the server has a token, give the token \
         (--token-file); otherwise have its administrator add your key (`goodput key` prints the line)",
        own(refused),
        own(with_key)
    );
    EngineError::Wire { target: target.text.clone(), failure: WireError::NotPermitted(why) }
}

/// The peer's session asked for something that does not belong here.
pub(crate) fn unexpected(target: &Target, action: &Action) -> EngineError {
    EngineError::Wire {
        target: target.text.clone(),
        failure: WireError::Protocol(format!("{action:?} was not expected now")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_fills_two_packets_of_the_path_even_if_it_is_compressed_by_a_quarter() {
        for (packet, texts) in [(0, 1), (576, 1), (1500, 1), (4000, 3), (9000, 6), (9216, 7)] {
            assert_eq!(texts_for(packet), texts, "{packet}");
            let bytes: usize = full_packets(texts).iter().map(String::len).sum();
            assert!(bytes as u64 * 3 / 4 >= 2 * packet, "{packet}");
        }
        assert_eq!(texts_for(65_536), MAX_ECHO_TEXTS);
    }
}
