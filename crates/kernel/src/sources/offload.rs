//! Offloads of the path's device, "on" or "off".

use goodput_model::{Missing, Snapshot};
use goodput_netlink::{Features, Offload};

use super::Source;
use crate::Context;

pub(super) struct OffloadSource;

impl Source for OffloadSource {
    fn id(&self) -> &'static str {
        "offload"
    }

    fn summary(&self) -> &'static str {
        "segmentation, receive and checksum offloads of the path's device"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let device = context.device_name()?;
        let features = Features::of(&device).map_err(|error| error.to_string());
        for offload in Offload::ALL {
            let name = format!("offload.{offload}");
            match &features {
                Ok(features) => {
                    snapshot.put(name, if features.has(offload) { "on" } else { "off" })
                }
                Err(why) => snapshot.lacks(name, why.as_str()),
            }
        }
        Ok(())
    }

    fn lasts(&self, _name: &str) -> bool {
        true
    }
}
