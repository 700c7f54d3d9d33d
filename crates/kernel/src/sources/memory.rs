//! The size of the machine's memory (/proc/meminfo).

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::Context;
use crate::parse::meminfo;

const FILE: &str = "proc/meminfo";

pub(super) struct Memory;

impl Source for Memory {
    fn id(&self) -> &'static str {
        "memory"
    }

    fn summary(&self) -> &'static str {
        "size of the machine's memory"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.root.readable(FILE)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        snapshot.put("memory.total_bytes", meminfo::parse(&context.root.read(FILE)?)?);
        Ok(())
    }

    fn lasts(&self, _name: &str) -> bool {
        true
    }
}
