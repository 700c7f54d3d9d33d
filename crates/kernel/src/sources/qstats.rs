//! Queue counters of the path's device under the kernel's common names for all drivers (netdev-genl, Linux 6.9 and
//! later): sums over the queues, and how many packets each received.

use std::collections::BTreeMap;

use goodput_model::{Missing, Snapshot};
use goodput_netlink::Netlink;
use goodput_netlink::queue_statistics::{QueueStatistics, queue_statistics};

use super::Source;
use crate::Context;
use crate::context::missing;

/// Most queues that are recorded individually.
const MAX_QUEUES: u32 = 64;

pub(super) struct Qstats;

impl Source for Qstats {
    fn id(&self) -> &'static str {
        "qstats"
    }

    fn summary(&self) -> &'static str {
        "packets and drops of the queues of the path's device, under names common to all drivers"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let device = context.device_name()?;
        let index = Netlink::open().and_then(|mut n| n.link(&device)).map_err(missing)?.index;
        let queues = queue_statistics(index).map_err(missing)?;
        if queues.is_empty() {
            let why =
                format!("the driver of {device} does not report queue counters to the kernel");
            return Err(Missing::because(why));
        }
        put(snapshot, &queues);
        Ok(())
    }
}

fn put(snapshot: &mut Snapshot, queues: &[QueueStatistics]) {
    let mut sums = BTreeMap::<&str, u64>::new();
    for queue in queues {
        for (name, value) in &queue.counters {
            let sum = sums.entry(name).or_default();
            *sum = sum.saturating_add(*value);
            if *name == "rx_packets" && !queue.sends && queue.id < MAX_QUEUES {
                snapshot.put(format!("qstats.rx_packets.{}", queue.id), *value);
            }
        }
    }
    let receiving = queues.iter().filter(|queue| !queue.sends).count();
    snapshot.put("qstats.rx_queues", receiving as u64);
    for (name, sum) in sums {
        snapshot.put(format!("qstats.{name}"), sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_add_up_and_what_none_counts_is_missing() {
        let queue =
            |sends, id, counters: &[_]| QueueStatistics { sends, id, counters: counters.to_vec() };
        let mut snapshot = Snapshot::default();
        put(
            &mut snapshot,
            &[
                queue(false, 0, &[("rx_packets", 5), ("rx_hw_drop_overruns", 1)]),
                queue(false, 1, &[("rx_packets", 95), ("rx_hw_drop_overruns", 2)]),
                queue(true, 0, &[("tx_stop", 4)]),
            ],
        );
        assert_eq!(snapshot.count("qstats.rx_queues"), Ok(2));
        assert_eq!(snapshot.count("qstats.rx_packets"), Ok(100));
        assert_eq!(snapshot.count("qstats.rx_packets.1"), Ok(95));
        assert_eq!(snapshot.count("qstats.rx_hw_drop_overruns"), Ok(3));
        assert!(snapshot.count("qstats.rx_alloc_fail").is_err());
    }
}
