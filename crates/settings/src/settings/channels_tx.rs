//! `channels.tx`: queues of a device that only send.

use goodput_netlink::parameters::Parameter;

use crate::machine::DeviceNumber;
use crate::permanent::link_file;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "channels.tx",
    title: "queues that only send",
    why: "With one queue all sending CPUs wait for the same lock.",
    scope: Scope::Device,
    values: "queues",
    example: "channels.tx@eth2=1,2",
    unset: None,
    permanent: |setting, value| vec![link_file(setting, &format!("TxChannels={value}"))],
    backend: Backend::Machine(&DeviceNumber { parameter: Parameter::ChannelsTx, range: 1..=4096 }),
};
