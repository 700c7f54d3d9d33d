//! Connection tracking of this network namespace: how full its table is, and what was dropped
//! (Documentation/networking/nf_conntrack-sysctl.rst).

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::Context;
use crate::parse::{ParseError, conntrack};

/// Read by the calling thread, so it belongs to the thread's own network namespace.
const ENTRIES: &str = "proc/sys/net/netfilter/nf_conntrack_count";
const MAX: &str = "proc/sys/net/netfilter/nf_conntrack_max";
const COUNTERS: &str = "proc/thread-self/net/stat/nf_conntrack";
/// Packets dropped because room or memory was short, entries evicted to make room, entries that could not be created,
/// packets that fit no connection, lookups that had to be restarted, and entries that two packets created at once.
const NAMES: [&str; 6] =
    ["drop", "early_drop", "insert_failed", "invalid", "search_restart", "clashres"];

pub(super) struct Conntrack;

impl Source for Conntrack {
    fn id(&self) -> &'static str {
        "conntrack"
    }

    fn summary(&self) -> &'static str {
        "connection tracking: entries, their maximum, and drops"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        match context.root.read_if_there(ENTRIES) {
            Ok(None) => Err(Missing::because("this kernel has not loaded connection tracking")),
            Ok(Some(_)) => Ok(()),
            Err(why) => Err(why),
        }
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        for (name, file) in [("conntrack.entries", ENTRIES), ("conntrack.max", MAX)] {
            let text = context.root.read(file);
            match text.and_then(|text| Ok(number(&text)?)) {
                Ok(value) => snapshot.put(name, value),
                Err(why) => snapshot.lacks(name, why.to_string()),
            }
        }
        let text = context.root.read(COUNTERS);
        let counters = text.and_then(|text| Ok(conntrack::parse(&text, NAMES)?));
        for (place, name) in NAMES.iter().enumerate() {
            let name = format!("conntrack.{name}");
            match &counters {
                Ok(sums) => match sums[place] {
                    Some(sum) => snapshot.put(name, sum),
                    None => snapshot.lacks(name, "this kernel does not count it"),
                },
                Err(why) => snapshot.lacks(name, why.to_string()),
            }
        }
        Ok(())
    }
}

fn number(text: &str) -> Result<u64, ParseError> {
    let number = text.trim().parse();
    number.map_err(|_| ParseError::new("/proc/sys/net/netfilter", format!("{text:?}")))
}
