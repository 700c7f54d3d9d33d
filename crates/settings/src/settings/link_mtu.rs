//! `link.mtu`: the largest packet of a device.

use crate::machine::Mtu;
use crate::permanent::link_file;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "link.mtu",
    title: "largest packet of a device, the MTU",
    why: "Larger packets cost fewer headers and less CPU per byte if every device on the path accepts them; packets too large for the path are lost or fragmented.",
    scope: Scope::Device,
    values: "bytes from 1280 to 65535",
    example: "link.mtu@eth0=1500,9000",
    unset: None,
    permanent: |setting, value| vec![link_file(setting, &format!("MTUBytes={value}"))],
    backend: Backend::Machine(&Mtu),
};
