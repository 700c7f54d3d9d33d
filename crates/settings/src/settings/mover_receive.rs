//! `mover.receive`: the way in which payload is received, where it is not the sender's.

use crate::permanent::application;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "mover.receive",
    title: "how payload is received",
    why: "What the receiver does with the payload costs CPU apart from how it was sent: `discard` \
          shows the network alone.",
    scope: Scope::Plan,
    values: "a name that `goodput list movers` prints, or default",
    example: "mover.receive=copy,discard",
    unset: Some(value::DEFAULT),
    permanent: |_, value| match value {
        value::DEFAULT => Vec::new(),
        name => application(format!("receive like `goodput list movers` says of {name}")),
    },
    backend: Backend::Plan(|plan, setting, value| {
        plan.receive_mover = value::or_default(value, |v| value::word(setting, v, 32))?;
        Ok(())
    }),
};
