//! The server: any number of clients at once, each within bounds.

mod address;
mod admit;
mod counts;
mod listen;
mod session;
mod shown_memory;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

pub use goodput_capture::{CaptureHelper, helper::helper_main as capture_helper_main};
use goodput_model::{BitRate, Transport};
use goodput_mover::run_promptly;
use goodput_settings::allowlist::AllowedSettings;
use goodput_settings::helper::Helper;
use goodput_wire::login::Users;
use goodput_wire::session::{HostClock, Limits, Protocol, ServerConfig, Token};
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;

use crate::clock::host_clock;
use crate::error::EngineError;
pub use crate::run::storage::{ServedFiles, Sinks};
pub use admit::access::Access;
use admit::admission::Admission;
pub use admit::admission::{Exclusive, ServerLimits};
use admit::attempts::{AttemptLimits, Attempts};
use admit::denied::{self, Denied};
use admit::echoes::Echoes;
use admit::gate::Gate;
pub use admit::host::{Buffers, Host};
pub use admit::keys::Keys;
use admit::logins::Logins;
use admit::quotas::Limit;
use admit::read_budgets::ReadBudgets;
pub use counts::{Counted, Counts};
use listen::endpoint::Endpoint;
use listen::event_thread::EventThread;
use listen::listeners::OpenedPorts;
use listen::sockets::Pair;
pub use listen::sockets::Sockets;
use session::client::ClientInfo;
use session::ports::Ports;
pub use session::shown::{Served, Watcher, What};
use session::sign_locks::SignLocks;
pub use session::third_party::{Allowed, ThirdParty};
use session::tickets::Tickets;
use shown_memory::UNREAD_BYTES;

/// How to serve.
#[derive(Debug, Clone)]
pub struct Config {
    /// The protocols that are answered. On every port, the first bytes decide which one it is.
    pub protocols: Vec<&'static Protocol>,
    /// Whether the server makes one measurement at a time, and what happens to other clients.
    pub exclusive: Option<Exclusive>,
    /// Which clients it talks to at all.
    pub access: Access,
    /// What one client may ask for; its highest rate is in `allowed`.
    pub limits: Limits,
    /// The resources of this host, read before the server announces itself.
    pub host: Host,
    /// The share of those resources for one client, and for all clients together.
    pub allowed: ServerLimits,
    /// A measurement is ended if its payload is slower than this over half a minute.
    pub min_progress: BitRate,
    /// Exit after the first client that made a measurement.
    pub one_off: bool,
    /// The secret that clients may share.
    pub token: Option<Token>,
    /// How clients are identified by their own keys, if keys are used.
    pub keys: Option<Keys>,
    /// What clients may read and change here, if their credentials permit changing settings.
    pub settings: AllowedSettings,
    /// Whether clients without a credential are refused, whatever their protocol. The token, a key and a user name of
    /// `users` are credentials.
    pub credential_required: bool,
    /// Users with passwords, for protocols that support them.
    pub users: Option<Users>,
    /// Report nothing of this host to clients, neither its facts nor its counters.
    pub private: bool,
    /// What clients may read and write.
    pub files: ServedFiles,
    /// Who measures with other servers on behalf of clients, if that is offered at all.
    pub third_party: Option<ThirdParty>,
    /// Who shows what clients do, if anyone does.
    pub watcher: Option<Watcher>,
    /// Where the server counts what it does.
    pub counts: Arc<Counts>,
    /// Who changes settings for clients with the permission; `None` if no client has it.
    pub settings_helper: Option<Arc<Helper>>,
    /// Who captures packets of clients with a credential; `None` if the operator does not permit captures.
    pub capture_helper: Option<Arc<CaptureHelper>>,
    /// Whether clients with a credential may know the path, with its queueing disciplines, towards any host.
    pub shows_qdiscs: bool,
}

/// How often clients may begin an encrypted conversation. A handshake with keys takes 0.19 ms of a 2.6 GHz CPU (AMD
/// EPYC, opt-level s, median), one with a token 0.08 ms. So one client gets less than a hundredth of a CPU, and as
/// large a burst as a fleet behind one address needs. All clients together get a thirteenth, and no smaller burst than
/// one client: 128 handshakes delay the others' conversations by 24 ms.
const HANDSHAKES: AttemptLimits = AttemptLimits {
    what: "handshakes",
    burst: 128,
    burst_of_all: 128,
    then: Limit { all: 400, client: 40, unproven_percent: 100 },
    period: Duration::from_secs(1),
    patience: Duration::from_secs(4),
};

