//! Rules of the packet filter in this network namespace that drop packets, and their counts. Reading them requires
//! CAP_NET_ADMIN. Rules of the older x_tables can't be read this way; the kernel shows only root whether any x_tables
//! tables exist.

use goodput_model::{Missing, Snapshot};
use goodput_netlink::packet_filter::{PacketFilter, packet_filter};

use super::Source;
use crate::Context;
use crate::context::missing;

/// Name of the count of what the rules dropped.
const DROPPED: &str = "dropped_packets";

pub(super) struct Nftables;

impl Source for Nftables {
    fn id(&self) -> &'static str {
        "nftables"
    }

    fn summary(&self) -> &'static str {
        "nf_tables rules that drop packets or limit their rate, and what they dropped"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, _context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        put(snapshot, packet_filter().map_err(missing)?);
        Ok(())
    }

    fn lasts(&self, name: &str) -> bool {
        name != DROPPED
    }
}

fn put(snapshot: &mut Snapshot, filter: PacketFilter) {
    snapshot.put("nftables.rules", filter.rules);
    snapshot.put("nftables.drop_rules", filter.drop_rules);
    snapshot.put("nftables.limit_rules", filter.limit_rules);
    snapshot.put("nftables.uncounted_drop_rules", filter.uncounted_drop_rules);
    if filter.drop_rules > 0 && filter.drop_rules == filter.uncounted_drop_rules {
        let why = "no rule that drops has a counter";
        snapshot.lacks(format!("nftables.{DROPPED}"), why);
    } else {
        snapshot.put(format!("nftables.{DROPPED}"), filter.dropped_packets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_that_nobody_counts_are_not_zero() {
        let mut snapshot = Snapshot::default();
        let filter =
            PacketFilter { rules: 2, drop_rules: 1, uncounted_drop_rules: 1, ..<_>::default() };
        put(&mut snapshot, filter);
        assert!(snapshot.count("nftables.dropped_packets").is_err());
        put(&mut snapshot, PacketFilter::default());
        assert_eq!(snapshot.count("nftables.dropped_packets"), Ok(0));
    }
}
