//! What goes over the bus, as JSON.

use goodput_model::{Direction, Host, is_plain};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of what coordinator and agents say to each other. It grows when an older one would misunderstand.
pub const FORMAT: u32 = 1;

/// Longest id of a task, bytes: it is a word of subjects and the name of a file.
const MAX_ID_BYTES: usize = 128;
/// Longest test that a task may ask for, seconds; an agent's own limit is usually lower.
const MAX_LENGTH_S: f64 = 3600.0;
/// Longest text of a task, characters.
const MAX_TEXT_CHARS: usize = 300;

/// One test of one direction, which the near site carries out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// [`FORMAT`].
    pub format: u32,
    /// Names it for good: letters, digits, `-` and `_`.
    pub id: String,
    /// The site that calls, measures and keeps the record.
    pub near: String,
    /// The site that is called.
    pub far: String,
    /// What the near site calls the far one.
    pub target: String,
    /// Who sends: [`Direction::Send`] is the near site, [`Direction::Reverse`] the far one.
    pub direction: Direction,
    /// Length of the test, seconds.
    pub length_s: f64,
}

/// Why a task is not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its id, if at least this could be read.
    pub id: Option<String>,
    /// What is wrong, in words.
    pub why: String,
}

/// The part that is read first.
#[derive(Deserialize)]
struct Head {
    format: u32,
    id: String,
}

impl Task {
    /// Reads a task for the site `near`.
    ///
    /// # Errors
    /// What is wrong with it. Anyone who may write to the bus may have written it.
    pub fn read(json: &[u8], near: &str) -> Result<Self, Unreadable> {
        let head: Head = from_json(json).map_err(|why| Unreadable { id: None, why })?;
        if !is_id(&head.id) {
            return Err(Unreadable { id: None, why: "its id is no id".into() });
        }
        let refused = |why| Unreadable { id: Some(head.id.clone()), why };
        knows(head.format, "the coordinator").map_err(refused)?;
        let task: Self = from_json(json).map_err(refused)?;
        task.problem(near).map_or(Ok(task), |why| Err(refused(why)))
    }

    fn problem(&self, near: &str) -> Option<String> {
        let texts = [&self.near, &self.far, &self.target];
        let fits = |text: &&String| {
            (1..=MAX_TEXT_CHARS).contains(&text.chars().count()) && text.chars().all(is_plain)
        };
        if !texts.iter().all(fits) {
            return Some("a name in the task is empty, too long or not printable".into());
        }
        if self.near != near {
            return Some(format!("the task is for {}, not for {near}", self.near));
        }
        if self.far == self.near {
            return Some("the task is a test of a site with itself".into());
        }
        if self.direction == Direction::Both {
            return Some("the task has both directions at once; a task has one".into());
        }
        let fits = self.length_s > 0.0 && self.length_s <= MAX_LENGTH_S;
        (!fits).then(|| format!("the task takes {} s; one takes 3600 s at most", self.length_s))
    }

    /// The site that sends payload.
    pub fn sender(&self) -> &str {
        if self.direction == Direction::Reverse { &self.far } else { &self.near }
    }

    /// The site that receives payload.
    pub fn receiver(&self) -> &str {
        if self.direction == Direction::Reverse { &self.near } else { &self.far }
    }
}

/// What became of a task: each has one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// [`FORMAT`].
    pub format: u32,
    /// The id of the task.
    pub task: String,
    /// Who says so: a site, or the coordinator.
    pub by: String,
    /// How it ended.
    pub end: End,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// With a record, in the format of the goodput that measured.
    Record(Value),
    /// Without one, and why.
    Reason(String),
}

impl Outcome {
    /// The outcome of this task.
    pub fn new(task: &str, by: &str, end: End) -> Self {
        Self { format: FORMAT, task: task.into(), by: by.into(), end }
    }

    /// Reads an outcome.
    ///
    /// # Errors
    /// It is none, or one of a newer format.
    pub fn read(json: &[u8]) -> Result<Self, String> {
        let outcome: Self = from_json(json)?;
        knows(outcome.format, &outcome.by)?;
        Ok(outcome)
    }
}

/// What an agent says of itself, for as long as it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Announcement {
    /// [`FORMAT`].
    pub format: u32,
    /// Its site.
    pub site: String,
    /// Tells two agents of one name apart.
    pub session: String,
    /// Its host, with the version of goodput.
    pub host: Host,
    /// When it began, RFC 3339, UTC, by its host's clock.
    pub since: String,
    /// Longest test that it takes part in, seconds.
    pub max_duration_s: f64,
}

impl Announcement {
    /// Reads an announcement.
    ///
    /// # Errors
    /// It is none.
    pub fn read(json: &[u8]) -> Result<Self, String> {
        from_json(json)
    }

    /// Why its agent can't take part in a task, if it can't.
    pub fn unfit(&self, task: &Task) -> Option<String> {
        let Self { site, max_duration_s, .. } = self;
        if let Err(why) = knows(self.format, site) {
            return Some(format!("{why} ({site} runs goodput {})", self.host.goodput));
        }
        (task.length_s > *max_duration_s).then(|| {
            format!(
                "{site} takes part in tests of at most {max_duration_s} s (--max-duration), and this one takes {} s",
                task.length_s
            )
        })
    }
}

/// What the near agent asks the far one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// Open a listener for one test.
    Open(Invitation),
    /// Close the listener of this task.
    Close(String),
}

/// A listener that is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Invitation {
    /// [`FORMAT`].
    pub format: u32,
    /// The id of the task.
    pub task: String,
    /// The site that will call.
    pub near: String,
    /// The public key that the caller will prove.
    pub key: String,
    /// The port to listen on; absent: any.
    pub port: Option<u16>,
    /// Length of the test, seconds.
    pub length_s: f64,
}

