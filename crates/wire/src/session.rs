//! The shape of every protocol: bytes, events and time in; bytes and actions out. No I/O.
//!
//! A driver (in `engine`) owns the sockets. It passes its input to [`Session::handle`], calls [`Session::poll`] until
//! it is empty, and carries out the outputs. It comes back with the results, or when [`Session::next_timeout`] has
//! passed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_model::{
    End, Exchange, FarHeads, Host, Known, Plan, ReceiveHash, Sample, SettingRef, Totals, Transport,
};

use crate::error::WireError;
use crate::far_end::FarEnd;
use crate::greeting::Greeted;
use crate::keys::{AuthorizedKey, KeyAuthorization, KeyRole, PrivateKey, PublicKey};
pub use crate::limits::Limits;
use crate::login::{Login, Users};
use crate::ticket::{FlowSetup, FlowTicket, Proof};

/// One conversation on a control connection, seen from one end.
pub trait Session: Send {
    /// Takes one input. An error ends the session; outputs that can still be polled (a goodbye with the reason) must
    /// be sent first.
    fn handle(&mut self, now: Instant, input: Input) -> Result<(), WireError>;

    /// Announces that the time of [`Session::next_timeout`] has come. Harmless when called early.
    fn handle_timeout(&mut self, now: Instant) -> Result<(), WireError>;

    /// The next output, until `None`.
    fn poll(&mut self) -> Option<Output>;

    /// When [`Session::handle_timeout`] must be called at the latest.
    fn next_timeout(&self) -> Option<Instant>;
}

/// A protocol: how to begin a conversation at either end.
pub struct Protocol {
    /// Its id, equal to the file's name and to the scheme of a target.
    pub id: &'static str,
    /// One line for `goodput list protocols`.
    pub summary: &'static str,
    /// The usual port: of the control connection, or of the flows if there is none.
    pub port: u16,
    /// Whether conversations have a connection of their own. Without one, a client has nothing to send on, and a
    /// server's conversation is on the data connection itself.
    pub has_control: bool,
    /// The capabilities of its far end besides moving payload.
    pub far_end: FarEnd,
    /// Whether it takes everything on its usual port that no other protocol knows: for protocols whose clients begin
    /// with payload.
    pub takes_the_rest: bool,
    /// How this protocol classifies the first bytes of a connection.
    pub recognises: fn(&[u8]) -> First,
    /// How this protocol classifies the first datagram of an address.
    pub recognises_datagram: fn(&[u8]) -> FirstDatagram,
    /// What a client sends on a new UDP flow before payload, if anything; or why it can't.
    pub greet: fn(&FlowTicket) -> Greeted,
    /// The connecting side.
    pub client: fn(Instant, ClientConfig) -> Box<dyn Session>,
    /// The answering side.
    pub server: fn(Instant, ServerConfig) -> Box<dyn Session>,
}

impl std::fmt::Debug for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id)
    }
}

/// How a protocol classifies the first bytes of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum First {
    /// Something else.
    Foreign,
    /// Its own so far, but too short to decide.
    Short {
        /// At least this many bytes are needed to decide.
        needs: usize,
    },
    /// The beginning of a conversation; the server's session takes these bytes as well.
    Control,
    /// A data connection with this proof, which begins these bytes.
    Data(Proof),
    /// A data connection if a session awaits this proof, and a conversation if none does.
    Either(Proof),
}

/// How a protocol classifies the first datagram of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirstDatagram {
    /// Something else, or a datagram that is answered in another way.
    Foreign,
    /// The opening of a flow that a session awaits from this address, in this framing. The reply is no longer than the
    /// datagram.
    Opens {
        /// The reply if a session awaits the flow; otherwise nothing is sent.
        reply: Vec<u8>,
    },
    /// The beginning of a conversation without a control connection; the session takes the datagram, which is payload
    /// too.
    Begins,
}

/// The connecting side's configuration.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// Who we are.
    pub host: Host,
    /// The shared token, if the user gave one.
    pub token: Option<Token>,
    /// The client's own key, and the server's key as far as known; preferred to the token.
    pub key: Option<ClientKey>,
    /// A user name and a password, if the user gave them.
    pub login: Option<Login>,
    /// Random bytes for the cookie of this session, from the system's generator.
    pub seed: [u8; 32],
    /// The time of day here.
    pub clock: HostClock,
}

