//! Pause frames of the path's device: whether the other end of the cable may pause this one, and how often it did. Not
//! tested on hardware. If the kernel does not count them, the area `driver` may.

use goodput_model::{Missing, Snapshot};
use goodput_netlink::parameters::{Pause, pause};
use goodput_netlink::pause_statistics::{PauseStatistics, pause_statistics};

use super::Source;
use crate::Context;
use crate::context::missing;

pub(super) struct PauseSource;

impl Source for PauseSource {
    fn id(&self) -> &'static str {
        "pause"
    }

    fn summary(&self) -> &'static str {
        "whether the path's device obeys and sends pause frames, and how many"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let device = context.device_name()?;
        put(snapshot, pause(&device).map_err(missing)?);
        frames(snapshot, pause_statistics(&device).map_err(missing));
        Ok(())
    }

    fn lasts(&self, name: &str) -> bool {
        ["autoneg", "rx", "tx"].contains(&name)
    }
}

fn put(snapshot: &mut Snapshot, pause: Pause) {
    for (name, on) in [("autoneg", pause.autoneg), ("rx", pause.rx), ("tx", pause.tx)] {
        snapshot.put(format!("pause.{name}"), if on { "on" } else { "off" });
    }
}

fn frames(snapshot: &mut Snapshot, counted: Result<PauseStatistics, Missing>) {
    let why = |name| format!("the driver does not count {name} pause frames");
    let (rx, tx) = match &counted {
        Ok(counted) => (
            counted.rx_frames.ok_or_else(|| why("received")),
            counted.tx_frames.ok_or_else(|| why("sent")),
        ),
        Err(error) => (Err(error.to_string()), Err(error.to_string())),
    };
    for (name, frames) in [("pause.rx_frames", rx), ("pause.tx_frames", tx)] {
        match frames {
            Ok(frames) => snapshot.put(name, frames),
            Err(why) => snapshot.lacks(name, why),
        }
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

    #[test]
    fn frames_that_nobody_counts_are_missing() {
        let mut snapshot = Snapshot::default();
        frames(&mut snapshot, Ok(PauseStatistics { rx_frames: Some(0), tx_frames: None }));
        assert_eq!(snapshot.count("pause.rx_frames"), Ok(0));
        assert!(snapshot.missing["pause.tx_frames"].contains("does not count sent"));
    }
}
