//! Says what the kernel made of a number, here or on a host by SSH.

use goodput_model::SettingRef;
use goodput_settings::value::is_rounded;

use crate::screen;

/// Says if the kernel made another number of a value.
pub fn warn(setting: &SettingRef, value: &str, effective: &str) {
    if is_rounded(value, effective) {
        screen::say(format_args!("{setting}={value}: the kernel made it {effective}"));
    }
}
