//! Whether the change that a verdict proposes helps, compared in the same hosts.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::lab_program::LabProgram;

/// Longest comparison: enough for an effect that is not small.
const MAX_TIME: &str = "2m";

/// The line of a run with `fix` added: the first change of its first finding, and the result of comparing
/// it. If there is no change, the line stays as it is.
pub fn add(program: &LabProgram, case: &str, line: &str) -> Result<String> {
    let mut line: Value = serde_json::from_str(line)?;
    let Some(change) = argument(&line["record"]["findings"][0]["changes"][0]) else {
        return Ok(line.to_string());
    };
    println!("   comparing {change}");
    let compared: Value = serde_json::from_str(&program.compare(case, &change, MAX_TIME)?)
        .context("`goodput lab compare` said no JSON")?;
    let arm = &compared["record"]["comparison"]["arms"][1];
    let mut fix = json!({ "change": change, "effect": arm["goodput"] });
    if arm["goodput"].is_null() {
        let why = compared["failed"].as_str().unwrap_or("no run of this arm counts");
        fix["failed"] = why.lines().next().unwrap_or(why).into();
    }
    println!("   {}", fix["effect"]);
    line["fix"] = fix;
    Ok(line.to_string())
}

/// A change as `goodput compare` takes it.
fn argument(change: &Value) -> Option<String> {
    let setting = &change["setting"];
    let name = match setting {
        Value::String(name) => name.clone(),
        other => spelled(other)?,
    };
    let from = change["from"].as_str().unwrap_or("default");
    Some(format!("{name}={from},{}", change["to"].as_str()?))
}

/// `[far:]NAME[@SCOPE]`.
fn spelled(setting: &Value) -> Option<String> {
    let far = if setting["end"] == "far" { "far:" } else { "" };
    let scope = setting["scope"].as_str().map(|scope| format!("@{scope}")).unwrap_or_default();
    Some(format!("{far}{}{scope}", setting["name"].as_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_spelled_as_compare_takes_it() {
        let setting = json!({ "end": "far", "name": "tcp.rmem", "scope": "eth0" });
        let change = json!({ "setting": setting, "from": null, "to": "1 2 3" });
        assert_eq!(argument(&change).unwrap(), "far:tcp.rmem@eth0=default,1 2 3");
        let change = json!({ "setting": "mover", "from": "copy", "to": "splice" });
        assert_eq!(argument(&change).unwrap(), "mover=copy,splice");
        assert_eq!(argument(&Value::Null), None);
    }
}
