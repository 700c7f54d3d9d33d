//! `coalescing.tx_usecs`: how long a device waits after a frame has left before it interrupts.

use goodput_netlink::parameters::Parameter;

use crate::machine::DeviceNumber;
use crate::permanent::link_file;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "coalescing.tx_usecs",
    title: "delay between a sent frame and its interrupt",
    why: "A late interrupt keeps the memory of sent packets in use, so this memory is missing for the next packets.",
    scope: Scope::Device,
    values: "microseconds",
    example: "coalescing.tx_usecs@eth0=3,50",
    unset: None,
    permanent: |setting, value| vec![link_file(setting, &format!("TxCoalesceSec={value}us"))],
    backend: Backend::Machine(&DeviceNumber {
        parameter: Parameter::CoalesceTxUs,
        range: 0..=1_000_000,
    }),
};
