//! The part of a setting after the `@`.

use goodput_model::SettingRef;
use goodput_netlink::Netlink;

/// The part after the `@`.
pub(crate) fn scope(setting: &SettingRef) -> &str {
    setting.scope.as_deref().unwrap_or_default()
}

/// The name of the device after the `@`. Anything after a colon is not part of it: the kernel allows
/// no colon in a name (net/core/dev.c `dev_valid_name`).
pub(crate) fn name(setting: &SettingRef) -> &str {
    let scope = scope(setting);
    scope.split_once(':').map_or(scope, |(device, _)| device)
}

/// Whether the device of a setting is among the links of this namespace.
pub(crate) fn is_there(setting: &SettingRef) -> bool {
    Netlink::open().and_then(|mut netlink| netlink.link(name(setting))).is_ok()
}
