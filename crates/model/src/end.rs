//! One end of a path: the host, and everything that it saw during one measurement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arrivals::FlowArrivals;
use crate::choice::MoverChoice;
use crate::facts::Snapshot;
use crate::held_to::HeldTo;
use crate::host_cpu::{HostCpu, is_no_host_cpu, no_host_cpu};
use crate::known::Known;
use crate::lost_flow::LostFlow;
use crate::placement::Placement;
use crate::sample::Sample;
use crate::shaping::Gaps;

/// A host, as it describes itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Host name.
    pub name: String,
    /// Operating system and release, as uname(2) reports them: "Linux 6.1.0-18-amd64".
    pub kernel: String,
    /// Version of goodput running there; empty if it is another program.
    pub goodput: String,
    /// CPUs this process may run on; 0 if unknown.
    pub cpus: u32,
}

impl Host {
    /// A host of which only the program is known: its name, and its version if the host reported one.
    pub fn foreign(program: impl Into<String>) -> Self {
        let kernel = String::from("not reported");
        Self { name: program.into(), kernel, goodput: String::new(), cpus: 0 }
    }

    /// Whether goodput runs on this host and reports what it sees.
    pub fn is_goodput(&self) -> bool {
        !self.goodput.is_empty()
    }
}

/// The clock of one end's samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnClock {
    /// Reading of `CLOCK_MONOTONIC` at time zero of this end's samples, nanoseconds.
    pub began_ns: u64,
    /// Boot and time namespace of the clock. Two ends that report the same text share one clock
    /// (`/proc/sys/kernel/random/boot_id`; inode of `/proc/self/ns/time`, time_namespaces(7)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
}

/// Everything one end saw during one measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct End {
    /// The host, as it describes itself.
    pub host: Host,
    /// What the host knew before the first payload byte.
    pub before: Snapshot,
    /// What the host knew after the last payload byte.
    pub after: Snapshot,
    /// Cumulative counters during the run, oldest first. Times are of this end's own clock.
    pub samples: Vec<Sample>,
    /// Where the flows' threads ran, if this end moved the payload itself and reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// How this end sent and received, if the plan names the mover `auto` or one that has several forms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub movers: Vec<MoverChoice>,
    /// Arrival times of each flow's datagrams, if this end received them and the plan asks for the times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrivals: Vec<FlowArrivals>,
    /// Pauses between two packets of one flow that arrived at this end, all flows together, by the kernel's arrival
    /// times; only for UDP, and absent if this end does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps: Option<Gaps>,
    /// CPU time of this host over time, in order of time; at most some hundred instants. Times are of this end's own
    /// clock.
    #[serde(default = "no_host_cpu", skip_serializing_if = "is_no_host_cpu")]
    pub host_cpu: Known<Vec<HostCpu>>,
    /// The clock of the samples' times, if this end moved the payload itself and reports its clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<OwnClock>,
    /// Rate limits of this end's operator that made its flows wait. Empty if there were none, absent if this end
    /// does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_to: Option<Vec<HeldTo>>,
    /// Flows that this end lost while the others went on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_flows: Vec<LostFlow>,
}

impl End {
    /// An end of which only the host is known.
    pub fn unobserved(host: Host) -> Self {
        Self {
            host,
            before: Snapshot::default(),
            after: Snapshot::default(),
            samples: Vec::new(),
            placement: None,
            movers: Vec::new(),
            arrivals: Vec::new(),
            gaps: None,
            host_cpu: no_host_cpu(),
            clock: None,
            held_to: None,
            lost_flows: Vec::new(),
        }
    }

    /// The last sample: the counts when this end stopped.
    pub fn last_sample(&self) -> Option<&Sample> {
        self.samples.last()
    }
}