/// What every task of the server shares.
struct Shared {
    config: Config,
    admission: Admission,
    /// The ports that were open from the start.
    endpoints: Vec<Arc<Endpoint>>,
    /// The ports that sessions open.
    ports: Box<dyn Ports>,
    tickets: Tickets,
    echoes: Echoes,
    logins: Logins,
    /// Handshakes, which take CPU time from the control connections.
    handshakes: Attempts,
    read_budgets: ReadBudgets,
    /// Datagrams from excluded networks.
    denied: Denied,
    sign_locks: SignLocks,
    /// Captures that may still begin.
    captures: Arc<Semaphore>,
    /// Becomes true when the server must stop.
    stopping: watch::Receiver<bool>,
    /// The thread that handles datagrams.
    datagram_thread: Handle,
    /// The thread that answers echoes with a socket of their own.
    echo_thread: Handle,
    /// Lends tokens to tasks that sessions start, so that the server waits for them before it ends.
    alive: listen::accept::Lender,
    /// Number of measurements that were shown.
    shown: AtomicU64,
    /// Notified when the first client that made a measurement leaves.
    served_one: Notify,
}

impl Shared {
    /// A session's configuration, with a seed of its own.
    fn session_config(&self, client: &ClientInfo, transport: Transport) -> ServerConfig {
        let ClientInfo { peer, local, .. } = *client;
        let clock = host_clock();
        ServerConfig {
            host: if self.config.private { private_host() } else { goodput_kernel::host() },
            token: self.config.token.clone(),
            // Other protocols don't support keys.
            keys: self.keys().filter(|_| client.protocol.far_end.knows_keys).map(Keys::known),
            credential_required: self.config.credential_required,
            users: self.config.users.clone(),
            limits: self.limits(),
            peer,
            local,
            transport,
            seed: rand::random(),
            clock: HostClock {
                monotonic_ns: clock.monotonic_ns.filter(|_| !self.config.private),
                ..clock
            },
        }
    }

    /// Tells whoever watches what has happened.
    fn tell(&self, served: impl FnOnce() -> Served) {
        if let Some(watcher) = &self.config.watcher {
            watcher.tell(served());
        }
    }

    /// Tells whoever watches what a client did not get, or got in another way.
    fn remark(&self, peer: SocketAddr, protocol: Option<&Protocol>, text: &str) {
        let protocol = protocol.map(|protocol| protocol.id);
        self.tell(|| Served::Remark { peer, protocol, text: text.into() });
    }

    /// How clients are known by their keys.
    fn keys(&self) -> Option<&Keys> {
        self.config.keys.as_ref()
    }

    /// Who may do what.
    fn gate(&self) -> Gate<'_> {
        Gate {
            credential_required: self.config.credential_required,
            settings: &self.config.settings,
        }
    }

    /// What a client may ask for.
    fn limits(&self) -> Limits {
        let rate_bits_per_s = self.config.allowed.rate_of_a_client().map(|rate| rate.0);
        Limits { rate_bits_per_s, ..self.config.limits }
    }

    /// Whether the server is about to stop.
    async fn stopping(&self) {
        // An error means that the sender is gone, and so is the server.
        let _ = self.stopping.clone().wait_for(|stop| *stop).await;
    }
}

/// What a private host reports about itself.
fn private_host() -> goodput_model::Host {
    goodput_model::Host {
        name: "private".into(),
        kernel: "not reported".into(),
        goodput: env!("CARGO_PKG_VERSION").into(),
        cpus: 0,
    }
}

/// Target of the log lines that say who did what: measurements of clients with a credential, and settings.
pub const AUDIT: &str = "audit";

