//! `qdisc.htb.ceil`: the rate that a class may borrow up to.

use crate::machine::CLASS_CEIL;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "qdisc.htb.ceil",
    title: "rate that an htb class may reach by borrowing",
    why: "Above its rate a class gets what other classes leave, up to its ceiling.",
    scope: Scope::Class,
    values: "a rate like 100mbit",
    example: "qdisc.htb.ceil@eth1:1:10=200mbit,1gbit",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&CLASS_CEIL),
};
