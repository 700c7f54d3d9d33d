//! What stands behind the `@` of a setting.

use goodput_model::SettingRef;
use goodput_netlink::Netlink;

/// What stands behind the `@`.
pub(crate) fn scope(setting: &SettingRef) -> &str {
    setting.scope.as_deref().unwrap_or_default()
}

/// The name of the device behind the `@`. What follows a colon is not part of it: the kernel lets
/// no name have one (net/core/dev.c `dev_valid_name`).
pub(crate) fn name(setting: &SettingRef) -> &str {
    let scope = scope(setting);
    scope.split_once(':').map_or(scope, |(device, _)| device)
}

/// Whether the device of a setting is among the links of this namespace.
pub(crate) fn is_there(setting: &SettingRef) -> bool {
    Netlink::open().and_then(|mut netlink| netlink.link(name(setting))).is_ok()
}
