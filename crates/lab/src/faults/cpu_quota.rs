//! A quota on the CPU time of goodput's own process, as set by systemd's `CPUQuota=` and by Kubernetes.

use serde::Deserialize;

use super::{Fault, FaultTarget, Kind, PlantTime, Undo, read};
use crate::amount::{self, Percent};
use crate::cgroup::Group;
use crate::error::LabError;
use crate::host_name::HostName;
use crate::need::Need;

pub(super) const KIND: Kind = Kind {
    id: "cpu-quota",
    summary: "goodput in the host may use only this share of one CPU",
    example: "host = \"near\"\npercent = 20",
    read: read::<CpuQuota>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CpuQuota {
    host: HostName,
    #[serde(deserialize_with = "amount::required")]
    percent: Percent,
}

impl CpuQuota {
    fn failed(&self, why: impl Into<String>) -> LabError {
        LabError::Fault { kind: KIND.id, host: self.host.to_string(), why: why.into() }
    }

    fn pid(&self, site: FaultTarget<'_>) -> Result<u32, LabError> {
        site.pid.ok_or_else(|| self.failed("no goodput runs there; it runs only in near and far"))
    }
}

impl Fault for CpuQuota {
    fn host(&self) -> HostName {
        self.host
    }

    fn when(&self) -> PlantTime {
        PlantTime::ProcessRuns
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::CpuGroup]
    }

    fn plant(&self, site: FaultTarget<'_>) -> Result<Undo, LabError> {
        let group = Group::with_quota(self.percent.0, self.pid(site)?)
            .map_err(|error| self.failed(error.to_string()))?;
        Ok(Some(Box::new(group)))
    }

    fn read_back(&self, site: FaultTarget<'_>) -> Result<String, LabError> {
        crate::cgroup::quota_of(self.pid(site)?).map_err(|error| self.failed(error.to_string()))
    }
}
