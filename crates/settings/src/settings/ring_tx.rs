//! `ring.tx`: the transmit ring of a device.

use goodput_netlink::parameters::Parameter;

use crate::machine::DeviceNumber;
use crate::permanent::link_file;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "ring.tx",
    title: "descriptors of each transmit ring",
    why: "A short ring stops the queue above it; a long one delays later packets; a change resets most cards briefly.",
    scope: Scope::Device,
    values: "descriptors",
    example: "ring.tx@eth0=256,1024",
    unset: None,
    permanent: |setting, value| vec![link_file(setting, &format!("TxBufferSize={value}"))],
    backend: Backend::Machine(&DeviceNumber { parameter: Parameter::RingTx, range: 1..=1 << 20 }),
};
