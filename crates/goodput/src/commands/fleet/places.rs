//! The places of a fleet on the bus, and how the bus is reached.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow};
use goodput_bus::{
    Bus, BusError, Keys, Outcomes, Proof, Public, Queue, Refusal, Right, Seed, Server,
};
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
/// When a message of a queue that nobody works on any more is delivered again.
pub(super) const DELIVERED_AGAIN: Duration = Duration::from_secs(10);
/// When a test that someone asked for is dropped. Who still waits for it asks again.
pub(super) const WANTED_EXPIRY: Duration = Duration::from_secs(3600);
/// How long it is known which tasks were begun, and how they ended.
const OUTCOMES_EXPIRY: Duration = Duration::from_secs(KEPT_S);

/// What outcomes take at most at the server. A record of ten seconds has about 100 kB, and a round of the largest mesh 500 of at
/// most 1 MB: what no coordinator has read yet never goes.
pub(super) const OUTCOMES_BYTES: u64 = 1 << 30;

/// The file with the key of a login.
pub(super) const LOGIN_FILE: &str = "login.nk";
/// The directory of the coordinator's keys. No site's word has a dot.
pub(super) const COORDINATOR_FOLDER: &str = "coordinator.d";
/// The file with the coordinator's public key, beside the key of a site.
pub(super) const PUBLIC_FILE: &str = "coordinator.pub";
/// The file with which the coordinator signs, beside its own key.
pub(super) const SIGN_FILE: &str = "sign.nk";

/// The name of a site as one word of the bus.
pub(super) fn word(site: &str) -> Result<String> {
    goodput_fleet::word(site).map_err(|why| anyhow!(why))
}

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

/// A stream of the fleet is gone, or was made anew: whoever used it opens all places again.
#[derive(Debug)]
pub(super) struct Gone(String);

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Places {
    /// Opens the places of the agent of the site `word`, over this connection if there is one already.
    ///
    /// # Errors
    /// The key or the credentials lack rights, as those of someone else do; otherwise a [`BusError`].
    pub async fn of_agent(
        args: &NatsArgs,
        site: &str,
        word: &str,
        bus: Option<&Bus>,
    ) -> Result<Self> {
        let opened = match bus {
            Some(bus) => Self::on(bus.clone()).await,
            None => Self::open(args, &format!("goodput agent {site}"), &inbox(word)).await,
        };
        opened.map_err(|why| {
            let whose = format!("the agent of {site}");
            let change = "or start the agent with the name of the key's site (--name)";
            named(why, args, &whose, &format!("{word}.site/{LOGIN_FILE}"), change)
        })
    }

    /// Connects, and opens the places. `name` is how the tools of NATS show the connection.
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
        Self::on(Bus::connect(Server { url, proof, authority, name, inbox }).await?).await
    }

    /// Opens the places, and makes what is not there yet.
    async fn on(bus: Bus) -> Result<Self> {
        let tasks_expiry = Duration::from_secs_f64(TASK_LIFE_S);
        Ok(Self {
            agents: bus.keys(AGENTS, Some(EXPIRY)).await?,
            begun: bus.keys(BEGUN, Some(OUTCOMES_EXPIRY)).await?,
            turns: bus.keys(TURNS, None).await?,
            tasks: bus.queue(TASKS, TASK, tasks_expiry).await?,
            outcomes: bus.outcomes(OUTCOMES, OUTCOME, OUTCOMES_EXPIRY, OUTCOMES_BYTES).await?,
            bus,
        })
    }

    /// Waits until a stream of these places is gone: nothing here works from then on.
    pub async fn lost(&self) -> Error {
        let stream = self.bus.lost().await;
        Error::msg(Gone(format!(
            "NATS no longer has the stream {stream} as it was: the server was set up anew, or someone has removed the stream. All \
             streams of the fleet are opened again"
        )))
    }
}

impl Desk {
    /// Opens the places of a coordinator, over this connection if there is one already.
    ///
    /// # Errors
    /// The key or the credentials lack rights, as those of a site do; otherwise a [`BusError`].
    pub async fn open(args: &NatsArgs, bus: Option<&Bus>) -> Result<Self> {
        Self::opened(args, bus).await.map_err(|why| {
            let key = format!("{COORDINATOR_FOLDER}/{LOGIN_FILE}");
            named(why, args, "the coordinator", &key, "a site's key is for its agent alone")
        })
    }

