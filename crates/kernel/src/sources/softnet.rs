//! Packets that the CPUs took in, dropped and left over in the network's soft interrupt (/proc/net/softnet_stat).

use goodput_model::{Missing, Snapshot};

use super::Source;
use super::softirq::MAX_CPUS;
use crate::Context;
use crate::parse::softnet;

const FILE: &str = "proc/thread-self/net/softnet_stat";

pub(super) struct SoftnetSource;

impl Source for SoftnetSource {
    fn id(&self) -> &'static str {
        "softnet"
    }

    fn summary(&self) -> &'static str {
        "packets processed, dropped, left over and steered in softirqs, in total and per CPU"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.root.readable(FILE)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let softnet = softnet::parse(&context.root.read(FILE)?)?;
        snapshot.put("softnet.processed", softnet.processed);
        snapshot.put("softnet.dropped", softnet.dropped);
        snapshot.put("softnet.squeezed", softnet.squeezed);
        match softnet.steered {
            Some(steered) => snapshot.put("softnet.steered", steered),
            None => snapshot.lacks("softnet.steered", "this kernel does not report it"),
        }
        for one in softnet.cpus.iter().take(MAX_CPUS) {
            snapshot.put(format!("softnet.dropped.{}", one.cpu), one.dropped);
            snapshot.put(format!("softnet.squeezed.{}", one.cpu), one.squeezed);
        }
        Ok(())
    }
}
