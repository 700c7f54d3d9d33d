//! A random fault beside its healthy twin: the same path with nothing wrong, measured before and after it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::lab_program::LabProgram;
use crate::random::Case;

/// Least share of the healthy twin's goodput that a fault must cost to be judged. A fault that costs nothing is none.
pub const LEAST_COST: f64 = 0.15;

/// Runs the healthy path, the fault, and the healthy path again. Returns the line of the first healthy run and the
/// fault's line, with its `cost` if both twins gave a rate. Both have the digest of what was `drawn`.
pub fn run(program: &LabProgram, folder: &Path, case: &Case) -> Result<[String; 2]> {
    let healthy = write(folder, &format!("{}-healthy", case.name), &case.healthy)?;
    let faulty = write(folder, &case.name, &case.faulty)?;
    let before = program.run(&healthy)?;
    let line = program.run(&faulty)?;
    let after = program.run(&healthy)?;
    let twins = goodput(&before)?.zip(goodput(&after)?);
    let drawn = case.digest();
    Ok([with_drawn(&before, &drawn)?, with_drawn(&with_cost(&line, twins)?, &drawn)?])
}

fn write(folder: &Path, name: &str, toml: &str) -> Result<String> {
    let path = folder.join(format!("{name}.toml"));
    fs::write(&path, toml).with_context(|| format!("write {}", path.display()))?;
    Ok(path.display().to_string())
}

/// Goodput of a run, bits per second; `None` if the run has no record.
fn goodput(line: &str) -> Result<Option<f64>> {
    let line: Value = serde_json::from_str(line).context("a run's line is not JSON")?;
    Ok(line["record"]["result"]["goodput_bits_per_s"].as_f64())
}

fn with_drawn(line: &str, drawn: &str) -> Result<String> {
    let mut line: Value = serde_json::from_str(line).context("a run's line is not JSON")?;
    line["drawn"] = drawn.into();
    Ok(line.to_string())
}

/// The line with the share of the twins' mean goodput that the fault cost. The mean is geometric, because drift of the
/// machine is a factor.
fn with_cost(line: &str, twins: Option<(f64, f64)>) -> Result<String> {
    let mut line: Value = serde_json::from_str(line).context("a run's line is not JSON")?;
    let own = line["record"]["result"]["goodput_bits_per_s"].as_f64();
    if let Some(((before, after), own)) = twins.zip(own) {
        line["cost"] = (1.0 - own / (before * after).sqrt()).into();
    }
    Ok(line.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_costs_a_share_of_its_twins() {
        let line = r#"{"record":{"result":{"goodput_bits_per_s":50.0}}}"#;
        let costs = |twins| {
            let line: Value = serde_json::from_str(&with_cost(line, twins).unwrap()).unwrap();
            line["cost"].as_f64()
        };
        assert_eq!(costs(Some((50.0, 200.0))), Some(0.5));
        assert_eq!(costs(None), None);
    }
}
