//! `coalescing.adaptive_rx`: whether the driver adapts its interrupts to the traffic.

use goodput_netlink::parameters::Parameter;

use crate::machine::DeviceSwitch;
use crate::permanent::link_switch;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "coalescing.adaptive_rx",
    title: "interrupt delay adapted to the received traffic",
    why: "The driver delays longer under load than when idle; some drivers guess wrong for a single fast flow.",
    scope: Scope::Device,
    values: "on or off",
    example: "coalescing.adaptive_rx@eth0=on,off",
    unset: None,
    permanent: |setting, value| vec![link_switch(setting, "UseAdaptiveRxCoalesce", value)],
    backend: Backend::Machine(&DeviceSwitch(Parameter::CoalesceAdaptiveRx)),
};
