//! Interrupt coalescing of the path's device (`ETHTOOL_GCOALESCE`): how long a frame may wait before the host is
//! interrupted. Not tested on hardware with adaptive coalescing.

use goodput_model::{Missing, Snapshot};
use goodput_netlink::parameters::{Coalescing, coalescing};

use super::Source;
use crate::Context;
use crate::context::missing;

pub(super) struct CoalescingSource;

impl Source for CoalescingSource {
    fn id(&self) -> &'static str {
        "coalescing"
    }

    fn summary(&self) -> &'static str {
        "interrupt coalescing of the path's device: time and frames"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        put(snapshot, coalescing(&context.device_name()?).map_err(missing)?);
        Ok(())
    }

    fn lasts(&self, _name: &str) -> bool {
        true
    }
}

/// The structure can't express "unknown": a driver without a parameter leaves it 0, and a wait of 0 with 0 frames
/// would mean that no interrupt ever comes.
fn put(snapshot: &mut Snapshot, coalescing: Coalescing) {
    let sides = [
        ("rx", coalescing.rx_us, coalescing.rx_frames, coalescing.adaptive_rx),
        ("tx", coalescing.tx_us, coalescing.tx_frames, coalescing.adaptive_tx),
    ];
    for (side, us, frames, adaptive) in sides {
        snapshot.put(format!("coalescing.{side}_adaptive"), if adaptive { "on" } else { "off" });
        if us == 0 && frames == 0 {
            let why = "the driver reports neither a time nor a number of frames";
            snapshot.lacks(format!("coalescing.{side}_us"), why);
            snapshot.lacks(format!("coalescing.{side}_frames"), why);
            continue;
        }
        snapshot.put(format!("coalescing.{side}_us"), u64::from(us));
        snapshot.put(format!("coalescing.{side}_frames"), u64::from(frames));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_that_says_nothing_is_missing() {
        let mut snapshot = Snapshot::default();
        put(&mut snapshot, Coalescing { rx_us: 50, adaptive_rx: true, ..Coalescing::default() });
        assert_eq!(snapshot.text("coalescing.rx_adaptive"), Ok("on"));
        assert_eq!(snapshot.count("coalescing.rx_us"), Ok(50));
        assert_eq!(snapshot.count("coalescing.rx_frames"), Ok(0));
        assert!(snapshot.count("coalescing.tx_us").is_err());
        assert_eq!(snapshot.text("coalescing.tx_adaptive"), Ok("off"));
    }
}
