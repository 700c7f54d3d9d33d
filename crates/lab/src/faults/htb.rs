//! Two classes at the host's own device. The flows pass the slow one, because no filter takes them to the other: a real
//! tc-htb(8).

use goodput_model::units::{BitRate, Bytes};
use goodput_netlink::{HtbClass, Qdisc, handle_text};
use serde::Deserialize;

use super::{Fault, FaultTarget, Kind, Undo, read};
use crate::amount;
use crate::error::LabError;
use crate::host_name::HostName;
use crate::limits::Limits;

pub(super) const KIND: Kind = Kind {
    id: "htb",
    summary: "a shaper with two classes, whose default is the slower one",
    example: "host = \"near\"\nrate = \"1gbit\"\ndefault_rate = \"20mbit\"\nburst = \"125KB\"",
    read: read::<TwoClasses>,
};

/// Handle of the qdisc, and of its two classes.
const ROOT: u32 = 0x1_0000;
const FAST: u32 = ROOT + 10;
const DEFAULT: u32 = ROOT + 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TwoClasses {
    host: HostName,
    #[serde(deserialize_with = "amount::rate")]
    rate: BitRate,
    #[serde(deserialize_with = "amount::rate")]
    default_rate: BitRate,
    #[serde(deserialize_with = "amount::required")]
    burst: Bytes,
}

impl TwoClasses {
    fn class(&self, rate: BitRate) -> Result<HtbClass, LabError> {
        let burst = u32::try_from(self.burst.0).map_err(|_| LabError::Fault {
            kind: KIND.id,
            host: self.host.to_string(),
            why: "burst must be less than 4G".into(),
        })?;
        let rate = (rate.0 / 8.0).max(1.0) as u64;
        Ok(HtbClass::new(rate, rate, burst, burst))
    }
}

impl Fault for TwoClasses {
    fn host(&self) -> HostName {
        self.host
    }

    fn limits(&self) -> Limits {
        let shapes = self.host != HostName::Far;
        Limits { rate: shapes.then_some(self.default_rate), ..Limits::default() }
    }

    fn plant(&self, site: FaultTarget<'_>) -> Result<Undo, LabError> {
        let (fast, slow) = (self.class(self.rate)?, self.class(self.default_rate)?);
        let device = site.host.device();
        site.host.netlink(|netlink| {
            let index = netlink.link(device)?.index;
            netlink.replace_qdisc(&Qdisc::root_htb(index, ROOT, DEFAULT))?;
            netlink.replace_htb_class(index, FAST, ROOT, &fast)?;
            netlink.replace_htb_class(index, DEFAULT, ROOT, &slow)
        })?;
        Ok(None)
    }

    fn read_back(&self, site: FaultTarget<'_>) -> Result<String, LabError> {
        let device = site.host.device();
        let classes = site.host.netlink(|netlink| {
            let index = netlink.link(device)?.index;
            netlink.classes(index)
        })?;
        let rates = classes.iter().filter_map(|class| {
            let htb = class.htb?;
            Some(format!("htb {} rate {}", handle_text(class.handle), htb.rate_bytes_per_s))
        });
        Ok(rates.collect::<Vec<_>>().join(", "))
    }
}
