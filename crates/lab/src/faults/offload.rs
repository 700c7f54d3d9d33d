//! An offload of the host's device, switched on or off.

use std::fmt;
use std::str::FromStr;

use goodput_netlink::{NetlinkError, Offload, get_offload, set_offload};
use serde::Deserialize;

use super::{Fault, FaultTarget, Kind, Undo, read};
use crate::amount::{self, Switch};
use crate::error::LabError;
use crate::host_name::HostName;

pub(super) const KIND: Kind = Kind {
    id: "offload",
    summary: "an offload of the host's device is switched on or off",
    example: "host = \"near\"\nname = \"tso\"\nvalue = \"off\"",
    read: read::<Switched>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Switched {
    host: HostName,
    #[serde(deserialize_with = "amount::required")]
    name: Name,
    #[serde(deserialize_with = "amount::required")]
    value: Switch,
}

#[derive(Debug, Clone, Copy)]
struct Name(Offload);

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Offload::ALL.into_iter().find(|offload| offload.name() == text);
        found.map(Self).ok_or_else(|| {
            let names = Offload::ALL.map(Offload::name).join(", ");
            format!("there is no offload {text:?}; there are {names}")
        })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl Switched {
    fn failed(&self, why: impl fmt::Display) -> LabError {
        LabError::Fault { kind: KIND.id, host: self.host.to_string(), why: why.to_string() }
    }

    fn at_device<T: Send>(
        &self,
        site: FaultTarget<'_>,
        work: impl FnOnce(&str) -> Result<T, NetlinkError> + Send,
    ) -> Result<T, LabError> {
        let device = site.host.device();
        site.host.within(|| work(device))?.map_err(|error| self.failed(error))
    }
}

impl Fault for Switched {
    fn host(&self) -> HostName {
        self.host
    }

    fn plant(&self, site: FaultTarget<'_>) -> Result<Undo, LabError> {
        let (offload, on) = (self.name.0, self.value == Switch::On);
        let now = self.at_device(site, |device| {
            set_offload(device, offload, on)?;
            get_offload(device, offload)
        })?;
        if now != on {
            let (name, wish) = (self.name, self.value);
            return Err(self.failed(format!("the device does not switch {name} {wish}")));
        }
        Ok(None)
    }

    fn read_back(&self, site: FaultTarget<'_>) -> Result<String, LabError> {
        let on = self.at_device(site, |device| get_offload(device, self.name.0))?;
        Ok(format!("{} {}", self.name, if on { Switch::On } else { Switch::Off }))
    }
}
