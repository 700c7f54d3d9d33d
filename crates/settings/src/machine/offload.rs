//! Switches an offload of a device on and off.

use goodput_model::SettingRef;
use goodput_netlink::{Offload, get_offload, set_offload};

use super::device;
use super::features;
use crate::error::{SettingError, from_io, from_netlink};
use crate::setting::Machine;
use crate::value;

/// How [`Machine::capture`] begins, to tell it from the values `on` and `off`.
const REQUESTED: &str = "requested:";

/// The backend of one offload.
pub(crate) struct OffloadSwitch {
    /// Which one.
    pub(crate) offload: Offload,
    /// The kernel's features that it stands for (net/ethtool/common.c `netdev_features_strings`).
    pub(crate) features: &'static [&'static str],
}

impl Machine for OffloadSwitch {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        device::index(&mut device::netlink(setting)?, setting)?;
        get_offload(device::name(setting), self.offload)
            .map(|on| value::on_off(on).to_owned())
            .map_err(|e| from_netlink(setting, "read it", device::name(setting), e))
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let device = device::name(setting);
        let operation = format!("change it to {value:?}");
        let exactly = |wanted: &str| {
            let wanted: Vec<&str> = wanted.split(',').collect();
            features::request(device, self.features, &wanted)
        };
        let written = match value.strip_prefix(REQUESTED) {
            Some(wanted) => exactly(wanted),
            // All of them, as the kernel calls the offload on while any is.
            None if !value::switch(setting, value)? => exactly(""),
            None => {
                return set_offload(device, self.offload, true)
                    .map_err(|e| from_netlink(setting, operation, device, e));
            }
        };
        written.map_err(|e| from_io(setting, operation, device, e))
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        value::switch(setting, value).map(|on| value::on_off(on).to_owned())
    }

    fn capture(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let device = device::name(setting);
        let requested = features::requested(device, self.features)
            .map_err(|e| from_io(setting, "read it", device, e))?;
        Ok(format!("{REQUESTED}{}", requested.join(",")))
    }
}
