//! What goes over the bus beside tasks, as JSON.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::language::{FORMAT, from_json, knows};
use super::sealed::Sealed;

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

/// What the near agent asks the far one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// Open a listener for one test.
    Open(Invitation),
    /// Close the listener.
    Close(Farewell),
    /// Say whether the test of this task goes on: the far agent asks who called it.
    Continues(String),
}

/// A listener that is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Invitation {
    /// [`FORMAT`].
    pub format: u32,
    /// The task, as the coordinator gave it: the far agent checks it, too.
    pub sealed: Sealed,
    /// The public key that the caller will prove.
    pub key: String,
    /// Whether the caller can be asked if its test goes on; an older one can't.
    #[serde(default)]
    pub can_be_asked: bool,
}

/// The end of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Farewell {
    /// The id of its task.
    pub task: String,
    /// What it cost the line, bytes of IP packets in both directions; absent: no test was made.
    pub bytes: Option<u64>,
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
        /// What the test may cost the line, bytes; absent: anything.
        most_bytes: Option<u64>,
    },
    /// The listener is closed.
    Closed,
    /// Whether the test goes on.
    Continues(bool),
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn outcomes_and_calls_are_read_as_they_were_written() {
        let record = serde_json::json!({ "format": 1, "rate": 0.1 });
        for end in [End::Record(record), End::Reason("busy".into())] {
            let outcome = Outcome::new("t-1", "a", end);
            assert_eq!(Outcome::read(&serde_json::to_vec(&outcome).unwrap()), Ok(outcome));
        }
        let sealed = Sealed { format: FORMAT, task: "{}".into(), signature: None };
        let open =
            Invitation { format: FORMAT, sealed, key: "x25519:…".into(), can_be_asked: true };
        let close = Farewell { task: "t-1".into(), bytes: Some(7) };
        for call in [Call::Open(open.clone()), Call::Close(close), Call::Continues("t-1".into())] {
            assert_eq!(Call::read(&serde_json::to_vec(&call).unwrap()), Ok(call));
        }
        let mut older = serde_json::to_value(Call::Open(open.clone())).unwrap();
        older["open"].as_object_mut().unwrap().remove("can_be_asked");
        let older = Call::read(older.to_string().as_bytes());
        assert!(matches!(older, Ok(Call::Open(Invitation { can_be_asked: false, .. }))));
        let newer = Call::Open(Invitation { format: 99, ..open });
        assert!(Call::read(&serde_json::to_vec(&newer).unwrap()).unwrap_err().contains("version"));
        let answer = Answer::Listening { port: 7, key: "x25519:…".into(), most_bytes: None };
        for answer in [answer, Answer::Continues(true)] {
            assert_eq!(Answer::read(&serde_json::to_vec(&answer).unwrap()), Ok(answer));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Outcome::read(&bytes), Call::read(&bytes), Answer::read(&bytes));
        }

        #[test]
        fn any_outcome_is_read_as_it_was_written(
            id in "[a-z0-9-]{1,40}", by in ".{0,40}", why in ".{0,80}", rate in any::<i64>(), has in any::<bool>(),
        ) {
            let end = if has { End::Record(serde_json::json!({ "rate": rate, "why": why })) } else { End::Reason(why) };
            let outcome = Outcome::new(&id, &by, end);
            prop_assert_eq!(Outcome::read(&serde_json::to_vec(&outcome).unwrap()), Ok(outcome));
        }
    }
}
