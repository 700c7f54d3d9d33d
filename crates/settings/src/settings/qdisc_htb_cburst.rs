//! `qdisc.htb.cburst`: how much a class may send at once at its ceiling.

use crate::machine::CLASS_CBURST;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "qdisc.htb.cburst",
    title: "burst of an htb class at its ceiling",
    why: "tc computes a burst of one packet, which loses part of the ceiling whenever the timer is late.",
    scope: Scope::Class,
    values: "a size in bytes like 15K",
    example: "qdisc.htb.cburst@eth1:1:10=1600,125K",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&CLASS_CBURST),
};
