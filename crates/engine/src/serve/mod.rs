//! The answering side: any number of clients at once, each within bounds.

mod address;
mod admit;
mod listen;
mod session;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use goodput_model::{BitRate, Transport};
use goodput_mover::run_promptly;
use goodput_settings::allowlist::AllowedSettings;
use goodput_settings::helper::Helper;
use goodput_wire::login::Accounts;
use goodput_wire::session::{HostClock, Limits, Protocol, ServerConfig, Token};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::clock::host_clock;
use crate::error::EngineError;
pub use crate::run::storage::{ServedFiles, Sinks};
pub use admit::access::Access;
use admit::accounts::Limit;
use admit::admission::Admission;
pub use admit::admission::{Exclusive, ServerLimits};
use admit::attempts::{Attempts, Pace};
use admit::denied::{self, Denied};
use admit::echoes::Echoes;
use admit::gate::Gate;
use admit::hearing::Hearing;
pub use admit::host::{Buffers, Host};
pub use admit::keys::Keys;
use admit::logins::Logins;
use listen::endpoint::Endpoint;
use listen::event_thread::EventThread;
use listen::listeners::OpenedPorts;
use listen::sockets::Pair;
pub use listen::sockets::Sockets;
use session::caller::Caller;
use session::ports::Ports;
pub use session::shown::{Served, Watcher, What};
use session::sign_locks::SignLocks;
pub use session::third_party::{Allowed, ThirdParty};
use session::tickets::Tickets;

/// How to serve.
#[derive(Debug, Clone)]
pub struct Config {
    /// What is answered. The first bytes decide, at every port.
    pub protocols: Vec<&'static Protocol>,
    /// Whether the server makes one measurement at a time, and what happens to other clients.
    pub exclusive: Option<Exclusive>,
    /// Whom it talks to at all.
    pub access: Access,
    /// What one client may ask for; its highest rate is in `allowed`.
    pub limits: Limits,
    /// The resources of this host, read before the server announces itself.
    pub host: Host,
    /// What clients get of it, one of them and all together.
    pub allowed: ServerLimits,
    /// A measurement whose payload is slower over half a minute is ended.
    pub min_progress: BitRate,
    /// Leave after the first client that made a measurement.
    pub one_off: bool,
    /// The secret that clients may share.
    pub token: Option<Token>,
    /// How clients are known by keys of their own, if any are.
    pub keys: Option<Keys>,
    /// What clients may read and change here, if what they have proven lets them change settings.
    pub settings: AllowedSettings,
    /// Whether clients that have proven nothing are refused, whatever their protocol. The token, a key
    /// and a user name of `accounts` are proofs.
    pub credential_required: bool,
    /// Users with passwords, for protocols that have words for them.
    pub accounts: Option<Accounts>,
    /// Tell clients nothing of this host, its facts and what it counts.
    pub private: bool,
    /// What clients may read and write.
    pub files: ServedFiles,
    /// Who measures with other servers in a client's stead, if that is done at all.
    pub third_party: Option<ThirdParty>,
    /// Who shows what is measured, if anyone does.
    pub watcher: Option<Watcher>,
    /// Who changes settings for clients that may have it done; nobody if nobody may.
    pub settings_helper: Option<Arc<Helper>>,
}

/// How often clients may begin an encrypted conversation. A handshake with keys takes 0.19 ms of a CPU of 2.6 GHz
/// (AMD EPYC, opt-level s, median), one with a token 0.08 ms. So a client has less than a hundredth of a CPU, and as
/// much at once as a fleet behind one address needs. All together have a thirteenth, and no less at once than one
/// client: 128 handshakes hold the others' conversations up for 24 ms.
const HANDSHAKES: Pace = Pace {
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
    /// Handshakes, which take processor time of the control connections.
    handshakes: Attempts,
    hearing: Hearing,
    /// Datagrams of networks that are left out.
    denied: Denied,
    sign_locks: SignLocks,
    /// Turns true when the server shall stop.
    stopping: watch::Receiver<bool>,
    /// Where datagrams are looked at.
    datagram_thread: Handle,
    /// Where echoes are answered that have a socket of their own.
    echo_thread: Handle,
    /// Lends tokens to tasks that sessions start, so that the server's end waits for them.
    alive: listen::accept::Lender,
    /// Measurements that were shown.
    shown: AtomicU64,
    /// Rung by the first client that made a measurement when it leaves.
    served_one: Notify,
}

impl Shared {
    /// A session's configuration, with a seed of its own.
    fn session_config(&self, caller: &Caller, transport: Transport) -> ServerConfig {
        let Caller { peer, local, .. } = *caller;
        let clock = host_clock();
        ServerConfig {
            host: if self.config.private { stranger_host() } else { goodput_kernel::host() },
            token: self.config.token.clone(),
            // No other protocol has words for keys.
            keys: self.keys().filter(|_| caller.protocol.far_end.knows_keys).map(Keys::known),
            credential_required: self.config.credential_required,
            accounts: self.config.accounts.clone(),
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
        // An error means that the sender is gone, and with it the server.
        let _ = self.stopping.clone().wait_for(|stop| *stop).await;
    }
}

/// What a host says of itself that keeps the rest to itself.
fn stranger_host() -> goodput_model::Host {
    goodput_model::Host {
        name: "private".into(),
        kernel: "not told".into(),
        goodput: env!("CARGO_PKG_VERSION").into(),
        cpus: 0,
    }
}

/// Target of the log's lines that say who did what: measurements of clients with a credential, and settings.
pub const AUDIT: &str = "audit";

/// Serves until `stop` comes, or until one client was served if the configuration says so. `ready` is called
/// once the server has everything that it needs to answer. Every flow is stopped and every setting is put
/// back before it returns.
pub async fn serve(
    config: Config,
    sockets: Sockets,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<(), EngineError> {
    if let Some(helper) = &config.settings_helper {
        session::settings::watch(helper);
    }
    let (tell_stop, stopping) = watch::channel(false);
    let one_off = config.one_off;
    let Sockets { pairs } = sockets;
    let endpoints = endpoints(&pairs, &config.protocols)?;
    let tasks = listen::accept::Tasks::default();
    let start = |name| {
        let failed = EngineError::io(format!("start the thread of {name}"));
        EventThread::start(name).map_err(failed)
    };
    let (datagram_thread, echo_thread) = (start("datagrams")?, start("echoes")?);
    // What it answers is bounded, and the time that it waits for a CPU would be taken for the network's.
    echo_thread.handle().spawn(async {
        if let Err(why) = run_promptly() {
            tracing::debug!("echoes are answered like everything else: {why}");
        }
    });
    let shared = Arc::new(Shared {
        admission: Admission::new(&config.allowed, config.exclusive, config.host),
        endpoints,
        ports: Box::new(OpenedPorts::default()),
        tickets: Tickets::default(),
        echoes: Echoes::default(),
        logins: Logins::default(),
        handshakes: Attempts::new(HANDSHAKES),
        hearing: Hearing::default(),
        denied: Denied::default(),
        sign_locks: SignLocks::default(),
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
    // The receiver lives in `shared`, so this cannot fail.
    let _ = tell_stop.send(true);
    tasks.join().await;
    datagram_thread.close();
    echo_thread.close();
    Ok(())
}

/// Logs what came from networks that are left out, until the future is dropped.
async fn log_denied(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(denied::LOG_INTERVAL).await;
        let dropped = shared.denied.due(std::time::Instant::now());
        dropped.iter().for_each(|dropped| tracing::info!("{dropped}"));
    }
}

/// What is spoken where: first those whose usual port it is, then all others but those who would take
/// what nobody knows.
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
