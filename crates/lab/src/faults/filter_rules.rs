//! Faults that are rules of a host's packet filter.

use std::fmt;

use super::{Fault, FaultTarget, Kind, Undo};
use crate::error::LabError;
use crate::host_name::HostName;
use crate::limits::Limits;
use crate::need::Need;
use crate::nft;

/// A fault that consists only of rules of a host's packet filter. The rules disappear with the host.
pub(crate) trait FilterRules: fmt::Debug + Send + Sync {
    /// The kind of fault, to name in errors.
    const KIND: &'static Kind;

    /// The host with the rules.
    fn host(&self) -> HostName;

    /// What it leaves of the direction from near to far; by default everything.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// The fault's own table, in the syntax of nft(8).
    fn rules(&self) -> String;
}

impl<T: FilterRules> Fault for T {
    fn host(&self) -> HostName {
        FilterRules::host(self)
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::PacketFilter]
    }

    fn limits(&self) -> Limits {
        FilterRules::limits(self)
    }

    fn plant(&self, site: FaultTarget<'_>) -> Result<Undo, LabError> {
        nft::load(site.host, &self.rules()).map_err(|why| failed(self, why)).map(|()| None)
    }

    fn read_back(&self, site: FaultTarget<'_>) -> Result<String, LabError> {
        nft::list(site.host).map_err(|why| failed(self, why))
    }
}

fn failed<T: FilterRules>(fault: &T, why: String) -> LabError {
    LabError::Fault { kind: T::KIND.id, host: FilterRules::host(fault).to_string(), why }
}
