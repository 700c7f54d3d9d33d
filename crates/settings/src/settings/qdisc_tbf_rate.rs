//! `qdisc.tbf.rate`: the rate of a token bucket.

use crate::machine::BucketRate;
use crate::permanent::AT_BOOT;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "qdisc.tbf.rate",
    title: "rate of the device's token bucket filter",
    why: "The rate counts the link-layer frame, so payload gets about 4 % less.",
    scope: Scope::Device,
    values: "a rate like 100mbit",
    example: "qdisc.tbf.rate@eth0=1gbit,300mbit",
    unset: None,
    permanent: AT_BOOT,
    backend: Backend::Machine(&BucketRate),
};