/// The answering side's configuration.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Who we are.
    pub host: Host,
    /// The token that clients may share, if there is one.
    pub token: Option<Token>,
    /// What the server needs to authenticate clients by their own keys, if there are any.
    pub keys: Option<KeyAuthorization>,
    /// Whether clients that prove nothing are refused. The driver refuses them; a session that detects this earlier
    /// reveals less about this host.
    pub credential_required: bool,
    /// Users with passwords, for protocols that support them. A client that names none of these users is refused.
    pub users: Option<Users>,
    /// What one client may ask for.
    pub limits: Limits,
    /// The client's address.
    pub peer: SocketAddr,
    /// The address that the client contacted.
    pub local: SocketAddr,
    /// Whether the client came by a connection or by a datagram. The session receives this datagram first.
    pub transport: Transport,
    /// Random bytes for the cookies of this session, from the system's generator.
    pub seed: [u8; 32],
    /// The time of day here.
    pub clock: HostClock,
}

/// This host's clocks at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostClock {
    /// The instant.
    pub at: Instant,
    /// Microseconds since 1970, UTC.
    pub unix_us: u64,
    /// Nanoseconds of `CLOCK_MONOTONIC`, the clock of [`Instant`]; `None` if this host keeps it private.
    pub monotonic_ns: Option<u64>,
}

impl HostClock {
    /// The time of day at `now`, microseconds since 1970.
    pub(crate) fn unix_us(&self, now: Instant) -> u64 {
        let passed = now.saturating_duration_since(self.at).as_micros();
        self.unix_us.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))
    }

    /// `CLOCK_MONOTONIC` at `now`, nanoseconds, if it is reported.
    pub(crate) fn monotonic_ns(&self, now: Instant) -> Option<u64> {
        let passed = now.saturating_duration_since(self.at).as_nanos();
        Some(self.monotonic_ns?.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX)))
    }
}

/// How far the peer's time of day is ahead of ours. The answer to a question took a round trip, and was sent at some
/// time within it (RFC 5905 section 8).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockOffset {
    /// Microseconds; below 0 if the peer is behind.
    pub ahead_us: f64,
    /// At most this far off, microseconds: half the round trip.
    pub uncertainty_us: f64,
}

/// A client's own key, and the server that it expects.
#[derive(Debug, Clone)]
pub struct ClientKey {
    /// Its key.
    pub own: Arc<PrivateKey>,
    /// The server that may see the client's key.
    pub server: ServerIs,
}

/// A client's knowledge of a server's key.
#[derive(Debug, Clone)]
pub enum ServerIs {
    /// Nothing: any key is accepted, and reported by [`Action::ServerShowed`].
    Unknown,
    /// The server has this key; the client leaves a server with another key.
    Known {
        /// The key.
        key: PublicKey,
        /// Where the key is recorded, for the user.
        by: String,
    },
}

/// Why a server refuses a client that has proven nothing.
pub const CREDENTIAL_REQUIRED: &str =
    "this server requires a token, a key or a user name, and the client has none";

/// What a client has proven about itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Credential {
    /// It knows the token, which any number of clients can share.
    Token {
        /// Whether clients with the token may change settings.
        settings: bool,
    },
    /// It knows the password of this user.
    User(String),
    /// It holds this key.
    Key(Arc<AuthorizedKey>),
}

impl Credential {
    /// Whether it permits a client to change settings besides measuring.
    pub fn may_change_settings(&self) -> bool {
        match self {
            Self::Token { settings } => *settings,
            Self::User(_) => false,
            Self::Key(key) => key.role == KeyRole::Settings,
        }
    }
}

impl std::fmt::Display for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Token { .. } => f.write_str("the token"),
            Self::User(name) => write!(f, "user {name}"),
            Self::Key(key) => write!(f, "key {}", key.name),
        }
    }
}

/// A shared secret; never printed.
#[derive(Clone)]
pub struct Token(pub(crate) Vec<u8>);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Proof that a data connection of goodput's own protocol belongs to a session; valid once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie(pub [u8; 16]);

