//! Energy-efficient Ethernet of the path's link (`ETHTOOL_MSG_EEE_GET`, Linux 5.10 and later): a link that sleeps wakes
//! up late. No available device supports it.

use goodput_model::{Missing, Snapshot};
use goodput_netlink::line_care::{Eee, eee};

use super::Source;
use crate::Context;
use crate::context::missing;

pub(super) struct EeeSource;

impl Source for EeeSource {
    fn id(&self) -> &'static str {
        "eee"
    }

    fn summary(&self) -> &'static str {
        "whether the path's link may sleep between frames, and after how long"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        put(snapshot, eee(&context.device_name()?).map_err(missing)?);
        Ok(())
    }

    fn lasts(&self, _name: &str) -> bool {
        true
    }
}

fn put(snapshot: &mut Snapshot, eee: Eee) {
    for (name, flag) in [("eee.enabled", eee.enabled), ("eee.active", eee.active)] {
        match flag {
            Some(on) => snapshot.put(name, if on { "on" } else { "off" }),
            None => snapshot.lacks(name, "the driver does not report it"),
        }
    }
    match eee.tx_timer_us {
        Some(us) => snapshot.put("eee.tx_timer_us", us),
        None => snapshot.lacks("eee.tx_timer_us", "the driver does not report it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_words_and_what_is_not_reported_is_missing() {
        let mut snapshot = Snapshot::default();
        put(&mut snapshot, Eee { enabled: Some(true), active: None, tx_timer_us: Some(17) });
        assert_eq!(snapshot.text("eee.enabled"), Ok("on"));
        assert!(snapshot.text("eee.active").is_err());
        assert_eq!(snapshot.count("eee.tx_timer_us"), Ok(17));
    }
}
