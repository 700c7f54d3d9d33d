//! Offloads of the path's device, "on" or "off".

use goodput_model::{Missing, Snapshot};
use goodput_netlink::{Offload, get_offload};

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
        for offload in Offload::ALL {
            let name = format!("offload.{offload}");
            match get_offload(&device, offload) {
                Ok(on) => snapshot.put(name, if on { "on" } else { "off" }),
                Err(error) => snapshot.lacks(name, error.to_string()),
            }
        }
        Ok(())
    }
}
