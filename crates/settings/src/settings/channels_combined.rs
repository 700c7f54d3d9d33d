//! `channels.combined`: queues of a device that receive and send.

use goodput_netlink::parameters::Parameter;

use crate::machine::DeviceNumber;
use crate::permanent::link_file;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "channels.combined",
    title: "queues that receive and send",
    why: "Each queue has its own interrupt, so each can have its own CPU for some of the flows.",
    scope: Scope::Device,
    values: "queues",
    example: "channels.combined@eth0=1,4",
    unset: None,
    permanent: |setting, value| vec![link_file(setting, &format!("CombinedChannels={value}"))],
    backend: Backend::Machine(&DeviceNumber {
        parameter: Parameter::ChannelsCombined,
        range: 1..=4096,
    }),
};
