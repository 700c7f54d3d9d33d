//! A token bucket at the host's own device: a real tc-tbf(8).

use goodput_model::units::{BitRate, Bytes};
use goodput_netlink::{Qdisc, QdiscOptions, Tbf};
use serde::Deserialize;

use super::{Fault, FaultTarget, Kind, Undo, read};
use crate::amount;
use crate::error::LabError;
use crate::host_name::HostName;
use crate::limits::Limits;

pub(super) const KIND: Kind = Kind {
    id: "tbf",
    summary: "a token bucket shapes what the host sends",
    example: "host = \"near\"\nrate = \"1gbit\"\nburst = \"3000\"\nlimit = \"1M\"",
    read: read::<TokenBucket>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenBucket {
    host: HostName,
    #[serde(deserialize_with = "amount::rate")]
    rate: BitRate,
    #[serde(deserialize_with = "amount::required")]
    burst: Bytes,
    #[serde(deserialize_with = "amount::required")]
    limit: Bytes,
}

impl TokenBucket {
    fn bucket(&self) -> Result<Tbf, LabError> {
        let fit = |name, bytes: Bytes| {
            u32::try_from(bytes.0).map_err(|_| LabError::Fault {
                kind: KIND.id,
                host: self.host.to_string(),
                why: format!("{name} must be less than 4G"),
            })
        };
        let rate = (self.rate.0 / 8.0).max(1.0) as u64;
        Ok(Tbf::new(rate, fit("burst", self.burst)?, fit("limit", self.limit)?))
    }
}

impl Fault for TokenBucket {
    fn host(&self) -> HostName {
        self.host
    }

    fn limits(&self) -> Limits {
        let shapes = self.host != HostName::Far;
        Limits { rate: shapes.then_some(self.rate), ..Limits::default() }
    }

    fn plant(&self, site: FaultTarget<'_>) -> Result<Undo, LabError> {
        let (bucket, device) = (self.bucket()?, site.host.device());
        site.host.netlink(|netlink| {
            let index = netlink.link(device)?.index;
            netlink.replace_qdisc(&Qdisc::root_tbf(index, bucket))
        })?;
        Ok(None)
    }

    fn read_back(&self, site: FaultTarget<'_>) -> Result<String, LabError> {
        let device = site.host.device();
        let qdiscs = site.host.netlink(|netlink| {
            let index = netlink.link(device)?.index;
            netlink.qdiscs(index)
        })?;
        Ok(match qdiscs.first().map(|qdisc| &qdisc.options) {
            Some(QdiscOptions::Tbf(tbf)) => format!(
                "tbf rate {} burst {} limit {}",
                tbf.rate_bytes_per_s, tbf.burst_bytes, tbf.limit_bytes
            ),
            _ => "no tbf".into(),
        })
    }
}
