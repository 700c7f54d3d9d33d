//! Commands of tc(8): queueing disciplines and policers that have no kind of their own, such as cake, fq_codel and the
//! action `police`. `DEVICE` stands for the host's device on the path.

use std::process::Stdio;

use serde::Deserialize;

use super::{Fault, FaultTarget, Kind, Undo, read};
use crate::error::LabError;
use crate::host_name::HostName;
use crate::need::Need;
use crate::programs;

pub(super) const KIND: Kind = Kind {
    id: "tc",
    summary: "what commands of tc(8) make at the host's device, which is DEVICE in them",
    example: "host = \"near\"\ncommands = [\"qdisc replace dev DEVICE root tbf rate 1gbit burst 64k limit 1m\"]",
    read: read::<Commands>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Commands {
    host: HostName,
    commands: Vec<String>,
}

impl Commands {
    fn failed(&self, why: String) -> LabError {
        LabError::Fault { kind: KIND.id, host: self.host.to_string(), why }
    }

    /// What tc prints for these words.
    fn tc(&self, site: FaultTarget<'_>, words: &str) -> Result<String, LabError> {
        let cannot_run = |why| self.failed(format!("can't run tc: {why}"));
        let program = programs::find("tc").unwrap_or_else(|| "tc".into());
        let mut command = site.host.command(program).map_err(cannot_run)?;
        let words = words.replace("DEVICE", site.host.device());
        command.args(words.split_whitespace()).stdin(Stdio::null());
        let output = command.output().map_err(cannot_run)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(self.failed(format!("tc {words}: {}", said.trim())));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Fault for Commands {
    fn host(&self) -> HostName {
        self.host
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::TrafficControl]
    }

    fn plant(&self, site: FaultTarget<'_>) -> Result<Undo, LabError> {
        self.commands.iter().try_for_each(|words| self.tc(site, words).map(drop))?;
        Ok(None)
    }

    fn read_back(&self, site: FaultTarget<'_>) -> Result<String, LabError> {
        self.tc(site, "qdisc show dev DEVICE")
    }
}