/// Serves until `stop` comes, or until one client was served if the configuration says so. Calls `ready` once the
/// server has everything that it needs to answer. Stops every flow and puts back every setting before it returns.
pub async fn serve(
    config: Config,
    sockets: Sockets,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<(), EngineError> {
    if let Some(helper) = &config.settings_helper {
        session::settings::watch(helper);
    }
    let (stop_sender, stopping) = watch::channel(false);
    let one_off = config.one_off;
    let Sockets { pairs } = sockets;
    let endpoints = endpoints(&pairs, &config.protocols)?;
    let tasks = listen::accept::Tasks::default();
    let start = |name| {
        let failed = EngineError::io(format!("start the thread of {name}"));
        EventThread::start(name).map_err(failed)
    };
    let (datagram_thread, echo_thread) = (start("datagrams")?, start("echoes")?);
    // Its work is bounded, and a wait for a CPU would be measured as network delay.
    echo_thread.handle().spawn(async {
        if let Err(why) = run_promptly() {
            tracing::debug!("echoes are answered like everything else: {why}");
        }
    });
    // What a watcher keeps of measurements that are over is lent to nobody.
    let unread_bytes = if config.watcher.is_some() { UNREAD_BYTES } else { 0 };
    let host = config.host.setting_aside(unread_bytes);
    let shared = Arc::new(Shared {
        admission: Admission::new(&config.allowed, config.exclusive, host)
            .showing(config.watcher.is_some()),
        endpoints,
        ports: Box::new(OpenedPorts::default()),
        tickets: Tickets::default(),
        echoes: Echoes::default(),
        logins: Logins::default(),
        handshakes: Attempts::new(HANDSHAKES),
        read_budgets: ReadBudgets::default(),
        denied: Denied::default(),
        sign_locks: SignLocks::default(),
        captures: Arc::new(Semaphore::new(session::served_client::MOST_CAPTURES)),
        stopping,
        datagram_thread: datagram_thread.handle().clone(),
        echo_thread: echo_thread.handle().clone(),
        alive: tasks.lender(),
        shown: AtomicU64::new(0),
        served_one: Notify::new(),
        config,
    });
    let mut answering = JoinSet::new();
    answering.spawn(log_denied(Arc::clone(&shared)));
    for (Pair { tcp, udp, .. }, endpoint) in pairs.into_iter().zip(&shared.endpoints) {
        let datagrams =
            listen::udp::answer(udp, Arc::clone(endpoint), Arc::clone(&shared), tasks.token());
        answering.spawn_on(datagrams, datagram_thread.handle());
        let listening =
            listen::accept::Listening::new(tcp).map_err(EngineError::io("accept connections"))?;
        answering.spawn(listen::accept::accept(
            listening,
            Arc::clone(endpoint),
            Arc::clone(&shared),
            tasks.token(),
        ));
    }
    ready();
    tokio::select! {
        () = stop => {}
        () = shared.served_one.notified(), if one_off => {}
        _ = answering.join_next() => {}
    }
    answering.shutdown().await;
    shared.denied.rest().iter().for_each(|dropped| tracing::info!("{dropped}"));
    // The receiver lives in `shared`, so this can't fail.
    let _ = stop_sender.send(true);
    tasks.join().await;
    datagram_thread.close();
    echo_thread.close();
    Ok(())
}

/// Logs what excluded networks sent, until the future is dropped.
async fn log_denied(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(denied::LOG_INTERVAL).await;
        let dropped = shared.denied.due(std::time::Instant::now());
        dropped.iter().for_each(|dropped| tracing::info!("{dropped}"));
    }
}

/// The protocols on each port: first those whose usual port it is, then all others except those that accept what no
/// other protocol knows.
fn endpoints(
    pairs: &[Pair],
    protocols: &[&'static Protocol],
) -> Result<Vec<Arc<Endpoint>>, EngineError> {
    let endpoint = |pair: &Pair| -> Result<Arc<Endpoint>, EngineError> {
        let usual = |protocol: &&Protocol| pair.usual_for.iter().any(|p| p.id == protocol.id);
        let (mut spoken, others): (Vec<_>, Vec<_>) = protocols.iter().copied().partition(usual);
        spoken.extend(others.into_iter().filter(|protocol| !protocol.takes_the_rest));
        Ok(Arc::new(Endpoint { local: pair.address()?, spoken }))
    };
    pairs.iter().map(endpoint).collect()
}
