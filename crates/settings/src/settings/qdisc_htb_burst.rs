//! `qdisc.htb.burst`: how much a class may send at once at its rate.

use crate::machine::CLASS_BURST;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "qdisc.htb.burst",
    title: "burst of an htb class at its rate",
    why: "tc computes a burst of one packet, which loses part of the rate whenever the timer is late.",
    scope: Scope::Class,
    values: "a size in bytes like 15K",
    example: "qdisc.htb.burst@eth1:1:10=1600,125K",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&CLASS_BURST),
};
