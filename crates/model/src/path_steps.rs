//! The steps of the payload from the sender's application to the receiver's, with what each step passed and
//! dropped.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::place::Place;
use crate::units::{Bytes, Count};

/// One step of the path over the whole transfer: what entered, what left, what was dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// The host that has this step, or the path between both hosts.
    pub place: Place,
    /// Name of the step.
    pub name: StepName,
    /// What this step counts.
    pub unit: StepUnit,
    /// Number of units that entered this step.
    pub entered: Known<u64>,
    /// Number of units that left for the next step.
    pub left: Known<u64>,
    /// Number of units dropped in this step.
    pub dropped: Known<u64>,
}

impl Step {
    /// The step with its host: `near socket`, `path`.
    pub fn label(&self) -> String {
        match self.name {
            StepName::Path => self.name.to_string(),
            name => format!("{} {name}", self.place),
        }
    }
}

/// A step of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepName {
    /// The program that writes or reads the payload.
    Application,
    /// The program's sockets.
    Socket,
    /// The queueing discipline of the sender's device.
    Qdisc,
    /// The device: card, driver and rings.
    Device,
    /// Everything between the two hosts.
    Path,
    /// The receiver's per-CPU backlog between device and protocol.
    Backlog,
}

impl fmt::Display for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Application => "app",
            Self::Socket => "socket",
            Self::Qdisc => "qdisc",
            Self::Device => "device",
            Self::Path => "path",
            Self::Backlog => "backlog",
        })
    }
}

/// What a step counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepUnit {
    /// Payload bytes of the flows.
    Bytes,
    /// The flows' TCP segments with payload, each as large as one packet on the wire.
    Segments,
    /// The flows' datagrams.
    Datagrams,
    /// All packets, other programs' included. One packet may have up to 64 KiB if the device segments it.
    Packets,
}

impl StepUnit {
    /// The number for a person, without the unit's name; `?` if it was not counted.
    pub fn amount(self, count: &Known<u64>) -> String {
        match (count, self) {
            (Known::Missing(_), _) => "?".into(),
            (Known::Value(count), Self::Bytes) => Bytes(*count).to_string(),
            (Known::Value(count), _) => Count(*count).to_string(),
        }
    }
}

impl StepUnit {
    /// A number of them for a person: `1 segment`, `162.3k segments`, `1.64 MB payload`.
    pub fn counted(self, count: u64) -> String {
        let amount = self.amount(&Known::Value(count));
        match self {
            Self::Bytes => format!("{amount} {self}"),
            Self::Segments if count == 1 => format!("{amount} segment"),
            Self::Datagrams if count == 1 => format!("{amount} datagram"),
            Self::Packets if count == 1 => format!("{amount} packet"),
            _ => format!("{amount} {self}"),
        }
    }
}

impl fmt::Display for StepUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Bytes => "payload",
            Self::Segments => "segments",
            Self::Datagrams => "datagrams",
            Self::Packets => "packets",
        })
    }
}
