//! The CPUs on which the flows' threads should run, and the CPUs on which they were seen.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::end_name::EndName;
use crate::sample::Role;

/// On which CPUs the flows' threads of each end should run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pins {
    /// CPUs for the threads of this end.
    pub near: Pin,
    /// CPUs for the threads of the target.
    pub far: Pin,
}

/// On which CPUs the flows' threads of one end should run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pin {
    /// The scheduler chooses the CPUs.
    #[default]
    None,
    /// CPUs on the memory node of the path's device, except those that serve its interrupts, as far as these are
    /// known. Otherwise the scheduler chooses.
    Auto,
    /// One of these CPUs for each thread; the flows take them in turn.
    Cpus(Vec<u16>),
}

impl Pins {
    /// Whether the schedulers of both ends choose.
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// The CPUs for the threads of one end.
    pub fn of(&self, end: EndName) -> &Pin {
        match end {
            EndName::Near => &self.near,
            EndName::Far => &self.far,
        }
    }
}

/// On which CPUs the flows' threads of one end ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// How the CPUs were chosen, in words.
    pub chosen: String,
    /// The CPUs of each flow's thread.
    pub flows: Vec<FlowPlacement>,
}

/// On which CPUs one flow's thread ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowPlacement {
    /// Number of the flow in the plan.
    pub flow: u16,
    /// Whether this end sent or received on the flow.
    pub role: Role,
    /// The only CPU on which the thread was allowed to run; absent if it was not pinned to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned_to: Option<u16>,
    /// CPUs on which the thread was seen: with each detailed sample, and when the flow ended.
    pub seen_on: Vec<u16>,
}

impl Placement {
    /// CPUs on which any of the threads was seen, in rising order.
    pub fn cpus(&self) -> Vec<u16> {
        let all: BTreeSet<u16> =
            self.flows.iter().flat_map(|flow| &flow.seen_on).copied().collect();
        all.into_iter().collect()
    }
}

/// CPUs as the kernel writes them: "0-3,8" (cpuset(7), "List format").
#[derive(Debug, Clone, Copy)]
pub struct CpuList<'a>(
    /// In rising order.
    pub &'a [u16],
);

impl fmt::Display for CpuList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges = self.0.chunk_by(|one, next| one.checked_add(1) == Some(*next));
        for (number, range) in ranges.enumerate() {
            let comma = if number > 0 { "," } else { "" };
            match range {
                [only] => write!(f, "{comma}{only}")?,
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_written_in_ranges() {
        assert_eq!(CpuList(&[0, 1, 2, 8]).to_string(), "0-2,8");
        assert_eq!(CpuList(&[7]).to_string(), "7");
        assert_eq!(CpuList(&[]).to_string(), "");
    }

    #[test]
    fn a_plan_of_a_peer_that_knows_no_pins_has_none() {
        let pins: Pins = serde_json::from_str("{}").unwrap();
        assert!(pins.are_none());
        let far = Pins { far: Pin::Cpus(vec![2, 3]), ..Pins::default() };
        let text = serde_json::to_string(&far).unwrap();
        assert_eq!(text, r#"{"near":"none","far":{"cpus":[2,3]}}"#);
        assert_eq!(serde_json::from_str::<Pins>(&text).unwrap(), far);
    }
}