    async fn opened(args: &NatsArgs, bus: Option<&Bus>) -> Result<Self> {
        let places = match bus {
            Some(bus) => Places::on(bus.clone()).await?,
            None => Places::open(args, "goodput coordinator", COORDINATOR_INBOX).await?,
        };
        let lease = places.bus.keys(LEASE, Some(EXPIRY)).await?;
        let wanted = places.bus.queue(WANTED, WANT, WANTED_EXPIRY).await?;
        Ok(Self { places, lease, wanted })
    }
}

/// The error, in other words if NATS knows the user, but not as this one: `whose` key it needs, as `goodput fleet keys` calls
/// it, and what else could be meant. Who can't hear its own answers has the key of someone else, or permissions that
/// someone wrote without them.
fn named(why: Error, args: &NatsArgs, whose: &str, key: &str, change: &str) -> Error {
    let Some(BusError::Forbidden { user, refusal, operation }) = why.downcast_ref() else {
        return why;
    };
    let file = args.nkey.as_deref().or(args.creds.as_deref());
    let file = file.map(|file| format!(" ({})", file.display())).unwrap_or_default();
    let Refusal { right, subject } = refusal;
    let what = match *right {
        Right::Subscribe => format!("hear {subject}, where its answers come"),
        Right::Publish => format!("publish to {subject} ({operation})"),
        Right::Login => return why,
    };
    anyhow!(
        "{user}{file} does not have the rights of {whose}. NATS does not let it {what}. Name the key of {whose} (--nkey \
         {key}), {change}. After another `goodput fleet keys`, give nats-server the new fleet.conf and reload it; \
         permissions of your own need all that fleet.conf allows"
    )
}

fn seed(file: &Path) -> Result<Seed> {
    let text = secret_file::read(file, "the nkey")?;
    Seed::read(&text).with_context(|| format!("can't use the key {}", file.display()))
}

/// A file that lies beside the key or the credentials, if it is there.
fn file_beside(args: &NatsArgs, name: &str) -> Option<PathBuf> {
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
    let Some(file) = trust.map(PathBuf::from).or_else(|| file_beside(args, PUBLIC_FILE)) else {
        return Ok(None);
    };
    let text = secret_file::read_trusted(&file, "the coordinator's public key", geteuid())?;
    let key = text.parse().with_context(|| format!("can't use the key {}", file.display()))?;
    Ok(Some(key))
}

/// The key with which a coordinator signs: `sign` is its file. Without one, the file beside the coordinator's own key.
pub(super) fn signer(args: &NatsArgs, sign: Option<&Path>) -> Result<Option<Seed>> {
    let file = sign.map(Path::to_owned).or_else(|| file_beside(args, SIGN_FILE));
    file.as_deref().map(seed).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit;

    fn args(nkey: &str) -> NatsArgs {
        NatsArgs { nats: "nats://x".into(), creds: None, nkey: Some(nkey.into()), tls_ca: None }
    }

    fn forbidden(right: Right, subject: &str) -> Error {
        let [operation, user] = ["make the stream S", "the key UX"].map(String::from);
        BusError::Forbidden { operation, user, refusal: Refusal { right, subject: subject.into() } }
            .into()
    }

    #[test]
    fn a_key_of_someone_else_is_named_with_what_to_do() {
        let inbox = forbidden(Right::Subscribe, "_INBOX.agent.b.x.*");
        let why = named(inbox, &args("a.site/login.nk"), "the agent of b", "b.site/login.nk", "or");
        let why = exit::in_words(&why);
        for words in ["the key UX (a.site/login.nk)", "the agent of b", "--nkey b.site/login.nk"] {
            assert!(why.contains(words), "{words}: {why}");
        }
        let stream = forbidden(Right::Publish, "$JS.API.STREAM.INFO.S");
        let why = named(stream, &args("x"), "the coordinator", "y", "or").to_string();
        assert!(why.contains("$JS.API.STREAM.INFO.S (make the stream S)"), "{why}");
        let other = anyhow!("no file");
        assert_eq!(named(other, &args("x"), "x", "y", "z").to_string(), "no file");
    }
}
