//! `storage`: the plan's files, or memory instead of them.

use goodput_model::Storage;

use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "storage",
    title: "payload from and to files, or memory",
    why: "With memory, goodput measures the network alone. If the network is then faster than with files, the disks are the limit.",
    scope: Scope::Plan,
    values: "files (those of --source and --sink) or memory",
    example: "storage=memory,files",
    unset: Some("files"),
    permanent: |_, _| Vec::new(),
    backend: Backend::Plan(|plan, setting, word| match word {
        "files" | value::DEFAULT => Ok(()),
        "memory" => {
            plan.storage = Storage::default();
            Ok(())
        }
        _ => Err(value::bad(setting, word, "it must be files or memory")),
    }),
};
