//! Kernel settings that affect goodput (/proc/sys). Tabs between values are recorded as spaces.

use goodput_model::{KERNEL_SETTINGS, Missing, Snapshot};

use super::Source;
use crate::Context;

const DIRECTORY: &str = "proc/sys";

pub(super) struct Sysctl;

impl Source for Sysctl {
    fn id(&self) -> &'static str {
        "sysctl"
    }

    fn summary(&self) -> &'static str {
        "kernel settings of TCP, sockets and packet processing"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.root.readable(DIRECTORY)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        for name in KERNEL_SETTINGS {
            let fact = format!("sysctl.{name}");
            let file = format!("{DIRECTORY}/{}", name.replace('.', "/"));
            match context.root.read(&file) {
                Ok(text) => {
                    let words: Vec<&str> = text.split_ascii_whitespace().collect();
                    snapshot.put(fact, words.join(" "));
                }
                Err(why) => snapshot.lacks(fact, reason(context, &file, &why)),
            }
        }
        Ok(())
    }

    fn lasts(&self, _name: &str) -> bool {
        true
    }
}

/// Some settings exist in the first network namespace only.
fn reason(context: &Context, file: &str, why: &Missing) -> String {
    match context.root.read_if_there(file) {
        Ok(None) => "not in this kernel, or not visible in this network namespace".into(),
        _ => why.to_string(),
    }
}
