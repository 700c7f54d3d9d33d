//! Which hosts were changed otherwise than by goodput there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::end_name::EndName;

/// A host without goodput whose settings were changed, and put back, by its own programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedHost {
    /// The end whose settings were those of this host.
    pub end: EndName,
    /// How it was reached, as `ssh://root@b`.
    pub address: String,
    /// Its operating system, as it calls itself: `Linux`, `FreeBSD`.
    pub system: String,
}
