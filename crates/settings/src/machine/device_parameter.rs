//! Reads and writes one parameter of a device's driver: rings, channels, coalescing, pause frames
//! (ethtool(8)).

use std::ops::RangeInclusive;

use goodput_model::SettingRef;
use goodput_netlink::NetlinkError;
use goodput_netlink::parameters::{self, Parameter, get_parameter, set_parameter};

use super::device;
use crate::error::{SettingError, from_netlink};
use crate::setting::Machine;
use crate::value;

/// The backend of one number of a driver.
pub(crate) struct DeviceNumber {
    /// Which parameter.
    pub(crate) parameter: Parameter,
    /// Its range; the driver has limits of its own.
    pub(crate) range: RangeInclusive<u32>,
}

/// The backend of one switch of a driver.
pub(crate) struct DeviceSwitch(pub(crate) Parameter);

impl Machine for DeviceNumber {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        read(setting, self.parameter).map(|number| number.to_string())
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        write(setting, self.parameter, value, value::number(setting, value, &self.range)?)
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        let number = value::number(setting, value, &self.range)?;
        match most(setting, self.parameter).filter(|most| number > *most) {
            Some(0) => {
                let why =
                    format!("the driver of {} has none, and takes 0 alone", device::name(setting));
                let operation = format!("change it to {value:?}");
                Err(SettingError::Refused {
                    operation,
                    setting: setting.clone(),
                    cause: why.into(),
                })
            }
            Some(most) => {
                let why = format!("{} takes at most {most}", device::name(setting));
                Err(value::bad(setting, value, why))
            }
            None => Ok(number.to_string()),
        }
    }
}

/// The device's maximum, if its driver reports one.
fn most(setting: &SettingRef, parameter: Parameter) -> Option<u32> {
    let (device, rings, channels) =
        (device::name(setting), parameters::rings, parameters::channels);
    // A driver without such a ring or channel reports 0, and the kernel takes no more than what is reported
    // (`ethtool_set_ringparam` and `ethtool_set_channels`, net/ethtool/ioctl.c).
    Some(match parameter {
        Parameter::RingRx => rings(device).ok()?.rx_max,
        Parameter::RingTx => rings(device).ok()?.tx_max,
        Parameter::ChannelsRx => channels(device).ok()?.rx_max,
        Parameter::ChannelsTx => channels(device).ok()?.tx_max,
        Parameter::ChannelsCombined => channels(device).ok()?.combined_max,
        _ => return None,
    })
}

impl Machine for DeviceSwitch {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        read(setting, self.0).map(|word| value::on_off(word != 0).to_owned())
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        write(setting, self.0, value, value::switch(setting, value)?.into())
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        value::switch(setting, value).map(|on| value::on_off(on).to_owned())
    }
}

fn read(setting: &SettingRef, parameter: Parameter) -> Result<u32, SettingError> {
    device::index(&mut device::netlink(setting)?, setting)?;
    get_parameter(device::name(setting), parameter).map_err(|e| failed(setting, "read it", e))
}

fn write(
    setting: &SettingRef,
    parameter: Parameter,
    value: &str,
    word: u32,
) -> Result<(), SettingError> {
    set_parameter(device::name(setting), parameter, word)
        .map_err(|e| failed(setting, &format!("change it to {value:?}"), e))
}

fn failed(setting: &SettingRef, operation: &str, error: NetlinkError) -> SettingError {
    if error.not_supported() {
        return SettingError::Refused {
            operation: operation.into(),
            setting: setting.clone(),
            cause: format!("the driver of {} does not support it", device::name(setting)).into(),
        };
    }
    from_netlink(setting, operation, device::name(setting), error)
}

#[cfg(test)]
mod tests {
    use goodput_testing::in_namespace;

    use crate::lookup::machine;

    #[test]
    fn channels_that_a_driver_lacks_are_refused_before_anything_changes() {
        in_namespace(|| {
            let words = ["link", "add", "v0", "type", "veth", "peer", "name", "v1"];
            assert!(std::process::Command::new("ip").args(words).status().unwrap().success());
            let refused = |name: &str, value| {
                let setting = name.parse().unwrap();
                machine(&setting).unwrap().normalise(&setting, value).unwrap_err().to_string()
            };
            let combined = refused("channels.combined@v0", "5");
            assert!(combined.contains("the driver of v0 has none"), "{combined}");
            let receiving = refused("channels.rx@v0", "4096");
            assert!(receiving.contains("v0 takes at most "), "{receiving}");
        });
    }
}
