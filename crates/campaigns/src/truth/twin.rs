//! A random fault beside its healthy twin: the same path with nothing wrong, measured before and after it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::lab_program::LabProgram;
use crate::random::{Case, healthy_name};

/// Least share of the healthy twin's goodput that a fault must cost to be judged. A fault that costs nothing is none.
pub const LEAST_COST: f64 = 0.15;

/// Share of its own rate from which a path with nothing wrong is not judged: something that was not planted, such as a queue
/// of two packets for 64 flows, costs too much to call it healthy, and too little to know what it is.
pub const MAX_HEALTHY_COST: f64 = 0.05;

/// Runs the healthy path, the fault, and the healthy path again. Returns the line of the first healthy run and the
/// fault's line, with its `cost` if both twins gave a rate: their geometric mean, because drift of the machine is a factor.
/// The `cost` of the healthy path is what its own rate would have carried beyond it. Both lines have the digest of what was
/// `drawn`.
pub fn run(program: &LabProgram, folder: &Path, case: &Case) -> Result<[String; 2]> {
    let healthy = write(folder, &healthy_name(&case.name), &case.healthy)?;
    let faulty = write(folder, &case.name, &case.faulty)?;
    let before = program.run(&healthy)?;
    let line = program.run(&faulty)?;
    let after = program.run(&healthy)?;
    let twins = goodput(&before)?.zip(goodput(&after)?).map(|(a, b)| (a * b).sqrt());
    let drawn = case.digest();
    let before = with_cost(&before, case.payload_rate)?;
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

/// The line with the share of `undisturbed` that its goodput is short of. Both are in bits per second.
fn with_cost(line: &str, undisturbed: Option<f64>) -> Result<String> {
    let mut line: Value = serde_json::from_str(line).context("a run's line is not JSON")?;
    let own = line["record"]["result"]["goodput_bits_per_s"].as_f64();
    if let Some((undisturbed, own)) = undisturbed.zip(own) {
        line["cost"] = (1.0 - own / undisturbed).into();
    }
    Ok(line.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_costs_a_share_of_what_went_without_it() {
        let line = r#"{"record":{"result":{"goodput_bits_per_s":50.0}}}"#;
        let costs = |undisturbed| {
            let line: Value = serde_json::from_str(&with_cost(line, undisturbed).unwrap()).unwrap();
            line["cost"].as_f64()
        };
        assert_eq!(costs(Some(100.0)), Some(0.5));
        assert_eq!(costs(None), None);
    }
}
