//! `qdisc.htb.rate`: the guaranteed rate of a class.

use crate::machine::CLASS_RATE;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "qdisc.htb.rate",
    title: "guaranteed rate of an htb class",
    why: "A class gets its rate before others may borrow, and never more than its ceiling.",
    scope: Scope::Class,
    values: "a rate like 100mbit",
    example: "qdisc.htb.rate@eth1:1:10=100mbit,200mbit",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&CLASS_RATE),
};
