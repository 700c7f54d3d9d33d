//! `qdisc.kind`: the kind of the root queueing discipline of a device.

use crate::machine::QdiscKind;
use crate::permanent::qdisc_kind;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "qdisc.kind",
    title: "kind of the device's queueing discipline",
    why: "fq_codel keeps the delay of a full queue short, fq paces every flow, a plain queue does neither; goodput doesn't touch classful disciplines or those with filters.",
    scope: Scope::Device,
    values: "default, fq_codel, fq, codel, cake, pie, sfq, pfifo, bfifo, pfifo_fast, pfifo_head_drop or noqueue",
    example: "qdisc.kind@eth2=default,pfifo_fast",
    unset: Some(value::DEFAULT),
    permanent: qdisc_kind,
    backend: Backend::Machine(&QdiscKind),
};
