//! The places of a fleet on the bus, and how the bus is reached.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use goodput_bus::{Bus, Keys, Outcomes, Proof, Public, Queue, Seed, Server};
use goodput_fleet::places::{
    AGENTS, BEGUN, COORDINATOR_INBOX, LEASE, OUTCOME, OUTCOMES, TASK, TASKS, TURNS, WANT, WANTED,
    inbox,
};
use goodput_fleet::{KEPT_S, TASK_LIFE_S};
use rustix::process::geteuid;

use crate::args::NatsArgs;
use crate::secret_file;

/// How often a name or the lease is renewed.
pub(super) const BEAT: Duration = Duration::from_secs(3);
/// When a name or the lease that nobody renews is free again.
pub(super) const EXPIRY: Duration = Duration::from_secs(12);
/// What the bus may take to store what it has already passed on.
pub(super) const STORED: Duration = Duration::from_millis(50);
/// When a test that someone asked for is dropped.
const WANTED_EXPIRY: Duration = Duration::from_secs(3600);
/// How long it is known which tasks were begun, and how they ended.
const OUTCOMES_EXPIRY: Duration = Duration::from_secs(KEPT_S);

/// The file with the coordinator's public key, beside the key of a site.
pub(super) const PUBLIC_FILE: &str = "coordinator.pub";
/// The file with which the coordinator signs, beside its own key.
pub(super) const SIGN_FILE: &str = "sign.nk";

/// The bus of a fleet, as an agent needs it.
pub(super) struct Places {
    pub bus: Bus,
    /// The agents that run, by the words of their sites; these expire.
    pub agents: Keys,
    /// The tasks that were begun.
    pub begun: Keys,
    /// The newest turn, and the fence.
    pub turns: Keys,
    /// The tasks of each site.
    pub tasks: Queue,
    /// How tasks ended.
    pub outcomes: Outcomes,
}

/// What else the coordinator needs.
pub(super) struct Desk {
    pub places: Places,
    /// The coordinator that runs; this expires.
    pub lease: Keys,
    /// The tests that someone asks for.
    pub wanted: Queue,
}

impl Places {
    /// Connects the agent of the site `word`.
    pub async fn of_agent(args: &NatsArgs, site: &str, word: &str) -> Result<Self> {
        Self::open(args, &format!("goodput agent {site}"), &inbox(word)).await
    }

    /// Connects, and makes what is not there yet. `name` is how the tools of NATS show the connection.
    async fn open(args: &NatsArgs, name: &str, inbox: &str) -> Result<Self> {
        let creds = args.creds.as_deref();
        let creds =
            creds.map(|file| secret_file::read(file, "the NATS credentials")).transpose()?;
        let seed = args.nkey.as_deref().map(seed).transpose()?;
        let proof = match (&seed, &creds) {
            (Some(seed), _) => Proof::Nkey(seed),
            (None, Some(creds)) => Proof::Credentials(creds),
            (None, None) => Proof::None,
        };
        let (url, authority) = (&*args.nats, args.tls_ca.as_deref());
        if let Some(file) = authority {
            // The library would only say that it can't connect.
            secret_file::read_open(file, "the certificates of --tls-ca")?;
        }
        let bus = Bus::connect(Server { url, proof, authority, name, inbox }).await?;
        let tasks_expiry = Duration::from_secs_f64(TASK_LIFE_S);
        Ok(Self {
            agents: bus.keys(AGENTS, Some(EXPIRY)).await?,
            begun: bus.keys(BEGUN, Some(OUTCOMES_EXPIRY)).await?,
            turns: bus.keys(TURNS, None).await?,
            tasks: bus.queue(TASKS, TASK, tasks_expiry).await?,
            outcomes: bus.outcomes(OUTCOMES, OUTCOME, OUTCOMES_EXPIRY).await?,
            bus,
        })
    }
}

impl Desk {
    /// Connects a coordinator.
    pub async fn open(args: &NatsArgs) -> Result<Self> {
        let places = Places::open(args, "goodput coordinator", COORDINATOR_INBOX).await?;
        let lease = places.bus.keys(LEASE, Some(EXPIRY)).await?;
        let wanted = places.bus.queue(WANTED, WANT, WANTED_EXPIRY).await?;
        Ok(Self { places, lease, wanted })
    }
}

fn seed(file: &Path) -> Result<Seed> {
    let text = secret_file::read(file, "the nkey")?;
    Seed::read(&text).with_context(|| format!("can't use the key {}", file.display()))
}

/// A file that lies beside the key or the credentials, if it is there.
fn beside(args: &NatsArgs, name: &str) -> Option<PathBuf> {
    let own = args.nkey.as_deref().or(args.creds.as_deref())?;
    let file = own.parent()?.join(name);
    file.exists().then_some(file)
}

/// The key whose signature an agent wants: `trust` is the key itself or its file. Without one, the file beside the
/// agent's own key.
pub(super) fn trusted(args: &NatsArgs, trust: Option<&str>) -> Result<Option<Public>> {
    if let Some(Ok(key)) = trust.map(str::parse) {
        return Ok(Some(key));
    }
    let Some(file) = trust.map(PathBuf::from).or_else(|| beside(args, PUBLIC_FILE)) else {
        return Ok(None);
    };
    let text = secret_file::read_trusted(&file, "the coordinator's public key", geteuid())?;
    let key = text.parse().with_context(|| format!("can't use the key {}", file.display()))?;
    Ok(Some(key))
}

/// The key with which a coordinator signs: `sign` is its file. Without one, the file beside the coordinator's own key.
pub(super) fn signer(args: &NatsArgs, sign: Option<&Path>) -> Result<Option<Seed>> {
    let file = sign.map(Path::to_owned).or_else(|| beside(args, SIGN_FILE));
    file.as_deref().map(seed).transpose()
}
