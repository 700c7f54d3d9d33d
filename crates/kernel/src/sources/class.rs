//! Classes of the path's queueing discipline, if it is htb: what each may send, and what it has sent.

use goodput_model::{Missing, Snapshot};
use goodput_netlink::{Class, HtbRoot, Qdisc, QdiscOptions};

use super::Source;
use super::qdisc::counting;
use crate::Context;
use crate::context::missing;

pub(super) struct ClassesSource;

impl Source for ClassesSource {
    fn id(&self) -> &'static str {
        "class"
    }

    fn summary(&self) -> &'static str {
        "htb classes on the path's device: rate, ceil, bursts and counters"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let (device, mut netlink, qdiscs) = context.qdiscs()?;
        let root = qdiscs.iter().find(|qdisc| qdisc.is_root() && qdisc.kind == "htb");
        let root = root.ok_or_else(|| Missing::because(format!("{device} has no htb")))?;
        defaults(snapshot, root);
        for class in netlink.classes(root.index).map_err(missing)? {
            facts(snapshot, &class);
        }
        Ok(())
    }
}

fn defaults(snapshot: &mut Snapshot, root: &Qdisc) {
    let read = match &root.options {
        QdiscOptions::Other(options) => HtbRoot::parse(options),
        _ => None,
    };
    match read {
        Some(htb) => {
            let default = root.handle | htb.default_class;
            let name = if htb.default_class == 0 { "none".into() } else { name(default) };
            snapshot.put("class.default", name);
            snapshot.put("class.direct_packets", u64::from(htb.direct_packets));
        }
        None => {
            snapshot.lacks("class.default", "this kernel does not report htb's default");
            snapshot.lacks("class.direct_packets", "this kernel does not report what bypassed htb");
        }
    }
}

fn facts(snapshot: &mut Snapshot, class: &Class) {
    let Some(htb) = class.htb else { return };
    let id = name(class.handle);
    let mut put = |what: &str, value: u64| snapshot.put(format!("class.{id}.{what}"), value);
    put("rate_bits_per_s", htb.rate_bytes_per_s.saturating_mul(8));
    put("ceil_bits_per_s", htb.ceil_bytes_per_s.saturating_mul(8));
    put("burst_bytes", htb.burst_bytes.into());
    put("cburst_bytes", htb.cburst_bytes.into());
    put("quantum_bytes", htb.quantum.into());
    put("level", htb.level.into());
    put("sent_bytes", class.stats.bytes);
    put("sent_packets", class.stats.packets);
    put("drops", class.stats.drops);
    put("overlimits", class.stats.overlimits);
    snapshot.put(format!("class.{id}.parent"), name(class.parent));
    counting(snapshot, &format!("class.{id}"), htb.counting());
}

/// A handle as tc(8) writes it; `root` for a class without a parent.
fn name(handle: u32) -> String {
    if handle == Qdisc::ROOT {
        return "root".into();
    }
    format!("{:x}:{:x}", handle >> 16, handle & 0xffff)
}
