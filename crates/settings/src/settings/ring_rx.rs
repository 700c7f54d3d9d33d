//! `ring.rx`: the receive ring of a device.

use goodput_netlink::parameters::Parameter;

use crate::machine::DeviceNumber;
use crate::permanent::link_file;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "ring.rx",
    title: "descriptors of each receive ring",
    why: "If the host does not empty the ring in time, it drops new frames; a change resets most cards briefly.",
    scope: Scope::Device,
    values: "descriptors",
    example: "ring.rx@eth0=256,4096",
    unset: None,
    permanent: |setting, value| vec![link_file(setting, &format!("RxBufferSize={value}"))],
    backend: Backend::Machine(&DeviceNumber { parameter: Parameter::RingRx, range: 1..=1 << 20 }),
};
