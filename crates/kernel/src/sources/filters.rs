//! Filters between the path's device and its queueing discipline or the stack: policers and other actions that may drop
//! packets without any queue showing it.

use goodput_model::{Missing, Snapshot};
use goodput_netlink::{Hook, Netlink, Qdisc};

use super::Source;
use crate::Context;

/// The end of the name of what a hook's filters dropped.
const DROPS: &str = "_drops";

pub(super) struct FiltersSource;

impl Source for FiltersSource {
    fn id(&self) -> &'static str {
        "filters"
    }

    fn summary(&self) -> &'static str {
        "filters and policers at the path's device, and what their actions dropped"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let (_, mut netlink, qdiscs) = context.qdiscs()?;
        match qdiscs.iter().find(|qdisc| is_hook(qdisc)) {
            Some(qdisc) => hooks(snapshot, &mut netlink, qdisc),
            None => snapshot.put("filters.hook", "none"),
        }
        Ok(())
    }

    fn lasts(&self, name: &str) -> bool {
        !name.ends_with(DROPS)
    }
}

/// The two kinds that only hold filters.
fn is_hook(qdisc: &Qdisc) -> bool {
    ["clsact", "ingress"].contains(&qdisc.kind.as_str())
}

fn hooks(snapshot: &mut Snapshot, netlink: &mut Netlink, qdisc: &Qdisc) {
    snapshot.put("filters.hook", qdisc.kind.as_str());
    for (name, hook) in [("ingress", Hook::Ingress), ("egress", Hook::Egress)] {
        if hook == Hook::Egress && qdisc.kind == "ingress" {
            continue;
        }
        match netlink.filters(qdisc.index, hook) {
            Ok(filters) => {
                snapshot.put(format!("filters.{name}"), filters.count);
                snapshot.put(format!("filters.{name}_policers"), filters.policers);
                snapshot.put(format!("filters.{name}{DROPS}"), filters.drops);
            }
            Err(error) => snapshot.lacks(format!("filters.{name}"), error.to_string()),
        }
    }
}
