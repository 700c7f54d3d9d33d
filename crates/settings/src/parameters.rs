//! The rules of kernel parameters (`sysctl.…`), for hosts whose /proc/sys can't be seen from here.

use std::collections::BTreeSet;
use std::path::PathBuf;

use goodput_model::SettingRef;

use crate::error::SettingError;
use crate::machine::{sysctl, sysctl_couplings, sysctl_name, sysctl_rules};

/// The file of a parameter, below /proc/sys; it may not exist.
///
/// # Errors
/// When it is the name of no parameter.
pub fn path(setting: &SettingRef) -> Result<PathBuf, SettingError> {
    sysctl_name::path(setting)
}

/// Refuses a parameter that writing the old value back would not make as it was.
///
/// # Errors
/// With what writing it does.
pub fn check(setting: &SettingRef) -> Result<(), SettingError> {
    sysctl_rules::check(setting)
}

/// The value as the kernel prints it, one space between its words; `now` is the value now.
///
/// # Errors
/// When it is of another form than the value now.
pub fn fitting(setting: &SettingRef, value: &str, now: &str) -> Result<String, SettingError> {
    sysctl::fitting(setting, value, now)
}

/// The parameters that the kernel alters along with `name`, which is a path below /proc/sys as they are. Those of single
/// devices are left out.
pub fn coupled(name: &str) -> BTreeSet<String> {
    sysctl_couplings::named(name)
}
