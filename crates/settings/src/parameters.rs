//! The rules of kernel parameters (`sysctl.…`), for hosts whose /proc/sys can't be seen from here.

use std::collections::BTreeSet;
use std::path::PathBuf;

use goodput_model::SettingRef;

use crate::error::SettingError;
pub use crate::machine::sysctl_documented::DOCUMENTED;
pub use crate::machine::sysctl_rules::OF_ALL_NAMESPACES;
use crate::machine::{sysctl, sysctl_couplings, sysctl_name, sysctl_rules};

/// The file of a parameter, below /proc/sys; it may not exist.
///
/// # Errors
/// When no parameter has this name.
pub fn path(setting: &SettingRef) -> Result<PathBuf, SettingError> {
    sysctl_name::path(setting)
}

/// The name of a setting in one spelling: that of a parameter with dots between the parts of its path.
#[must_use]
pub fn canonical(name: &str) -> String {
    sysctl_name::canonical(name)
}

/// Refuses a parameter that writing the old value back would not restore.
///
/// # Errors
/// With the effect of writing it.
pub fn check(setting: &SettingRef) -> Result<(), SettingError> {
    sysctl_rules::check(setting)
}

/// Refuses a value that no kernel takes or follows, as far as that is known; `value` has one space between its words.
///
/// # Errors
/// With the numbers that would do.
pub fn check_value(setting: &SettingRef, value: &str) -> Result<(), SettingError> {
    sysctl_rules::check_value(setting, value)
}

/// Whether a setting is a parameter that may belong to the whole host: such values can't be tried anywhere else, so only a
/// change shows whether the kernel takes them.
pub fn may_be_of_whole_host(setting: &SettingRef) -> bool {
    let name = sysctl_name::dotted(setting);
    name.is_some_and(|name| !["net.ipv4.", "net.ipv6."].iter().any(|area| name.starts_with(area)))
}

/// The value as the kernel prints it, one space between its words; `now` is the value now.
///
/// # Errors
/// When its form differs from the value now.
pub fn fitting(setting: &SettingRef, value: &str, now: &str) -> Result<String, SettingError> {
    sysctl::fitting(setting, value, now)
}

/// The parameters that the kernel alters along with `name`, a path below /proc/sys, as are the results. Those of single
/// devices are left out.
pub fn coupled(name: &str) -> BTreeSet<String> {
    sysctl_couplings::named(name)
}
