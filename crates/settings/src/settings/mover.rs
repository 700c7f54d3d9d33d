//! `mover`: the way in which payload is sent and received.

use goodput_model::Plan;

use crate::permanent::application;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "mover",
    title: "how payload is moved",
    why: "Copying through user space, sendfile and zero copy cost different amounts of CPU for \
          each byte.",
    scope: Scope::Plan,
    values: "a name that `goodput list movers` prints, or default",
    example: "mover=copy,sendfile",
    unset: Some(value::DEFAULT),
    permanent: |_, value| match value {
        value::DEFAULT => Vec::new(),
        name => application(format!("send like `goodput list movers` says of {name}")),
    },
    backend: Backend::Plan(|plan, setting, value| {
        let name = value::or_default(value, |v| value::word(setting, v, 32))?;
        plan.mover = name.unwrap_or(Plan::standard().mover);
        Ok(())
    }),
};
