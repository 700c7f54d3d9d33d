//! `pause.rx`: whether a device heeds pause frames.

use goodput_netlink::parameters::Parameter;

use crate::machine::DeviceSwitch;
use crate::permanent::link_switch;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "pause.rx",
    title: "whether the device obeys pause frames",
    why: "A receiver or switch that sends pause frames stops everything that leaves through this device (IEEE 802.3, annex 31B).",
    scope: Scope::Device,
    values: "on or off",
    example: "pause.rx@eth0=on,off",
    unset: None,
    permanent: |setting, value| vec![link_switch(setting, "RxFlowControl", value)],
    backend: Backend::Machine(&DeviceSwitch(Parameter::PauseRx)),
};
