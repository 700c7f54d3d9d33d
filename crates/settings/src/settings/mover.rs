//! `mover`: the way in which payload is sent and received.

use crate::permanent::application;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "mover",
    title: "how payload is moved",
    why: "Copying through user space, sendfile and zero copy cost different amounts of CPU per byte.",
    scope: Scope::Plan,
    values: "a name from `goodput list movers`, or default",
    example: "mover=copy,sendfile",
    unset: Some(value::DEFAULT),
    permanent: |_, value| match value {
        value::DEFAULT => Vec::new(),
        name => application(format!("send as `goodput list movers` describes {name}")),
    },
    backend: Backend::Plan(|plan, setting, value| {
        let name = value::or_default(value, |v| value::word(setting, v, 32))?;
        plan.mover = name.unwrap_or_else(|| plan.usual_mover().into());
        Ok(())
    }),
};
