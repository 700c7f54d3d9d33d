//! Where things are on the bus, and how it is reached.

use std::time::Duration;

use anyhow::Result;
use goodput_bus::{Bus, Keys, Outcomes, Queue};
use goodput_fleet::KEPT_S;

use crate::args::NatsArgs;
use crate::secret_file;

/// How often a name or the lease is renewed.
pub(super) const BEAT: Duration = Duration::from_secs(3);
/// When a name or the lease that nobody renews is free again.
pub(super) const EXPIRY: Duration = Duration::from_secs(12);
/// When a task that nobody took is dropped. The coordinator gives it up long before.
const TASKS_EXPIRY: Duration = Duration::from_secs(86_400);
/// How long it is known which tasks were begun, and how they ended.
const OUTCOMES_EXPIRY: Duration = Duration::from_secs(KEPT_S);

/// The bus of a fleet.
pub(super) struct Places {
    pub bus: Bus,
    /// The agents that run, by the words of their sites; these expire.
    pub agents: Keys,
    /// The coordinator; this expires.
    pub lease: Keys,
    /// The tasks that were begun, by their ids.
    pub begun: Keys,
    /// The newest turn.
    pub turns: Keys,
    /// The tasks of each site.
    pub tasks: Queue,
    /// How tasks ended.
    pub outcomes: Outcomes,
}

impl Places {
    /// Connects, and makes what is not there yet. `name` is how the tools of NATS show the connection.
    pub async fn open(args: &NatsArgs, name: &str) -> Result<Self> {
        let file = args.creds.as_deref();
        let creds = file.map(|file| secret_file::read(file, "the NATS credentials")).transpose()?;
        let bus = Bus::connect(&args.nats, creds.as_deref(), name).await?;
        Ok(Self {
            agents: bus.keys("goodput-agents", Some(EXPIRY)).await?,
            lease: bus.keys("goodput-lease", Some(EXPIRY)).await?,
            begun: bus.keys("goodput-begun", Some(OUTCOMES_EXPIRY)).await?,
            turns: bus.keys("goodput-turns", None).await?,
            tasks: bus.queue("GOODPUT_TASKS", "goodput.task", TASKS_EXPIRY).await?,
            outcomes: bus.outcomes("GOODPUT_OUTCOMES", "goodput.outcome", OUTCOMES_EXPIRY).await?,
            bus,
        })
    }
}

/// Where the agent of a site is asked to listen; `word` is that of its name.
pub(super) fn calls_of(word: &str) -> String {
    format!("goodput.call.{word}")
}

/// Where it is told how the test of a task goes.
pub(super) fn news_of(task: &str) -> String {
    format!("goodput.news.{task}")
}
