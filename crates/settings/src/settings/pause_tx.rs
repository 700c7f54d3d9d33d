//! `pause.tx`: whether a device sends pause frames.

use goodput_netlink::parameters::Parameter;

use crate::machine::DeviceSwitch;
use crate::permanent::link_switch;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "pause.tx",
    title: "whether the device sends pause frames",
    why: "A slow host stops the switch instead of losing frames, and with it everyone else behind that port.",
    scope: Scope::Device,
    values: "on or off",
    example: "pause.tx@eth0=on,off",
    unset: None,
    permanent: |setting, value| vec![link_switch(setting, "TxFlowControl", value)],
    backend: Backend::Machine(&DeviceSwitch(Parameter::PauseTx)),
};
