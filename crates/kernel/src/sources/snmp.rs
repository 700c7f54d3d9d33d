//! Standard counters of IP, TCP and UDP over IPv4 (/proc/net/snmp; RFC 4293, 4022, 4113). The
//! kernel counts TCP over IPv6 under `Tcp` too.

use goodput_model::{Missing, Snapshot};

use super::{Source, netstat};
use crate::Context;
use crate::parse::counter_table;

const FILE: &str = "proc/thread-self/net/snmp";

pub(super) struct Snmp;

impl Source for Snmp {
    fn id(&self) -> &'static str {
        "snmp"
    }

    fn summary(&self) -> &'static str {
        "standard counters of IP, TCP and UDP in this network namespace"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.root.readable(FILE)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let text = context.root.read(FILE)?;
        netstat::put(snapshot, "snmp", &["Ip", "Tcp", "Udp"], &counter_table::parse(&text)?);
        Ok(())
    }
}
