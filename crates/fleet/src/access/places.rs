//! The names of a fleet's places on the bus.

/// Bucket: the agents that run, by the words of their sites.
pub const AGENTS: &str = "goodput-agents";
/// Bucket: the coordinator that runs.
pub const LEASE: &str = "goodput-lease";
/// Bucket: the tasks that were begun, by [`of_task`].
pub const BEGUN: &str = "goodput-begun";
/// Bucket: the newest turn, and the fence.
pub const TURNS: &str = "goodput-turns";
/// Stream: the tasks of each site.
pub const TASKS: &str = "GOODPUT_TASKS";
/// Stream: how tasks ended. `GOODPUT_OUTCOMES` is the one of version 1, on the subjects `goodput.outcome.ID`: a server may
/// still have it, and streams can't share subjects.
pub const OUTCOMES: &str = "GOODPUT_OUTCOMES_2";
/// Stream: the tests that someone asks for.
pub const WANTED: &str = "GOODPUT_WANTED";
/// Each bucket.
pub const BUCKETS: [&str; 4] = [AGENTS, LEASE, BEGUN, TURNS];

/// Subjects of the tasks, followed by the word of a site.
pub const TASK: &str = "goodput.task";
/// Subjects of the outcomes, followed by [`of_task`].
pub const OUTCOME: &str = "goodput.outcomes";
/// Subjects of the tests that someone asks for, followed by [`COORDINATOR`].
pub const WANT: &str = "goodput.want";

/// The key of the lease, and who receives what is for the coordinator.
pub const COORDINATOR: &str = "coordinator";
/// The key of the newest turn.
pub const TURN: &str = "turn";
/// The key whose revision is the token of the newest coordinator.
pub const FENCE: &str = "fence";
/// The key that says how far the outcomes of a turn are printed.
pub const PRINTED: &str = "printed";

/// Where answers come to the coordinator.
pub const COORDINATOR_INBOX: &str = "_INBOX.coordinator";

/// A task whose near site has this word: where it was begun, and where its outcome is. So a user who may write for one
/// site can't for another.
pub fn of_task(word: &str, task: &str) -> String {
    format!("{word}.{task}")
}

/// Where answers come to the agent of a site.
pub fn inbox(word: &str) -> String {
    format!("_INBOX.agent.{word}")
}

/// Where the site `far` is asked to listen, by the agent of the site `near`.
pub fn call(far: &str, near: &str) -> String {
    format!("goodput.call.{far}.{near}")
}

/// Where it is told how the test of a task goes.
pub fn news(word: &str, task: &str) -> String {
    format!("goodput.news.{word}.{task}")
}

/// The stream behind a bucket, and its subject of a key (NATS ADR-8).
pub fn stream_of(bucket: &str) -> String {
    format!("KV_{bucket}")
}

/// The subject of a key.
pub fn key(bucket: &str, key: &str) -> String {
    format!("$KV.{bucket}.{key}")
}
