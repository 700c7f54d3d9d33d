//! Files of systemd-networkd (systemd.network(5)).

use goodput_model::{Permanent, SettingRef};

use super::{device, entry};

/// The beginning of what these files are called: only networkd knows the path of a device's file.
pub(crate) const NETWORK_FILES: &str = "the .network file";

/// A section of the `.network` file of the setting's device. The file is the user's: only the first
/// matching file is applied, so one of ours would replace it.
pub(crate) fn network_file(setting: &SettingRef, section: &str) -> Permanent {
    let device = device(setting);
    let file = format!("{NETWORK_FILES} of {device} (see `networkctl status {device}`)");
    entry(file, section)
}
