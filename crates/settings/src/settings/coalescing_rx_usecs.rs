//! `coalescing.rx_usecs`: how long a device waits after a frame before it interrupts.

use goodput_netlink::parameters::Parameter;

use crate::machine::DeviceNumber;
use crate::permanent::link_file;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "coalescing.rx_usecs",
    title: "delay between a received frame and its interrupt",
    why: "A delay joins many frames into one interrupt, which saves CPU and adds latency; if it is too long, the ring overflows.",
    scope: Scope::Device,
    values: "microseconds",
    example: "coalescing.rx_usecs@eth0=3,50",
    unset: None,
    permanent: |setting, value| vec![link_file(setting, &format!("RxCoalesceSec={value}us"))],
    backend: Backend::Machine(&DeviceNumber {
        parameter: Parameter::CoalesceRxUs,
        range: 0..=1_000_000,
    }),
};
