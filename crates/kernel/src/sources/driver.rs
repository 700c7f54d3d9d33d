//! What the driver of the path's device counted beyond the standard device counters (`ETHTOOL_GSTATS`), under common
//! names.
//!
//! Counters under a driver's own name (`driver.other.NAME`) are recorded only when they are not 0: if the earlier of
//! two snapshots does not have a counter, it was 0 then.

use goodput_model::{Missing, Snapshot};
use goodput_netlink::statistics::statistics;

use super::Source;
use crate::Context;
use crate::context::missing;
use crate::parse::driver_counters::{DriverCounters, sort};

pub(super) struct Driver;

impl Source for Driver {
    fn id(&self) -> &'static str {
        "driver"
    }

    fn summary(&self) -> &'static str {
        "drops, errors and pause frames that the driver counted, under common names"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let device = context.device_name()?;
        let counters = statistics(&device).map_err(missing)?;
        if counters.is_empty() {
            return Err(Missing::because(format!("the driver of {device} has no counters")));
        }
        put(snapshot, sort(&counters));
        Ok(())
    }
}

fn put(snapshot: &mut Snapshot, counters: DriverCounters) {
    for (name, value) in counters.common {
        snapshot.put(format!("driver.{name}"), value);
    }
    for (name, value) in counters.others {
        snapshot.put(format!("driver.other.{name}"), value);
    }
    let queues =
        [("rx_queue_drops", counters.rx_queue_drops), ("tx_queue_drops", counters.tx_queue_drops)];
    for (name, sum) in queues {
        if let Some(sum) = sum {
            snapshot.put(format!("driver.{name}"), sum);
        }
    }
    if counters.left_out > 0 {
        let why = format!("{} more non-zero counters are not recorded", counters.left_out);
        snapshot.lacks("driver.other", why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_does_not_count_is_missing_and_not_zero() {
        let mut snapshot = Snapshot::default();
        put(&mut snapshot, sort(&[("rx_missed_errors".into(), 0), ("rx_queue_0_drops".into(), 2)]));
        assert_eq!(snapshot.count("driver.rx_missed"), Ok(0));
        assert_eq!(snapshot.count("driver.rx_queue_drops"), Ok(2));
        assert!(snapshot.count("driver.rx_pause").is_err());
    }
}
