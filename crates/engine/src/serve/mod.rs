//! The answering side: any number of clients at once, each within bounds.

mod accept;
mod admission;
mod own_door;
mod run;
mod settings;
mod sockets;
mod stranger;
mod tickets;
mod udp;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use goodput_model::{BitRate, Host, Transport};
use goodput_wire::login::Accounts;
use goodput_wire::session::{Limits, ServerConfig, Token};
use rustix::process::{Resource, getrlimit};
use tokio::sync::{Notify, watch};

use crate::clock::wall_clock;
use crate::error::EngineError;
use admission::{Admission, Bounds};
pub use sockets::Sockets;
use tickets::Tickets;

/// How to serve.
#[derive(Debug, Clone)]
pub struct Config {
    /// Local address; `None` listens on all, IPv6 and IPv4.
    pub bind: Option<IpAddr>,
    /// Port of control, data and UDP; 0 lets the system choose.
    pub port: u16,
    /// What one client may ask for.
    pub limits: Limits,
    /// Measurements at the same time.
    pub max_clients: u32,
    /// Connections of one address at the same time, control and data together.
    pub max_connections_per_address: u32,
    /// Leave after the first client that made a measurement.
    pub one_off: bool,
    /// The secret that lets a client change settings here.
    pub token: Option<Token>,
    /// Whether a client without the token is turned away.
    pub token_required: bool,
    /// Who may measure by a protocol with user names; everybody where there is none.
    pub accounts: Option<Accounts>,
    /// Tell clients nothing of this host, its facts and what it counts.
    pub private: bool,
    /// Where the journal of settings is kept.
    pub state_dir: PathBuf,
}

/// Share of this host's memory that the flows of all measurements may take, as a divisor.
const MEMORY_SHARE: u64 = 4;

fn bounds(config: &Config) -> Bounds {
    let system = rustix::system::sysinfo();
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let descriptors = u32::try_from(descriptors).unwrap_or(u32::MAX);
    Bounds {
        measurements: config.max_clients,
        connections: descriptors / 4 * 3,
        connections_per_client: config.max_connections_per_address,
        memory_bytes: system.totalram as u64 * u64::from(system.mem_unit) / MEMORY_SHARE,
        rate_per_client: config.limits.rate_bits_per_s.map(BitRate),
    }
}

/// What every task of the server shares.
struct Shared {
    config: Config,
    admission: Admission,
    tickets: Tickets,
    /// Turns true when the server shall stop.
    stopping: watch::Receiver<bool>,
    /// Rung by the first client that made a measurement when it leaves.
    served_one: Notify,
}

impl Shared {
    /// A session's configuration, with a seed of its own.
    fn session_config(&self, peer: SocketAddr, local: SocketAddr) -> ServerConfig {
        ServerConfig {
            host: if self.config.private { stranger_host() } else { goodput_kernel::host() },
            token: self.config.token.clone(),
            token_required: self.config.token_required,
            accounts: self.config.accounts.clone(),
            limits: self.config.limits,
            peer,
            local,
            transport: Transport::Tcp,
            seed: rand::random(),
            clock: wall_clock(),
        }
    }

    /// Whether the server is about to stop.
    async fn stopping(&self) {
        // An error means that the sender is gone, and with it the server.
        let _ = self.stopping.clone().wait_for(|stop| *stop).await;
    }
}

/// What a host says of itself that keeps the rest to itself.
fn stranger_host() -> Host {
    Host {
        name: "private".into(),
        kernel: "not told".into(),
        goodput: env!("CARGO_PKG_VERSION").into(),
        cpus: 0,
    }
}

/// Serves until `stop` comes, or until one client was served where the configuration says so.
/// Every flow is stopped and every setting is put back before it returns.
pub async fn serve(
    config: Config,
    sockets: Sockets,
    stop: impl Future<Output = ()>,
) -> Result<(), EngineError> {
    let (tell_stop, stopping) = watch::channel(false);
    let one_off = config.one_off;
    let shared = Arc::new(Shared {
        admission: Admission::new(bounds(&config)),
        tickets: Tickets::default(),
        stopping,
        served_one: Notify::new(),
        config,
    });
    let tasks = accept::Tasks::default();
    let challenges = udp::answer(sockets.udp, Arc::clone(&shared));
    let accepting = accept::accept(sockets.tcp, Arc::clone(&shared), &tasks);
    tokio::select! {
        () = stop => {}
        () = shared.served_one.notified(), if one_off => {}
        () = challenges => {}
        () = accepting => {}
    }
    // The receiver lives in `shared`, so this cannot fail.
    let _ = tell_stop.send(true);
    tasks.join().await;
    Ok(())
}
