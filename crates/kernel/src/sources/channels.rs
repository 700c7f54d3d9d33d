//! Channels of the path's device: how many queues have their own interrupt (`ETHTOOL_GCHANNELS`). A kind of channel
//! that the device does not support has no facts.

use goodput_model::{Missing, Snapshot};
use goodput_netlink::parameters::{Channels, channels};

use super::Source;
use crate::Context;
use crate::context::missing;

pub(super) struct ChannelsSource;

impl Source for ChannelsSource {
    fn id(&self) -> &'static str {
        "channels"
    }

    fn summary(&self) -> &'static str {
        "channels of the path's device for receiving, sending and both, with their maximum"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        put(snapshot, channels(&context.device_name()?).map_err(missing)?);
        Ok(())
    }

    fn lasts(&self, _name: &str) -> bool {
        true
    }
}

fn put(snapshot: &mut Snapshot, channels: Channels) {
    let kinds = [
        ("rx", channels.rx, channels.rx_max),
        ("tx", channels.tx, channels.tx_max),
        ("combined", channels.combined, channels.combined_max),
    ];
    for (kind, count, max) in kinds {
        if max == 0 && count == 0 {
            snapshot.lacks(format!("channels.{kind}"), "the device has no channels of this kind");
            continue;
        }
        snapshot.put(format!("channels.{kind}"), u64::from(count));
        snapshot.put(format!("channels.{kind}_max"), u64::from(max));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_channel_that_cannot_be_is_not_counted_as_zero() {
        let mut snapshot = Snapshot::default();
        put(&mut snapshot, Channels { combined: 2, combined_max: 8, rx_max: 4, ..<_>::default() });
        assert_eq!(snapshot.count("channels.combined"), Ok(2));
        assert_eq!(snapshot.count("channels.combined_max"), Ok(8));
        assert_eq!(snapshot.count("channels.rx"), Ok(0));
        assert!(snapshot.count("channels.tx").is_err());
    }
}
