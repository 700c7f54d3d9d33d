//! Values that no file of the system itself can express: goodput's unit sets them at boot.

use goodput_model::{Permanent, SettingRef};

use super::entry;
use crate::saved::keeping::BOOT_UNIT;

/// What the unit does. A value that means "not set" goes the same way as any other, so that the setting is taken away
/// and not given a number.
pub(crate) fn at_boot(setting: &SettingRef, value: &str) -> Permanent {
    entry(BOOT_UNIT, format!("goodput settings set {setting}={value}"))
}