/// An input of a session.
#[derive(Debug)]
pub enum Input {
    /// Bytes from the control connection.
    Received(Vec<u8>),
    /// The peer closed the control connection.
    Closed,
    /// Client: begin a measurement. One at a time; another may follow on the same connection.
    Propose(Box<Plan>),
    /// Server: the flows of [`Action::ExpectFlows`] may come; the session sends the acceptance only now. Client: this
    /// end listens, as [`FlowSetup::Listen`] asked; the session may now send the port. [`Input::FlowsReady`] follows
    /// when all flows have come.
    Expecting {
        /// Port of the data connections, if it differs from the control connection's: a plan whose socket options must
        /// be set on the listener needs a port of its own.
        data_port: Option<u16>,
    },
    /// Server: how this end's card spreads received packets, or why this is not shown; before [`Input::Expecting`], if
    /// the plan asks for it.
    ReceiveHash(Known<Box<ReceiveHash>>),
    /// Server: the device at which this end captures the flows' packets, or why it captures nothing; before
    /// [`Input::Expecting`], if the plan asks for it.
    Capture(Known<String>),
    /// Server: the heads of the packets that this end captured; before [`Input::Report`].
    Captured(Box<FarHeads>),
    /// The data connections are up: all connected (client), all arrived and proven (server).
    FlowsReady,
    /// The data connections can't be made, or have failed: aborts the measurement at any point. The reason goes to the
    /// peer. A client's session may answer with another [`Action::OpenFlows`].
    FlowsFailed(String),
    /// Client: both ends are ready and observed; let the payload move.
    Begin,
    /// Server: the client may not do what the session asked for ([`Action::ExpectFlows`],
    /// [`Action::MeasureWithThirdParty`], [`Action::Converse`]), because it is not authenticated. The conversation
    /// ends, with the reason if the protocol can express one.
    Denied(String),
    /// Server: the answer to [`Action::CheckLogin`]: the user, or nobody.
    LoginChecked(Option<String>),
    /// A sample of our own, for the peer.
    Sampled(Box<Sample>),
    /// Client: end the measurement. Server: the measurement ends from this side, with the reason.
    Finish(Option<String>),
    /// Client of goodput's own protocol: end the measurement, and wait only briefly for payload in flight, because
    /// someone waits for the end.
    FinishSoon,
    /// All flows of this end have ended; this is their last sample, in detail.
    Ended(Box<Sample>),
    /// Our own traffic has ended, and these are our observations. The samples may be empty, because each was sent to
    /// the peer when it was taken. Missing if we keep our observations private.
    Report(Known<Box<End>>),
    /// Server: lines that a [`ThirdPartyTest`] printed, for the client.
    ThirdPartyOutput(String),
    /// Server: the test is over, or why it failed; no more of its output follows.
    ThirdPartyDone(Result<(), String>),
    /// Client of goodput's own protocol: ask for the peer's monotonic clock. Answered with [`Action::ClockCompared`],
    /// unless the peer keeps its clock private, or is older.
    AskClock,
    /// Client: ask the peer to read or change a setting of its own.
    AskSetting(SettingRequest),
    /// Server: the answer to [`Action::Setting`].
    SettingDone(Result<String, SettingRefusal>),
    /// Say goodbye and close.
    Leave(String),
}

/// A measurement with another server, requested by a client.
#[derive(Debug, Clone, PartialEq)]
pub struct ThirdPartyTest {
    /// Name or address of the other server, as the client wrote it.
    pub host: String,
    /// Port of its control connection.
    pub port: u16,
    /// The plan; this end is the near one.
    pub plan: Plan,
    /// How the client wants its report.
    pub words: Words,
}

/// The format of a report for a client, in the style of its own program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    /// As keys with values.
    pub key_values: bool,
    /// With a line for each interval.
    pub intervals: bool,
    /// With each end's report about itself.
    pub verbose: bool,
}

