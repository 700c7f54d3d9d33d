//! `link.txqueuelen`: packets that wait in a device's queue.

use crate::machine::TX_QUEUE;
use crate::permanent::link_file;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "link.txqueuelen",
    title: "length of a device's transmit queue",
    why: "A short queue drops part of a burst; a long one delays later packets. Queueing disciplines with their own limit ignore it.",
    scope: Scope::Device,
    values: "packets, at least 1",
    example: "link.txqueuelen@eth0=1000,2000",
    unset: None,
    permanent: |setting, value| vec![link_file(setting, &format!("TransmitQueueLength={value}"))],
    backend: Backend::Machine(&TX_QUEUE),
};
