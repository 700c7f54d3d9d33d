//! Memory that the TCP sockets of this network namespace's host hold (/proc/net/sockstat).

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::Context;
use crate::parse::sockstat;

/// By the thread, because a thread may be in another network namespace than its process.
const FILE: &str = "proc/thread-self/net/sockstat";

pub(super) struct Sockstat;

impl Source for Sockstat {
    fn id(&self) -> &'static str {
        "sockstat"
    }

    fn summary(&self) -> &'static str {
        "memory that all TCP sockets hold together"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.root.readable(FILE)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        snapshot.put("sockstat.tcp_mem_pages", sockstat::parse(&context.root.read(FILE)?)?);
        Ok(())
    }
}