/// A request about a setting of the answering host.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SettingRequest {
    /// Read the effective value.
    Read(SettingRef),
    /// Refuse the values if changes in this order would be refused, and change nothing. A session whose peer does not
    /// know this request answers it without a refusal.
    Check(Vec<(SettingRef, String)>),
    /// Change it until the client leaves, dies or asks for [`SettingRequest::Restore`].
    Apply(SettingRef, String),
    /// The same for a change that could cut or damage this conversation: unless [`SettingRequest::Confirm`] follows within
    /// [`CONFIRM_TIME`], the answering host puts the setting back. A session whose peer does not know this request asks
    /// it to [`SettingRequest::Apply`].
    Try(SettingRef, String),
    /// Answer with this text, letters and digits of at most [`MAX_ECHO_BYTES`]. It fills more than one packet in each direction.
    /// A session whose peer does not know this request answers it.
    Echo(String),
    /// Answer with all of these texts, each like that of [`SettingRequest::Echo`], and at most [`MAX_ECHO_TEXTS`]: packets may be
    /// longer than one of them. A session whose peer does not know this request asks it to echo the first text, or answers it.
    EchoAll(Vec<String>),
    /// Leave in effect what was tried and not confirmed yet: full packets still get through. A session whose peer does not
    /// know this request answers it.
    Confirm,
    /// Name the place of the answering host in the order in which every run takes hosts: what a session by SSH there would read
    /// as its identity, words with spaces between. A session whose peer does not know this request answers it with no word.
    Place,
    /// Keep other runs from changing the answering host until everything is put back, and change nothing. A session whose
    /// peer does not know this request answers it.
    Hold,
    /// Put everything back that this session changed.
    Restore,
}

/// How long a change that was tried may go unconfirmed. TCP then sends once more what was lost before either end takes the
/// silence for an end.
pub const CONFIRM_TIME: Duration = Duration::from_secs(8);

/// Longest text of [`SettingRequest::Echo`], bytes: that of any text of a message.
pub const MAX_ECHO_BYTES: usize = 4096;

/// Most texts of a [`SettingRequest::EchoAll`]: the answer is a message of a quiet conversation, of which a peer takes 64 KiB,
/// and several such answers a second.
pub const MAX_ECHO_TEXTS: usize = 8;

impl std::fmt::Display for SettingRequest {
    /// As text, for a log. A client's value is quoted.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Read(setting) => write!(f, "read {setting}"),
            Self::Check(arm) => {
                let one =
                    |(setting, value): &(SettingRef, String)| format!("{setting} for {value:?}");
                write!(f, "check {}", arm.iter().map(one).collect::<Vec<_>>().join(", "))
            }
            Self::Apply(setting, value) => write!(f, "change {setting} to {value:?}"),
            Self::Try(setting, value) => {
                write!(f, "change {setting} to {value:?}, to be confirmed")
            }
            Self::Echo(text) => write!(f, "echo {} bytes", text.len()),
            Self::EchoAll(texts) => {
                write!(f, "echo {} bytes", texts.iter().map(String::len).sum::<usize>())
            }
            Self::Confirm => f.write_str("confirm what was tried"),
            Self::Place => f.write_str("name its place among hosts"),
            Self::Hold => f.write_str("keep other runs from changing the host"),
            Self::Restore => f.write_str("put everything back"),
        }
    }
}

/// Why a setting request was not done.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct SettingRefusal {
    /// Whether a token or a privilege is missing, rather than anything else.
    pub not_permitted: bool,
    /// Whether the kernel there did not take the value of a change, and the setting is as before. A peer that does not
    /// know this field does not report it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_taken: bool,
    /// Whether another run changes that host now, or somebody puts back there what a run left: later it may be possible.
    /// A peer that does not know this field does not report it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub busy: bool,
    /// In words.
    pub why: String,
}

/// What the driver must do.
#[derive(Debug)]
pub enum Output {
    /// Send these bytes on the control connection.
    Send(Vec<u8>),
    /// Act.
    Do(Action),
    /// Send nothing more on the control connection once everything is sent, but keep receiving: half-close it.
    EndSending,
    /// Close the control connection once everything is sent. A client's session that allows only one measurement
    /// closes with [`Input::Report`]; the driver begins another conversation for the next measurement.
    Close,
}

