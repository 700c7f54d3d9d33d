//! The CPUs on which the threads of flows are to run, and those on which they were seen.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::end_name::EndName;
use crate::sample::Role;

/// Where the flows' threads of each end are to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pins {
    /// At this end.
    pub near: Pin,
    /// At the target.
    pub far: Pin,
}

/// Where the flows' threads of one end are to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pin {
    /// Where the scheduler puts them.
    #[default]
    None,
    /// On the memory node of the path's device and off the CPUs that serve its interrupts, as far as
    /// these are known; otherwise where the scheduler puts them.
    Auto,
    /// Each on one of these CPUs, which the flows take in turn.
    Cpus(Vec<u16>),
}

impl Pins {
    /// Whether both ends leave it to their schedulers.
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// That of one end.
    pub fn of(&self, end: EndName) -> &Pin {
        match end {
            EndName::Near => &self.near,
            EndName::Far => &self.far,
        }
    }
}

/// Where the flows' threads of one end ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// How their CPUs were chosen, for a person.
    pub chosen: String,
    /// Each flow.
    pub flows: Vec<FlowPlacement>,
}

/// Where one flow's thread ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowPlacement {
    /// Number of the flow in the plan.
    pub flow: u16,
    /// Whether this end sent or received on it.
    pub role: Role,
    /// The only CPU that it could run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned_to: Option<u16>,
    /// CPUs that it was found on when it was looked at: with each detailed sample, and at its end.
    pub seen_on: Vec<u16>,
}

impl Placement {
    /// CPUs that any of its flows was seen on, in rising order.
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
