//! Reads and writes how a device is polled after an interrupt
//! (Documentation/networking/napi.rst).

use goodput_model::SettingRef;

use super::sysfs;
use crate::error::SettingError;
use crate::setting::Machine;
use crate::value;

/// The backend of a number.
pub(crate) struct NapiNumber {
    attribute: &'static str,
    largest: u64,
}

/// How often a poll that found nothing may pass before interrupts are on again.
pub(crate) static DEFER_HARD_IRQS: NapiNumber =
    NapiNumber { attribute: "napi_defer_hard_irqs", largest: i32::MAX as u64 };

/// How long after a poll the next is made by a timer, nanoseconds; an hour at most.
pub(crate) static GRO_FLUSH_TIMEOUT: NapiNumber =
    NapiNumber { attribute: "gro_flush_timeout", largest: 3_600_000_000_000 };

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