/// What a session asks of its host.
#[derive(Debug)]
pub enum Action {
    /// Greetings are done; this is the peer.
    Greeted {
        /// The machine.
        peer: Host,
        /// Whether the control connection is encrypted, by the shared token or by keys.
        secured: bool,
        /// How the clocks differ; `None` if the peer did not report the time.
        clock: Option<ClockOffset>,
    },
    /// Client: the server has proven that this is its key. Before [`Action::Greeted`].
    ServerShowed(PublicKey),
    /// Server: the client has proven this. Without this action, the client has proven nothing.
    Proven(Credential),
    /// Server: check this login ([`crate::login::check`]). The check takes milliseconds of CPU time and must not hold
    /// up other clients. Answered with [`Input::LoginChecked`].
    CheckLogin(String),
    /// Client: connect these flows and present their proofs.
    OpenFlows {
        /// One ticket for each flow.
        tickets: Vec<FlowTicket>,
        /// How they are connected.
        flow_setup: FlowSetup,
    },
    /// Server: expect these flows of this plan; its `near` end is the client. Answered with [`Input::Expecting`], or
    /// with [`Input::FlowsFailed`] if this is not possible.
    ExpectFlows {
        /// The agreed plan.
        plan: Box<Plan>,
        /// One ticket for each flow.
        tickets: Vec<FlowTicket>,
        /// How they are connected.
        flow_setup: FlowSetup,
    },
    /// Server: answer echoes with this cookie (`datagram/echo.rs`) during the measurement of the next
    /// [`Action::ExpectFlows`]. Client: the server does so during the measurement of the next [`Action::OpenFlows`].
    Echo(Cookie),
    /// Client: how the server's card spreads received packets, before [`Action::OpenFlows`].
    PeerHash(Known<Box<ReceiveHash>>),
    /// Client: the device at which the server captures the flows' packets, or why it captures nothing, before
    /// [`Action::OpenFlows`].
    PeerCaptures(Known<String>),
    /// Client: heads of packets that the server captured, or a part of them; all before [`Action::PeerReported`].
    PeerCaptured(Box<FarHeads>),
    /// Server: measure with another server on the client's behalf, if this is allowed. Answered with
    /// [`Input::Expecting`], and then [`Input::ThirdPartyOutput`] until [`Input::ThirdPartyDone`]; or with
    /// [`Input::FlowsFailed`] if the server doesn't do it. [`Action::Abandon`] ends it early.
    MeasureWithThirdParty(Box<ThirdPartyTest>),
    /// Server: hold a conversation that is a measurement in itself, without flows. Answered with
    /// [`Input::Expecting`], or with [`Input::Denied`] or [`Input::FlowsFailed`].
    Converse,
    /// Client: the server's side is ready as well; observe, then [`Input::Begin`].
    PeerReady,
    /// Let the payload move.
    Begin,
    /// The peer took a sample.
    PeerSampled(Box<Sample>),
    /// End the measurement: senders stop and finish their streams, receivers read to the end.
    Finish,
    /// The same, but receivers wait only briefly for payload in flight.
    FinishSoon,
    /// Client: the server's senders have stopped. What is still on its way arrives soon, or is lost.
    PeerStopped,
    /// The report of a peer other than goodput about itself. [`Action::PeerReported`] follows, with the reason
    /// why it reports no more.
    PeerTotals(Box<Totals>),
    /// The peer's report on the measurement, or why it doesn't report.
    PeerReported(Known<Box<End>>),
    /// Server: carry out a setting request, if the client's credential permits it. Answered with
    /// [`Input::SettingDone`].
    Setting(SettingRequest),
    /// Client: both clocks, from an answer to [`Input::AskClock`]; each answer comes once.
    ClockCompared(Exchange),
    /// Client: the peer's answer to [`Input::AskSetting`].
    SettingAnswered(Result<String, SettingRefusal>),
    /// The peer turned us away or aborted the measurement; the session may go on with another.
    Refused(String),
    /// Server: forget the current measurement (the client aborted it or vanished).
    Abandon,
    /// Something the user should know: a limit that the plan may run into, or why the peer ended or aborted the
    /// measurement.
    Note(String),
}
