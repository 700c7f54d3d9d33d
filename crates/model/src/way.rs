//! The way of the payload from the sender's application to the receiver's, step by step.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::place::Place;
use crate::units::{Bytes, Count};

/// One step of the way over the whole transfer: what came in, what went on, what was dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// The host it is in, or the path between the two.
    pub place: Place,
    /// What it is.
    pub name: StepName,
    /// What is counted here.
    pub unit: StepUnit,
    /// What came in.
    pub entered: Known<u64>,
    /// What went on to the next step.
    pub left: Known<u64>,
    /// What was dropped here.
    pub dropped: Known<u64>,
}

impl Step {
    /// `near socket`, `path`.
    pub fn label(&self) -> String {
        match self.name {
            StepName::Path => self.name.to_string(),
            name => format!("{} {name}", self.place),
        }
    }
}

/// A step of the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepName {
    /// The program that writes or reads the payload.
    Application,
    /// Its sockets.
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
    /// TCP segments with payload of the flows, each as large as one packet on the wire.
    Segments,
    /// Datagrams of the flows.
    Datagrams,
    /// Packets of whatever kind, other programs' too; one may be as large as 64 KiB if the device
    /// segments.
    Packets,
}

impl StepUnit {
    /// So many of it, for a person, without the unit's name.
    pub fn amount(self, count: &Known<u64>) -> String {
        match (count, self) {
            (Known::Missing(_), _) => "not counted".into(),
            (Known::Value(count), Self::Bytes) => Bytes(*count).to_string(),
            (Known::Value(count), _) => Count(*count).to_string(),
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
