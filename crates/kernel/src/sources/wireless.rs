//! Whether the path's device is a radio, and its signal (/sys/class/net/*/phy80211, /proc/net/wireless). No radio was
//! available.

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::Context;
use crate::device::directory;
use crate::parse::wireless;

/// Read per thread, because a thread may be in another network namespace than its process.
const FILE: &str = "proc/thread-self/net/wireless";

pub(super) struct Wireless;

impl Source for Wireless {
    fn id(&self) -> &'static str {
        "wireless"
    }

    fn summary(&self) -> &'static str {
        "whether the path's device is a radio, its signal, and frames it gave up sending"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let device = context.device_name()?;
        let phy = format!("{}/phy80211/name", directory(context)?);
        match context.root.read_if_there(&phy)? {
            Some(name) => snapshot.put("wireless.phy", name.trim()),
            None => return Err(Missing::because(format!("{device} is not a radio"))),
        }
        let text = context.root.read_if_there(FILE)?;
        let text = text.ok_or_else(|| "this kernel has no /proc/net/wireless".to_owned());
        let read = text.and_then(|t| wireless::parse(&t, &device).map_err(|e| e.to_string()));
        match read {
            Ok(Some(status)) => {
                snapshot.put("wireless.signal_dbm", status.signal_dbm);
                snapshot.put("wireless.retries_given_up", status.retries_given_up);
            }
            Ok(None) => snapshot.lacks("wireless.signal_dbm", "the driver does not report it"),
            Err(why) => snapshot.lacks("wireless.signal_dbm", why),
        }
        Ok(())
    }
}
