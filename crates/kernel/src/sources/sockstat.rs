//! Memory that the TCP sockets of this network namespace's host hold (/proc/net/sockstat), and how
//! much they may. The limits can be seen in the first network namespace only.

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::Context;
use crate::parse::sockstat;
use crate::parse::tcp_mem::{self, TcpMem};

/// By the thread, because a thread may be in another network namespace than its process.
const FILE: &str = "proc/thread-self/net/sockstat";
const LIMITS: &str = "proc/sys/net/ipv4/tcp_mem";

pub(super) struct Sockstat;

impl Source for Sockstat {
    fn id(&self) -> &'static str {
        "sockstat"
    }

    fn summary(&self) -> &'static str {
        "memory that all TCP sockets hold together, and the limits of it, in pages"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.root.readable(FILE)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        snapshot.put("sockstat.tcp_mem_pages", sockstat::parse(&context.root.read(FILE)?)?);
        snapshot.put("sockstat.page_bytes", rustix::param::page_size() as u64);
        match limits(context) {
            Ok(limits) => {
                snapshot.put("sockstat.tcp_mem_pressure_pages", limits.pressure);
                snapshot.put("sockstat.tcp_mem_max_pages", limits.max);
            }
            Err(why) => {
                snapshot.lacks("sockstat.tcp_mem_pressure_pages", why.to_string());
                snapshot.lacks("sockstat.tcp_mem_max_pages", why.to_string());
            }
        }
        Ok(())
    }
}

fn limits(context: &Context) -> Result<TcpMem, Missing> {
    let text = context.root.read_if_there(LIMITS)?;
    let text = text.ok_or_else(|| Missing::because("not visible in this network namespace"))?;
    Ok(tcp_mem::parse(&text)?)
}
