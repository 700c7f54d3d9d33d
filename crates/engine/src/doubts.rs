//! Doubts about a measurement that its own numbers raise.

use goodput_model::{EndName, EndResult, Known, Outcome};

use crate::measurement::Measurement;

/// Share of one CPU that a hypervisor may take before results vary with its other guests, percent.
/// Below it, the accounting of /proc/stat is mostly rounding.
const STEAL_PERCENT: f64 = 2.0;

/// What a reader should know before believing the numbers.
pub fn doubts(measurement: &Measurement, result: &Outcome) -> Vec<String> {
    let ends = [("near", &result.near), ("far", &result.far)];
    let stolen = ends.into_iter().filter_map(|(name, end)| steal(name, end));
    stolen.chain(untold(measurement)).collect()
}

/// The receiver's count is the goodput; where it is not told, the next best is.
fn untold(measurement: &Measurement) -> Option<String> {
    let sends = measurement.senders().contains(&EndName::Near);
    let why = measurement.far.get().err().filter(|_| sends)?;
    Some(format!("{why}: what it received is counted by what its TCP acknowledged"))
}

fn steal(name: &str, end: &EndResult) -> Option<String> {
    match end.steal_percent {
        Known::Value(percent) if percent > STEAL_PERCENT => Some(format!(
            "a hypervisor took {percent:.0} % of a CPU away from the {name} host while it measured: \
             its other guests show in the numbers"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(steal: Known<f64>) -> EndResult {
        let missing = || Known::missing("not asked");
        EndResult {
            cpu_percent: missing(),
            host_cpu_percent: missing(),
            softirq_percent: missing(),
            steal_percent: steal,
        }
    }

    #[test]
    fn a_hypervisor_that_takes_much_is_told() {
        assert!(steal("near", &end(Known::Value(1.0))).is_none());
        assert!(steal("near", &end(Known::missing("no /proc/stat"))).is_none());
        let words = steal("far", &end(Known::Value(12.4))).unwrap();
        assert!(words.starts_with("a hypervisor took 12 % of a CPU away from the far host"));
    }
}
