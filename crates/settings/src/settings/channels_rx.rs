//! `channels.rx`: queues of a device that only receive.

use goodput_netlink::parameters::Parameter;

use crate::machine::DeviceNumber;
use crate::permanent::link_file;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "channels.rx",
    title: "queues that only receive",
    why: "Each queue has its own interrupt, so each can have its own CPU for some of the flows.",
    scope: Scope::Device,
    values: "queues",
    example: "channels.rx@eth2=1,2",
    unset: None,
    permanent: |setting, value| vec![link_file(setting, &format!("RxChannels={value}"))],
    backend: Backend::Machine(&DeviceNumber { parameter: Parameter::ChannelsRx, range: 1..=4096 }),
};
