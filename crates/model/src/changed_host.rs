//! Hosts that were changed without goodput running on them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::end_name::EndName;

/// A host without goodput whose settings were changed and put back with the host's own programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedHost {
    /// Which of the two ends this host was.
    pub end: EndName,
    /// Address by which the host was reached, for example `ssh://root@b`.
    pub address: String,
    /// Operating system, as the host reports it: `Linux`, `FreeBSD`.
    pub system: String,
}
