//! The parts of a path that could be slow.

use std::fmt;

use goodput_model::{EndName, Place};
use serde::Serialize;

/// A part of a path from one site to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// What all paths from a site share: the host as it sends, and its way out.
    Sender,
    /// What all paths to a site share: its way in, and the host as it receives.
    Receiver,
    /// What no other path shares.
    Path,
}

impl Part {
    /// What a place of a record is, if this end sent.
    pub fn of(place: Place, sender: EndName) -> Self {
        match place {
            Place::Path => Self::Path,
            place if place == Place::from(sender) => Self::Sender,
            _ => Self::Receiver,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
            Self::Path => "path",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_that_sends_is_the_sender() {
        assert_eq!(Part::of(Place::Far, EndName::Far), Part::Sender);
        assert_eq!(Part::of(Place::Near, EndName::Far), Part::Receiver);
        assert_eq!(Part::of(Place::Near, EndName::Near), Part::Sender);
        assert_eq!(Part::of(Place::Path, EndName::Near), Part::Path);
    }
}