/// What the far agent answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It listens.
    Listening {
        /// On this port.
        port: u16,
        /// And will prove this public key.
        key: String,
    },
    /// The listener is closed.
    Closed,
    /// It does not, and why.
    Refused(String),
}

impl Call {
    /// Reads a call.
    ///
    /// # Errors
    /// It is none, or of a newer format.
    pub fn read(json: &[u8]) -> Result<Self, String> {
        let call: Self = from_json(json)?;
        if let Self::Open(invitation) = &call {
            knows(invitation.format, "the caller")?;
        }
        Ok(call)
    }
}

impl Answer {
    /// Reads an answer.
    ///
    /// # Errors
    /// It is none.
    pub fn read(json: &[u8]) -> Result<Self, String> {
        from_json(json)
    }
}

fn from_json<T: DeserializeOwned>(json: &[u8]) -> Result<T, String> {
    serde_json::from_slice(json).map_err(|why| format!("not understood: {why}"))
}

fn knows(format: u32, who: &str) -> Result<(), String> {
    if format == FORMAT {
        return Ok(());
    }
    Err(format!(
        "{who} speaks version {format} of the language of fleets, and this goodput version {FORMAT}; install the same \
         goodput on both"
    ))
}

/// Whether a text can name a task.
pub(super) fn is_id(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    (1..=MAX_ID_BYTES).contains(&text.len()) && text.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn task() -> Task {
        let [id, near, far, target] = ["t-1", "a", "b", "b.example"].map(String::from);
        let direction = Direction::Send;
        Task { format: FORMAT, id, near, far, target, direction, length_s: 10.0 }
    }

    fn read(task: &Task) -> Result<Task, Unreadable> {
        Task::read(&serde_json::to_vec(task).unwrap(), "a")
    }

    #[test]
    fn a_task_is_read_as_it_was_written_and_its_direction_says_who_sends() {
        assert_eq!(read(&task()), Ok(task()));
        assert_eq!((task().sender(), task().receiver()), ("a", "b"));
        let turned = Task { direction: Direction::Reverse, ..task() };
        assert_eq!((turned.sender(), turned.receiver()), ("b", "a"));
    }

    #[test]
    fn a_poisoned_task_is_refused_in_words_with_its_id_if_it_has_one() {
        for (poison, words) in [
            (Task { format: 2, ..task() }, "version 2"),
            (Task { near: "c".into(), ..task() }, "for c, not for a"),
            (Task { far: "a".into(), ..task() }, "with itself"),
            (Task { direction: Direction::Both, ..task() }, "both directions"),
            (Task { length_s: 1e9, ..task() }, "3600 s"),
            (Task { target: "\x1b[2J".into(), ..task() }, "not printable"),
        ] {
            let refused = read(&poison).unwrap_err();
            assert!(refused.why.contains(words), "{refused:?}");
            assert_eq!(refused.id.as_deref(), Some("t-1"), "{refused:?}");
        }
        for id in ["", "../../etc/passwd", "a.b", "a b", &"a".repeat(129)] {
            let refused = read(&Task { id: id.into(), ..task() }).unwrap_err();
            assert_eq!(refused.id, None, "{refused:?}");
        }
        assert_eq!(Task::read(b"{\"format\":1}", "a").unwrap_err().id, None);
    }

    #[test]
    fn an_agent_of_another_version_or_with_lower_limits_is_unfit_in_words() {
        let host = Host { name: "h".into(), kernel: "k".into(), goodput: "9.9".into(), cpus: 1 };
        let [site, session, since] = ["b", "s", "t"].map(String::from);
        let agent =
            Announcement { format: FORMAT, site, session, host, since, max_duration_s: 10.0 };
        assert_eq!(agent.unfit(&task()), None);
        let newer = Announcement { format: 2, ..agent.clone() };
        let why = newer.unfit(&task()).unwrap();
        assert!(why.contains("b speaks version 2") && why.contains("goodput 9.9"), "{why}");
        let why = agent.unfit(&Task { length_s: 11.0, ..task() }).unwrap();
        assert!(why.contains("at most 10 s") && why.contains("--max-duration"), "{why}");
    }

    #[test]
    fn outcomes_and_calls_are_read_as_they_were_written() {
        let record = serde_json::json!({ "format": 1, "rate": 0.1 });
        for end in [End::Record(record), End::Reason("busy".into())] {
            let outcome = Outcome::new("t-1", "a", end);
            assert_eq!(Outcome::read(&serde_json::to_vec(&outcome).unwrap()), Ok(outcome));
        }
        let [task, near, key] = ["t-1", "a", "x25519:…"].map(String::from);
        let open = Invitation { format: FORMAT, task, near, key, port: None, length_s: 1.0 };
        for call in [Call::Open(open.clone()), Call::Close("t-1".into())] {
            assert_eq!(Call::read(&serde_json::to_vec(&call).unwrap()), Ok(call));
        }
        let newer = Call::Open(Invitation { format: 2, ..open });
        assert!(Call::read(&serde_json::to_vec(&newer).unwrap()).unwrap_err().contains("version"));
        let answer = Answer::Listening { port: 7, key: "x25519:…".into() };
        assert_eq!(Answer::read(&serde_json::to_vec(&answer).unwrap()), Ok(answer));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Task::read(&bytes, "a"), Outcome::read(&bytes), Call::read(&bytes));
            let _ = (Answer::read(&bytes), Announcement::read(&bytes));
        }
    }
}
