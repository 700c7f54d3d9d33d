//! Counters of TCP and IP beyond the standard's (/proc/net/netstat).

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::Context;
use crate::parse::counter_table::{self, Counter};

/// Read per thread, because a thread may be in another network namespace than its process.
const FILE: &str = "proc/thread-self/net/netstat";

pub(super) struct Netstat;

impl Source for Netstat {
    fn id(&self) -> &'static str {
        "netstat"
    }

    fn summary(&self) -> &'static str {
        "extended counters of TCP and IP in this network namespace"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.root.readable(FILE)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let text = context.root.read(FILE)?;
        put(snapshot, "netstat", &["TcpExt", "IpExt"], &counter_table::parse(&text)?);
        Ok(())
    }
}

/// Records the counters of some groups as `area.Group.Name`.
pub(super) fn put(snapshot: &mut Snapshot, area: &str, groups: &[&str], counters: &[Counter<'_>]) {
    for counter in counters.iter().filter(|counter| groups.contains(&counter.group)) {
        let name = format!("{area}.{}.{}", counter.group, counter.name);
        match u64::try_from(counter.value) {
            Ok(value) => snapshot.put(name, value),
            Err(_) => snapshot.lacks(name, format!("the kernel says {}", counter.value)),
        }
    }
}
