//! What the CPUs took in, dropped and left over in the network's soft interrupt
//! (/proc/net/softnet_stat).

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::Context;
use crate::parse::softnet;

const FILE: &str = "proc/thread-self/net/softnet_stat";

pub(super) struct SoftnetSource;

impl Source for SoftnetSource {
    fn id(&self) -> &'static str {
        "softnet"
    }

    fn summary(&self) -> &'static str {
        "packets processed, dropped and left over in soft interrupts, all CPUs"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.root.readable(FILE)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let softnet = softnet::parse(&context.root.read(FILE)?)?;
        snapshot.put("softnet.processed", softnet.processed);
        snapshot.put("softnet.dropped", softnet.dropped);
        snapshot.put("softnet.squeezed", softnet.squeezed);
        Ok(())
    }
}
