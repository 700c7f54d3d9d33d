//! Switches the header split of a device, and sets its threshold.

use goodput_model::SettingRef;
use goodput_netlink::NetlinkError;
use goodput_netlink::header_split::{
    HeaderSplit, header_split, set_header_split, set_header_split_threshold,
};

use super::device;
use crate::error::{SettingError, from_netlink};
use crate::setting::Machine;
use crate::value;

/// The backend of the switch.
pub(crate) struct HeaderSplitSwitch;

/// The backend of the threshold.
pub(crate) struct HeaderSplitThreshold;

impl Machine for HeaderSplitSwitch {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let on = state(setting)?.on.ok_or_else(|| lacks(setting, "read it"))?;
        Ok(value::on_off(on).to_owned())
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let on = value::switch(setting, value)?;
        set_header_split(device::name(setting), on)
            .map_err(|error| failed(setting, &format!("change it to {value:?}"), error))
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        value::switch(setting, value).map(|on| value::on_off(on).to_owned())
    }
}

impl Machine for HeaderSplitThreshold {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let bytes = state(setting)?.threshold.ok_or_else(|| lacks(setting, "read it"))?;
        Ok(bytes.to_string())
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let bytes = value::number(setting, value, &(0..=u32::MAX))?;
        set_header_split_threshold(device::name(setting), bytes)
            .map_err(|error| failed(setting, &format!("change it to {value:?}"), error))
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        // A driver without a threshold refuses it with its own error.
        let most = state(setting).ok().and_then(|state| state.most).unwrap_or(u32::MAX);
        value::number(setting, value, &(0..=most)).map(|bytes| bytes.to_string())
    }
}

fn state(setting: &SettingRef) -> Result<HeaderSplit, SettingError> {
    device::index(&mut device::netlink(setting)?, setting)?;
    header_split(device::name(setting)).map_err(|error| failed(setting, "read it", error))
}

fn failed(setting: &SettingRef, operation: &str, error: NetlinkError) -> SettingError {
    if error.not_supported() {
        return lacks(setting, operation);
    }
    from_netlink(setting, operation, device::name(setting), error)
}

fn lacks(setting: &SettingRef, operation: &str) -> SettingError {
    let device = device::name(setting);
    SettingError::Refused {
        operation: operation.into(),
        setting: setting.clone(),
        cause: format!(
            "the driver of {device} or this kernel does not support it (the split needs Linux 6.4, the threshold 6.14)"
        )
        .into(),
    }
}
