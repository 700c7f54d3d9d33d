//! A kernel setting of the host's network namespace.

use serde::Deserialize;

use super::{Fault, FaultTarget, Kind, Undo, read};
use crate::error::LabError;
use crate::host::Host;
use crate::host_name::HostName;

pub(super) const KIND: Kind = Kind {
    id: "sysctl",
    summary: "a kernel setting has this value in the host",
    example: "host = \"far\"\nname = \"net.ipv4.tcp_rmem\"\nvalue = \"4096 65536 65536\"",
    read: read::<Sysctl>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sysctl {
    host: HostName,
    name: String,
    value: String,
}

impl Sysctl {
    fn failed(&self, why: String) -> LabError {
        LabError::Fault { kind: KIND.id, host: self.host.to_string(), why }
    }

    /// Outside `net.` a setting would apply to the whole machine.
    fn check_name(&self) -> Result<(), LabError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let fits = self.name.starts_with("net.") && self.name.chars().all(plain);
        let no_way_up = !self.name.contains("..");
        (fits && no_way_up).then_some(()).ok_or_else(|| {
            self.failed(format!("{} is not a setting of a network namespace (net.…)", self.name))
        })
    }

    fn read(&self, host: &Host) -> Result<String, LabError> {
        self.check_name()?;
        host.sysctl(&self.name).map_err(|error| self.failed(format!("{}: {error}", self.name)))
    }
}

impl Fault for Sysctl {
    fn host(&self) -> HostName {
        self.host
    }

    /// A value that the kernel accepted but changed is an error: the scenario would not be what its file says.
    fn plant(&self, site: FaultTarget<'_>) -> Result<Undo, LabError> {
        self.check_name()?;
        site.host
            .set_sysctl(&self.name, &self.value)
            .map_err(|error| self.failed(format!("{} = {:?}: {error}", self.name, self.value)))?;
        let now = self.read(site.host)?;
        if now.split_whitespace().ne(self.value.split_whitespace()) {
            return Err(self.failed(format!(
                "{} was set to {:?}, but the kernel made it {now:?}",
                self.name, self.value
            )));
        }
        Ok(None)
    }

    fn read_back(&self, site: FaultTarget<'_>) -> Result<String, LabError> {
        self.read(site.host)
    }
}
