//! `link.txqueuelen`: packets that wait in a device's queue.

use crate::machine::TX_QUEUE;
use crate::permanent::{link_file, loader_conf};
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "link.txqueuelen",
    title: "packets that wait in the queue of a device",
    why: "A short queue drops what a burst brings; a long one delays whatever comes behind it. Queueing disciplines with a limit of their own do not look at it.",
    scope: Scope::Device,
    values: "packets, at least 1",
    example: "link.txqueuelen@eth0=1000,2000",
    unset: None,
    permanent: |setting, value| {
        let length = format!("net.link.ifqmaxlen={value}");
        vec![link_file(setting, &format!("TransmitQueueLength={value}")), loader_conf(length)]
    },
    backend: Backend::Machine(&TX_QUEUE),
};
