//! Files of a host that a run writes to keep values over a reboot, before it has decided to keep them.

use goodput_settings::Assignment;
use serde::{Deserialize, Serialize};

/// The lines of ours in one file there, before and after their change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WrittenThere {
    /// The file.
    pub(crate) path: String,
    /// Whether goodput makes the file, or has made it.
    pub(crate) is_made: bool,
    /// What our lines kept before.
    pub(crate) before: Vec<Assignment>,
    /// What they keep after.
    pub(crate) keeps: Vec<Assignment>,
}
