//! Memory that the TCP and UDP sockets of this network namespace's host hold (/proc/net/sockstat), and its limits
//! (tcp(7), udp(7)). The limits are visible in the first network namespace only.

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::Context;
use crate::parse::sockstat;
use crate::parse::tcp_mem::{self, TcpMem};

/// Read per thread, because a thread may be in another network namespace than its process.
const FILE: &str = "proc/thread-self/net/sockstat";
/// Protocol, its part of the facts' names, and the file of its limits; all files have the same form.
const PROTOCOLS: [(&str, &str, &str); 2] =
    [("TCP", "tcp", "proc/sys/net/ipv4/tcp_mem"), ("UDP", "udp", "proc/sys/net/ipv4/udp_mem")];

pub(super) struct Sockstat;

impl Source for Sockstat {
    fn id(&self) -> &'static str {
        "sockstat"
    }

    fn summary(&self) -> &'static str {
        "total memory of all TCP and UDP sockets, and its limits, in pages"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.root.readable(FILE)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let text = context.root.read(FILE)?;
        snapshot.put("sockstat.page_bytes", rustix::param::page_size() as u64);
        for (protocol, name, file) in PROTOCOLS {
            match sockstat::parse(&text, protocol) {
                Ok(pages) => snapshot.put(format!("sockstat.{name}_mem_pages"), pages),
                Err(why) => snapshot.lacks(format!("sockstat.{name}_mem_pages"), why.to_string()),
            }
            put_limits(snapshot, name, limits(context, file));
        }
        Ok(())
    }
}

fn put_limits(snapshot: &mut Snapshot, name: &str, limits: Result<TcpMem, Missing>) {
    let (pressure, max) =
        (format!("sockstat.{name}_mem_pressure_pages"), format!("sockstat.{name}_mem_max_pages"));
    match limits {
        Ok(limits) => {
            snapshot.put(pressure, limits.pressure);
            snapshot.put(max, limits.max);
        }
        Err(why) => {
            snapshot.lacks(pressure, why.to_string());
            snapshot.lacks(max, why.to_string());
        }
    }
}

fn limits(context: &Context, file: &str) -> Result<TcpMem, Missing> {
    let text = context.root.read_if_there(file)?;
    let text = text.ok_or_else(|| Missing::because("not visible in this network namespace"))?;
    Ok(tcp_mem::parse(&text)?)
}
