//! What each user of the bus may publish and hear: the subjects of the fleet, and those of JetStream's own API
//! (docs.nats.io, "JetStream wire API reference").

use super::places::{
    AGENTS, BEGUN, BUCKETS, COORDINATOR, COORDINATOR_INBOX, FENCE, LEASE, OUTCOME, OUTCOMES, TASK,
    TASKS, TURNS, WANT, WANTED, call, inbox, key, news, of_task, stream_of,
};

/// A user of the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// Who it is, for people.
    pub who: String,
    /// Subjects to which it may publish.
    pub publish: Vec<String>,
    /// Subjects that it may hear.
    pub subscribe: Vec<String>,
    /// Whether it may answer what it was asked.
    pub answers: bool,
}

impl Login {
    /// The coordinator, which also makes the streams.
    pub fn of_coordinator() -> Self {
        let streams = BUCKETS.into_iter().map(stream_of);
        let streams = streams.chain([TASKS, OUTCOMES, WANTED].map(String::from));
        let mut publish: Vec<_> = streams
            .flat_map(|stream| {
                ["INFO", "CREATE"].map(|verb| format!("$JS.API.STREAM.{verb}.{stream}"))
            })
            .collect();
        publish.extend(read(AGENTS, "*"));
        publish.extend(read(BEGUN, "*.*"));
        publish.extend(read_and_write(LEASE, COORDINATOR));
        publish.extend(read_and_write(TURNS, "*"));
        publish.extend([
            format!("{TASK}.*"),
            format!("{OUTCOME}.*.*"),
            get(OUTCOMES, &format!("{OUTCOME}.*.*")),
        ]);
        publish.push(format!("{WANT}.{COORDINATOR}"));
        publish.extend(consume(WANTED, WANT, COORDINATOR));
        let subscribe =
            vec![format!("{COORDINATOR_INBOX}.>"), format!("{OUTCOME}.*.*"), news("*", "*")];
        Self { who: "the coordinator".into(), publish, subscribe, answers: false }
    }

    /// The agent of `site`, whose word is `word`. `peers` are the words of the sites that it tests with.
    pub fn of_site(site: &str, word: &str, peers: &[String]) -> Self {
        let streams = [AGENTS, BEGUN, TURNS].map(stream_of);
        let streams = streams.into_iter().chain([TASKS, OUTCOMES].map(String::from));
        let mut publish: Vec<_> =
            streams.map(|stream| format!("$JS.API.STREAM.INFO.{stream}")).collect();
        publish.extend(read_and_write(AGENTS, word));
        publish.extend(read_and_write(BEGUN, &of_task(word, "*")));
        publish.extend(read(TURNS, FENCE));
        let outcomes = format!("{OUTCOME}.{}", of_task(word, "*"));
        publish.extend([get(OUTCOMES, &outcomes), outcomes, news(word, "*")]);
        publish.extend(consume(TASKS, TASK, word));
        publish.extend(peers.iter().map(|peer| call(peer, word)));
        // Where it hears that there is a new coordinator.
        let subscribe = vec![format!("{}.>", inbox(word)), call(word, "*"), key(TURNS, FENCE)];
        Self { who: site.into(), publish, subscribe, answers: true }
    }
}

/// The last message of a subject, asked of a stream.
fn get(stream: &str, subject: &str) -> String {
    format!("$JS.API.DIRECT.GET.{stream}.{subject}")
}

fn read(bucket: &str, keys: &str) -> [String; 1] {
    [get(&stream_of(bucket), &key(bucket, keys))]
}

fn read_and_write(bucket: &str, keys: &str) -> [String; 2] {
    let [read] = read(bucket, keys);
    [read, key(bucket, keys)]
}

/// The messages of one receiver of a queue. The server itself compares the subject in the name of the request with the one
/// that the consumer would get.
fn consume(stream: &str, subject: &str, receiver: &str) -> [String; 4] {
    [
        format!("$JS.API.CONSUMER.INFO.{stream}.{receiver}"),
        format!("$JS.API.CONSUMER.CREATE.{stream}.{receiver}.{subject}.{receiver}"),
        format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{receiver}"),
        format!("$JS.ACK.{stream}.{receiver}.>"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a pattern of NATS has a subject.
    fn has(pattern: &str, subject: &str) -> bool {
        let (mut words, mut named) = (subject.split('.'), pattern.split('.'));
        loop {
            match (named.next(), words.next()) {
                (None, None) => return true,
                (Some(">"), Some(_)) => return true,
                (Some(one), Some(word)) if one == "*" || one == word => {}
                _ => return false,
            }
        }
    }

    fn may(login: &Login, subject: &str) -> bool {
        login.publish.iter().any(|pattern| has(pattern, subject))
    }

    #[test]
    fn an_agent_may_write_for_its_own_site_alone() {
        let agent = Login::of_site("a", "a", &["b".into()]);
        for subject in [
            "goodput.outcomes.a.t-1",
            "$KV.goodput-agents.a",
            "$KV.goodput-begun.a.t-1",
            "goodput.call.b.a",
            "$JS.ACK.GOODPUT_TASKS.a.1.2.3.4.5",
        ] {
            assert!(may(&agent, subject), "{subject}");
        }
        for subject in [
            "goodput.task.a",
            "goodput.task.b",
            "goodput.outcomes.b.t-1",
            "$KV.goodput-agents.b",
            "$KV.goodput-begun.b.t-1",
            "$KV.goodput-turns.fence",
            "$KV.goodput-lease.coordinator",
            "goodput.call.b.c",
            "goodput.call.c.a",
            "goodput.want.coordinator",
            "$JS.API.CONSUMER.CREATE.GOODPUT_TASKS.a.goodput.task.b",
            "$JS.API.CONSUMER.MSG.NEXT.GOODPUT_TASKS.b",
            "$JS.API.STREAM.CREATE.GOODPUT_TASKS",
            "$JS.API.STREAM.PURGE.GOODPUT_OUTCOMES_2",
            "$JS.API.STREAM.DELETE.KV_goodput-begun",
        ] {
            assert!(!may(&agent, subject), "{subject}");
        }
        let heard = ["_INBOX.agent.a.>", "goodput.call.a.*", "$KV.goodput-turns.fence"];
        assert_eq!(agent.subscribe, heard);
    }

    #[test]
    fn the_coordinator_may_give_out_tasks_and_not_remove_what_was_done() {
        let coordinator = Login::of_coordinator();
        for subject in ["goodput.task.a", "$KV.goodput-turns.fence", "goodput.outcomes.a.t-1"] {
            assert!(may(&coordinator, subject), "{subject}");
        }
        for subject in [
            "$KV.goodput-begun.a.t-1",
            "$KV.goodput-agents.a",
            "$JS.API.STREAM.PURGE.GOODPUT_OUTCOMES_2",
            "$JS.API.STREAM.DELETE.GOODPUT_OUTCOMES_2",
            "$JS.API.STREAM.UPDATE.GOODPUT_OUTCOMES_2",
            "goodput.call.a.b",
        ] {
            assert!(!may(&coordinator, subject), "{subject}");
        }
    }
}
