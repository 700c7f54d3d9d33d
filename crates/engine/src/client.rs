//! The near side of a conversation: connect, agree, measure, ask for settings, leave.

use std::net::SocketAddr;
use std::time::Duration;

use goodput_model::{Host, Plan, SocketOptions};
use goodput_wire::error::WireError;
use goodput_wire::session::{Action, ClientConfig, ClockOffset, Input, SettingRequest, Token};
use tokio::net::TcpStream;

use crate::clock::wall_clock;
use crate::control::Conversation;
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::measurement::Measurement;
use crate::near::NearRun;
use crate::target::Target;

/// How long one address of the target may take to answer a connection attempt.
const CONNECT: Duration = Duration::from_secs(5);

/// Segment size of the control connection, bytes: what every IPv4 path carries (RFC 9293 section
/// 3.7.1, the default for IPv4), so that both ends still talk where full-sized packets vanish.
const CONTROL_MSS: u32 = 536;

/// A greeted peer.
pub struct Client {
    pub(crate) conversation: Conversation,
    pub(crate) target: Target,
    /// Where it is: what the first flow may try, where there is no control connection.
    pub(crate) addresses: Vec<SocketAddr>,
    /// Where the peer sees this end, where there is a control connection.
    pub(crate) local: Option<SocketAddr>,
    /// The machine at the other end.
    pub peer: Host,
    /// How its time of day differs from ours, where it told.
    pub clock: Option<ClockOffset>,
}

impl Client {
    /// Connects to the target and greets it. `options` says where from (bind, device, IP version). A
    /// protocol without a control connection meets its peer only when the first flow is opened.
    pub async fn connect(
        target: &Target,
        options: &SocketOptions,
        token: Option<Token>,
        listener: &mut Listener<'_>,
    ) -> Result<Self, EngineError> {
        let Dialled { stream, addresses } = dial(target.clone(), options.clone()).await?;
        let local = stream.as_ref().and_then(|stream| stream.local_addr().ok());
        let config = ClientConfig { host: goodput_kernel::host(), token, clock: wall_clock() };
        let session = (target.protocol.client)(std::time::Instant::now(), config);
        let mut conversation = Conversation::new(session, stream);
        match next(&mut conversation, target).await? {
            Action::Greeted { peer, secured, clock } => {
                listener(Event::Connected { peer: peer.clone(), secured });
                Ok(Self { conversation, target: target.clone(), addresses, local, peer, clock })
            }
            other => Err(unexpected(target, &other)),
        }
    }

    /// Makes one measurement. An interrupt ends it early with what was measured so far; dropping
    /// the future stops its flows at once.
    pub async fn measure(
        &mut self,
        plan: &Plan,
        interrupt: &Interrupt,
        listener: &mut Listener<'_>,
    ) -> Result<Measurement, EngineError> {
        let run = tokio::select! {
            run = NearRun::agree(self, plan) => run?,
            () = interrupt.raised() => return Err(EngineError::Interrupted),
        };
        run.run(interrupt, listener).await
    }

    /// Reads or changes a setting of the far end; the effective value.
    pub async fn setting(&mut self, request: SettingRequest) -> Result<String, EngineError> {
        self.conversation.tell(Input::AskSetting(request));
        match self.next().await? {
            Action::SettingAnswered(answer) => answer.map_err(|refusal| EngineError::FarSetting {
                not_permitted: refusal.not_permitted,
                why: refusal.why,
            }),
            other => Err(unexpected(&self.target, &other)),
        }
    }

    /// Says goodbye.
    pub async fn leave(self) {
        self.conversation.leave("done").await;
    }

    /// The next action, where the conversation must go on.
    pub(crate) async fn next(&mut self) -> Result<Action, EngineError> {
        next(&mut self.conversation, &self.target).await
    }
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

/// The peer's session asked for something that has no place at this point.
pub(crate) fn unexpected(target: &Target, action: &Action) -> EngineError {
    EngineError::Wire {
        target: target.text.clone(),
        failure: WireError::Protocol(format!("{action:?} was not expected now")),
    }
}

/// A peer that can be talked to.
struct Dialled {
    /// The control connection, where the protocol has one.
    stream: Option<TcpStream>,
    /// Where the peer is; several where no flow was opened to it yet.
    addresses: Vec<SocketAddr>,
}

/// Connects to the target, where its protocol has a control connection; else finds out where it is.
async fn dial(target: Target, options: SocketOptions) -> Result<Dialled, EngineError> {
    if !target.protocol.has_control {
        let addresses = blocking(move || target.addresses(options.family)).await??;
        return Ok(Dialled { stream: None, addresses });
    }
    let (stream, address) = blocking(move || connect(&target, options)).await??;
    stream
        .set_nodelay(true)
        .map_err(EngineError::io("set TCP_NODELAY on the control connection"))?;
    stream
        .set_nonblocking(true)
        .map_err(EngineError::io("make the control connection non-blocking"))?;
    let stream = TcpStream::from_std(stream)
        .map_err(EngineError::io("hand the control connection to the runtime"))?;
    Ok(Dialled { stream: Some(stream), addresses: vec![address] })
}

/// Tries every address of the target in turn; the error is the first one's, as the others are
/// mostly the same. Blocks.
fn connect(
    target: &Target,
    mut options: SocketOptions,
) -> Result<(std::net::TcpStream, SocketAddr), EngineError> {
    options.mss_bytes = Some(options.mss_bytes.map_or(CONTROL_MSS, |mss| mss.min(CONTROL_MSS)));
    let mut first_error = None;
    for address in target.addresses(options.family)? {
        match goodput_mover::socket::tcp_connect(address, &options, CONNECT) {
            Ok(fd) => return Ok((std::net::TcpStream::from(fd), address)),
            Err(error) => _ = first_error.get_or_insert(error),
        }
    }
    let why = first_error.map_or("no address to try".into(), |e| e.to_string());
    Err(EngineError::Target(format!("{target}: {why}")))
}

/// Runs something that blocks beside the control connections.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, EngineError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|cause| EngineError::Flow(format!("an internal task broke off: {cause}")))
}
