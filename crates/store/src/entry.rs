//! One line of the history.

use std::fmt;

use goodput_model::answer::ONLY_A_PART;
use goodput_model::{BitRate, Direction, Record, Transport, counted};

use crate::compat::knows;
use crate::error::{RecordError, StoreError};
use crate::wanted::Position;

/// One line of the history.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Number of the record; never reused.
    pub id: i64,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// The kind of command that made it, as in the record's JSON: `test`, `compare`.
    pub kind: String,
    /// The target, as typed by the user.
    pub target: String,
    /// The record's main number; of a comparison the median of its baseline. What an older goodput kept of several runs is
    /// the number of the first run.
    pub goodput: BitRate,
    /// Id of the limiting rule, or `none`.
    pub limit: String,
    /// The site of a fleet that measured it, or the host if no fleet did; `None` if an older goodput kept it.
    pub measured_by: Option<String>,
    /// Format of the record.
    pub format: u32,
    /// How it was measured; `None` if an older goodput kept it.
    pub traffic: Option<Traffic>,
    /// What a command with several runs found, in a line. Of one with a single run, why it is only a part, if it is:
    /// otherwise its answer is its goodput. `None` also of what an older goodput kept.
    pub answer: Option<String>,
}

/// What makes results of one target comparable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traffic {
    /// `tcp` or `udp`, as in the record's JSON.
    pub transport: String,
    /// `send`, `reverse` or `both`, as in the record's JSON.
    pub direction: String,
    /// Flows of each direction.
    pub flows: u32,
}

impl fmt::Display for Traffic {
    /// `TCP reverse, 4 flows`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.way(), counted(self.flows, "flow"))
    }
}

impl Traffic {
    /// `TCP reverse`.
    pub fn way(&self) -> String {
        let read = |text: &str| serde_json::Value::from(text);
        let transport = serde_json::from_value::<Transport>(read(&self.transport));
        let direction = serde_json::from_value::<Direction>(read(&self.direction));
        // What a newer goodput wrote stays as it is.
        let transport = transport.map_or_else(|_| self.transport.clone(), |one| one.to_string());
        let direction = direction.map_or_else(|_| self.direction.clone(), |one| one.to_string());
        format!("{transport} {direction}")
    }
}

impl Entry {
    /// Its place in the list.
    pub fn position(&self) -> Position {
        Position { started: self.started.clone(), id: self.id }
    }

    /// Why the result of a single run is only a part, if it is one.
    pub fn incomplete(&self) -> Option<&str> {
        self.answer.as_deref()?.strip_prefix(ONLY_A_PART)
    }

    /// Whether this program reads records of this format. Damage shows only when the record is read.
    ///
    /// Errors: a newer goodput wrote it.
    pub fn readable(&self) -> Result<(), RecordError> {
        knows(self.format)
    }
}

/// The newest of some records, as far as they can be read.
#[derive(Debug)]
pub struct Newest {
    /// The newest that fits.
    pub record: Option<Record>,
    /// Why newer ones can't be read, the newest first. Any of them may fit.
    pub unread: Vec<StoreError>,
}
