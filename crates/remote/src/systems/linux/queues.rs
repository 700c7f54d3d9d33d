//! How the packets of each queue of a device are spread over the CPUs (Documentation/networking/scaling.rst). Removed
//! queues come back without these masks, so the masks change along with the number of channels.

use super::row::{At, Row};
use crate::command::{Command, Condition};
use crate::error::RemoteError;

/// The masks of all queues of a device, as `rx-0/rps_cpus=3 tx-0/xps_cpus=1`.
pub(super) struct Spreading;

/// Its name. Only journals of earlier versions have it: now each kind of file is a setting of its own.
pub(super) const SPREADING: &str = "queues.spreading";

/// Prints the masks. A queue without a choice refuses to be read.
const SHOW: &str = "cd /sys/class/net/\"$1\"/queues || exit; all=; \
    for f in rx-*/rps_cpus rx-*/rps_flow_cnt tx-*/xps_cpus tx-*/xps_rxqs; do \
    v=$(cat \"$f\" 2>/dev/null) && [ -n \"$v\" ] && all=\"$all $f=$v\"; done; echo ${all# }";

/// Writes the differences.
const WRITE: &str = "cd /sys/class/net/\"$1\"/queues || exit; shift; bad=0; for w; do f=${w%%=*} v=${w#*=}; \
    [ \"$(cat \"$f\" 2>/dev/null)\" = \"$v\" ] || printf '%s\\n' \"$v\" >\"$f\" || bad=1; done; exit $bad";

fn show(at: &At<'_>) -> Command {
    Command::script(format!("read the steering of {}", at.scope()), SHOW, [at.scope()])
}

impl Row for Spreading {
    fn read(&self, at: &mut At<'_>) -> Result<String, RemoteError> {
        let command = show(at);
        let printed = at.shell.output(&command)?;
        match printed.trim() {
            "" => Err(at.refused("its queues have nothing to choose")),
            masks if masks.split(' ').all(|word| word.contains('=')) => Ok(masks.into()),
            masks => Err(at.misread(&command, masks, "words like rx-0/rps_cpus=3")),
        }
    }

    fn normalise(&self, at: &mut At<'_>, _value: &str) -> Result<String, RemoteError> {
        Err(at.refused("goodput only puts it back"))
    }

    fn write(&self, at: &mut At<'_>, value: &str) -> Result<Vec<Command>, RemoteError> {
        let words = [at.scope()].into_iter().chain(value.split(' '));
        let purpose = format!("change the steering of {}", at.scope());
        Ok(vec![Command::script(purpose, WRITE, words)])
    }

    fn holds(&self, at: &mut At<'_>, value: &str) -> Result<Condition, RemoteError> {
        Ok(Condition::line(show(at), Condition::literal(value)))
    }
}
