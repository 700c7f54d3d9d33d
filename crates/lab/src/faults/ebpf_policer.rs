//! A policer as an eBPF program at the host's device: frames beyond a rate that it receives are dropped, and a bucket in
//! bytes says how many may come at once.
//!
//! A super-packet counts with all its bytes, and is dropped whole: on a link that carries them, switch `tso` and `gso`
//! off at the sender.

use goodput_model::units::{BitRate, Bytes};
use serde::Deserialize;

use super::{Fault, FaultTarget, Kind, Undo, read};
use crate::amount;
use crate::bpf::{self, Bucket};
use crate::error::LabError;
use crate::host_name::HostName;
use crate::limits::Limits;
use crate::need::Need;

pub(super) const KIND: Kind = Kind {
    id: "ebpf-policer",
    summary: "an eBPF program drops what the host receives above a rate",
    example: "host = \"far\"\nrate = \"100mbit\"\nburst = \"30KB\"",
    read: read::<EbpfPolicer>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EbpfPolicer {
    host: HostName,
    #[serde(deserialize_with = "amount::rate")]
    rate: BitRate,
    #[serde(deserialize_with = "amount::required")]
    burst: Bytes,
}

impl EbpfPolicer {
    /// Talks about the device that faces near, in the host's namespace.
    fn at_device<T: Send>(
        &self,
        site: FaultTarget<'_>,
        talk: impl FnOnce(u32) -> std::io::Result<T> + Send,
    ) -> Result<T, LabError> {
        let failed =
            |why: String| LabError::Fault { kind: KIND.id, host: self.host.to_string(), why };
        let port = site.host.ports().first().ok_or_else(|| failed("it has no device".into()))?;
        let index = site.host.netlink(|netlink| netlink.link(&port.device))?.index;
        site.host.within(|| talk(index))?.map_err(|error| failed(error.to_string()))
    }
}

impl Fault for EbpfPolicer {
    fn host(&self) -> HostName {
        self.host
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Ebpf]
    }

    fn limits(&self) -> Limits {
        let polices = self.host != HostName::Near;
        Limits { rate: polices.then_some(self.rate), ..Limits::default() }
    }

    fn plant(&self, site: FaultTarget<'_>) -> Result<Undo, LabError> {
        let bucket = Bucket { bits_per_s: self.rate.0, bytes: self.burst.0 };
        let link = self.at_device(site, |index| bpf::police(index, bucket))?;
        Ok(Some(Box::new(link)))
    }

    fn read_back(&self, site: FaultTarget<'_>) -> Result<String, LabError> {
        let count = self.at_device(site, bpf::policers)?;
        Ok(format!("{count} programs"))
    }
}
