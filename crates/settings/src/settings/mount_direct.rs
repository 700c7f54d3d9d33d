//! `mount.direct`: whether a file on a mount is read past the page cache.

use crate::permanent::application;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "mount.direct",
    title: "O_DIRECT for the file on a mount",
    why: "Programs that read through the page cache get no more at once than the kernel reads ahead; O_DIRECT reads a whole --chunk at once.",
    scope: Scope::Plan,
    values: "on, off, or default: on if the file system can",
    example: "mount.direct=on,off",
    unset: Some(value::DEFAULT),
    permanent: |_, value| match value {
        "on" => application("open(2) with O_DIRECT"),
        _ => Vec::new(),
    },
    backend: Backend::Plan(|plan, setting, value| {
        plan.mount.direct = value::or_default(value, |v| value::switch(setting, v))?;
        Ok(())
    }),
};
