//! `sysctl.<any>`: a kernel parameter under /proc/sys.

use crate::machine::Sysctl;
use crate::permanent;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "sysctl",
    title: "a kernel parameter, sysctl.<name>",
    why: "The kernel's limits on buffers, queues and TCP's behaviour apply to every connection of the host.",
    scope: Scope::Host,
    values: "as the kernel prints it; several numbers separated by spaces",
    example: "sysctl.net.ipv4.tcp_rmem=\"4096 131072 6291456\",\"4096 131072 33554432\"",
    unset: None,
    permanent: permanent::sysctl,
    backend: Backend::Machine(&Sysctl),
};
