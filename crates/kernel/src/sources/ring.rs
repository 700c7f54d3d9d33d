//! Rings of the path's device: the buffers between it and the driver (`ETHTOOL_GRINGPARAM`). Tested on virtio hardware;
//! veth and the loopback device have none.

use goodput_model::{Missing, Snapshot};
use goodput_netlink::parameters::{Rings, rings};

use super::Source;
use crate::Context;
use crate::context::missing;

pub(super) struct Ring;

impl Source for Ring {
    fn id(&self) -> &'static str {
        "ring"
    }

    fn summary(&self) -> &'static str {
        "receive and transmit rings of the path's device, in frames, with their maximum"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let rings = rings(&context.device_name()?).map_err(missing)?;
        put(snapshot, rings);
        Ok(())
    }

    fn lasts(&self, _name: &str) -> bool {
        true
    }
}

fn put(snapshot: &mut Snapshot, rings: Rings) {
    let all = [
        ("rx_frames", rings.rx),
        ("rx_max_frames", rings.rx_max),
        ("tx_frames", rings.tx),
        ("tx_max_frames", rings.tx_max),
    ];
    for (name, frames) in all {
        let name = format!("ring.{name}");
        match frames {
            0 => snapshot.lacks(name, "the driver says 0"),
            frames => snapshot.put(name, u64::from(frames)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_of_zero_frames_is_none() {
        let mut snapshot = Snapshot::default();
        put(&mut snapshot, Rings { rx: 256, rx_max: 4096, tx: 0, tx_max: 0 });
        assert_eq!(snapshot.count("ring.rx_frames"), Ok(256));
        assert_eq!(snapshot.count("ring.rx_max_frames"), Ok(4096));
        assert!(snapshot.count("ring.tx_frames").is_err());
    }
}
