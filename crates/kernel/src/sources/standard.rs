//! Counters of the path's device that the Ethernet standards define (`ETHTOOL_MSG_STATS_GET`, Linux 5.13 and later). No
//! available device supports them.

use goodput_model::{Missing, Snapshot};
use goodput_netlink::standard_statistics::standard_statistics;

use super::Source;
use crate::Context;
use crate::context::missing;

pub(super) struct Standard;

impl Source for Standard {
    fn id(&self) -> &'static str {
        "standard"
    }

    fn summary(&self) -> &'static str {
        "errors, collisions and pauses of the path's device as IEEE 802.3 and RMON define them"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let device = context.device_name()?;
        let counters = standard_statistics(&device).map_err(missing)?;
        if counters.is_empty() {
            let why = format!("the driver of {device} has no standard counters");
            return Err(Missing::because(why));
        }
        for (name, value) in counters {
            snapshot.put(format!("standard.{name}"), value);
        }
        Ok(())
    }
}
