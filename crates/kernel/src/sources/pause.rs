//! Pause frames of the path's device (`ETHTOOL_GPAUSEPARAM`): whether the other end of the cable
//! may stop us. Not run on hardware. How many came and went is in the area `driver`.

use goodput_model::{Missing, Snapshot};
use goodput_netlink::parameters::{Pause, pause};

use super::Source;
use crate::Context;
use crate::context::missing;

pub(super) struct PauseSource;

impl Source for PauseSource {
    fn id(&self) -> &'static str {
        "pause"
    }

    fn summary(&self) -> &'static str {
        "whether the path's device heeds and sends pause frames"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        put(snapshot, pause(&context.device_name()?).map_err(missing)?);
        Ok(())
    }
}

fn put(snapshot: &mut Snapshot, pause: Pause) {
    for (name, on) in [("autoneg", pause.autoneg), ("rx", pause.rx), ("tx", pause.tx)] {
        snapshot.put(format!("pause.{name}"), if on { "on" } else { "off" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_switch_is_noted_by_its_name() {
        let mut snapshot = Snapshot::default();
        put(&mut snapshot, Pause { autoneg: true, rx: true, tx: false });
        assert_eq!(snapshot.text("pause.rx"), Ok("on"));
        assert_eq!(snapshot.text("pause.tx"), Ok("off"));
        assert_eq!(snapshot.text("pause.autoneg"), Ok("on"));
    }
}
