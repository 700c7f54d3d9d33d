//! Reads and writes how a device is polled after an interrupt
//! (Documentation/networking/napi.rst).

use goodput_model::SettingRef;
use goodput_netlink::napis::{Napi, NapiNumber as Number, napis, set_napi};

use super::{device, sysfs};
use crate::error::{SettingError, from_netlink};
use crate::polled::{LONGEST_NS, MOST_EMPTY_POLLS};
use crate::setting::Machine;
use crate::{each, value};

/// The backend of a number.
pub(crate) struct NapiNumber {
    attribute: &'static str,
    largest: u64,
}

/// How many polls may find nothing before interrupts are enabled again.
pub(crate) static DEFER_HARD_IRQS: NapiNumber =
    NapiNumber { attribute: "napi_defer_hard_irqs", largest: MOST_EMPTY_POLLS };

/// Time from one poll to the next by a timer, nanoseconds.
pub(crate) static GRO_FLUSH_TIMEOUT: NapiNumber =
    NapiNumber { attribute: "gro_flush_timeout", largest: LONGEST_NS };

impl Machine for NapiNumber {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        sysfs::read(setting, self.attribute)
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        sysfs::write(setting, self.attribute, value)
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        value::number(setting, value, &(0..=self.largest)).map(|number| number.to_string())
    }
}

/// The backend of `napi.threaded`.
pub(crate) struct Threaded;

const THREADED: &str = "threaded";

impl Machine for Threaded {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let number = sysfs::read(setting, THREADED)?;
        Ok(match number.as_str() {
            "0" => value::on_off(false).into(),
            "1" => value::on_off(true).into(),
            _ => number,
        })
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let number = match value {
            "on" => "1",
            "off" => "0",
            other => other,
        };
        sysfs::write(setting, THREADED, number)
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        value::switch(setting, value).map(|on| value::on_off(on).to_owned())
    }
}

/// The backend of `napi.irq_suspend_timeout`: one number if all NAPI instances have the same, otherwise one each,
/// separated by spaces.
pub(crate) struct IrqSuspendTimeout;

impl Machine for IrqSuspendTimeout {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let numbers: Option<Vec<u64>> =
            instances(setting)?.iter().map(|napi| napi.irq_suspend_timeout_ns).collect();
        let numbers = numbers.filter(|numbers| !numbers.is_empty()).ok_or_else(|| {
            let cause =
                format!("{} is not polled, or this kernel has no such time", device::name(setting));
            let operation = "read it".into();
            SettingError::Refused { operation, setting: setting.clone(), cause: cause.into() }
        })?;
        Ok(each::joined(numbers.iter().map(u64::to_string).collect()))
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        for (place, napi) in instances(setting)?.iter().enumerate() {
            let Some(number) = each::own(value, place).and_then(|text| text.parse().ok()) else {
                continue;
            };
            #[cfg(test)]
            crate::testing::step();
            set_napi(napi.id, Number::IrqSuspendTimeoutNs, number).map_err(|e| {
                from_netlink(setting, format!("change it to {value:?}"), device::name(setting), e)
            })?;
        }
        Ok(())
    }

    fn is_between(&self, now: &str, values: &[&str]) -> bool {
        each::is_between(now, values)
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        value::number(setting, value, &(0..=LONGEST_NS)).map(|number| number.to_string())
    }
}

/// How each NAPI instance of the device is polled; empty if this kernel does not report it.
pub(super) fn instances(setting: &SettingRef) -> Result<Vec<Napi>, SettingError> {
    let index = device::index(&mut device::netlink(setting)?, setting)?;
    match napis(index) {
        Ok(found) => Ok(found),
        Err(error) if error.not_supported() || error.not_found() => Ok(Vec::new()),
        Err(error) => Err(from_netlink(setting, "read it", device::name(setting), error)),
    }
}
