//! `qdisc.htb.bursts`: how much a class may send at once, at its rate and at its ceiling.

use crate::machine::ClassBursts;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "qdisc.htb.bursts",
    title: "burst and cburst of an htb class together",
    why: "tc computes bursts of one packet; a class that can't borrow is held by the smaller of the two.",
    scope: Scope::Class,
    values: "one size in bytes like 125K, or two: burst and cburst",
    example: "qdisc.htb.bursts@eth1:1:20=\"1600 3200\",125K",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&ClassBursts),
};
