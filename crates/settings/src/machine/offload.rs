//! Switches an offload of a device on and off.

use goodput_model::SettingRef;
use goodput_netlink::{Features, NetlinkError, Offload, get_offload, set_offload};

use super::device;
use crate::error::{SettingError, from_netlink};
use crate::setting::Machine;
use crate::value;

/// Prefix of values from [`Machine::capture`], to distinguish them from the values `on` and `off`.
const REQUESTED: &str = "requested:";

/// The backend of one offload.
pub(crate) struct OffloadSwitch(pub(crate) Offload);

impl Machine for OffloadSwitch {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        device::index(&mut device::netlink(setting)?, setting)?;
        get_offload(device::name(setting), self.0)
            .map(|on| value::on_off(on).to_owned())
            .map_err(|e| from_netlink(setting, "read it", device::name(setting), e))
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let device = device::name(setting);
        let operation = format!("change it to {value:?}");
        let exactly = |wanted: &str| {
            let wanted: Vec<&str> = wanted.split(',').collect();
            Features::of(device)?.request_exactly(device, self.0.features(), &wanted)
        };
        let written = match value.strip_prefix(REQUESTED) {
            Some(wanted) => exactly(wanted),
            // All of them, because the kernel calls the offload on while any feature is.
            None if !value::switch(setting, value)? => exactly(""),
            None => set_offload(device, self.0, true),
        };
        written.map_err(|e| from_netlink(setting, operation, device, e))
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        value::switch(setting, value).map(|on| value::on_off(on).to_owned())
    }

    fn capture(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let device = device::name(setting);
        let requested =
            requested(device, self.0).map_err(|e| from_netlink(setting, "read it", device, e))?;
        Ok(format!("{REQUESTED}{}", requested.join(",")))
    }
}

/// Which features of `offload` were requested at `device`. One switch stands for several features, of which
/// a device may have some on and others off; switching off and on again would turn all of them on.
pub(crate) fn requested(device: &str, offload: Offload) -> Result<Vec<String>, NetlinkError> {
    let features = Features::of(device)?;
    let on = features.requested().filter(|(name, on)| *on && offload.features().contains(name));
    Ok(on.map(|(name, _)| name.to_owned()).collect())
}
