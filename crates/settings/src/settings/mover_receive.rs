//! `mover.receive`: the way in which payload is received, if it is not the sender's.

use crate::permanent::application;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "mover.receive",
    title: "how payload is received",
    why: "The receiver's CPU cost depends on what it does with the payload, however it was sent: `discard` shows the network alone.",
    scope: Scope::Plan,
    values: "a name from `goodput list movers`, or default",
    example: "mover.receive=copy,discard",
    unset: Some(value::DEFAULT),
    permanent: |_, value| match value {
        value::DEFAULT => Vec::new(),
        name => application(format!("receive as `goodput list movers` describes {name}")),
    },
    backend: Backend::Plan(|plan, setting, value| {
        plan.receive_mover = value::or_default(value, |v| value::word(setting, v, 32))?;
        Ok(())
    }),
};
